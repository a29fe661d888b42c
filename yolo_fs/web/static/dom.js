// Makes and mends the page. Whatever is shown is set as text, never as markup.

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** Return a text in which no control, bidirectional or invisible character acts. */
export function plain(text, limit = 2000) {
  const shown = String(text ?? "").slice(0, limit + 1)
    .replace(HIDDEN, (sign) => `\\u${sign.codePointAt(0).toString(16).padStart(4, "0")}`);
  return shown.length > limit ? `${shown.slice(0, limit)}…` : shown;
}

/** Make an element. Strings become text; null and false are left out; `on…` of the attributes are listeners. */
export function el(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const made = document.createElement(name || "div");
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made[key] = value;
    else made.setAttribute(key, value === true ? "" : plain(value));
  }
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    made.append(child instanceof Node ? child : plain(child));
  }
  return made;
}

/** Make `old` look like `fresh`, touching only what differs: focus, scrolling and what is unfolded stay. */
export function mend(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === "open" && old.tagName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const name of ["onclick", "oninput", "onchange", "ontoggle"]) old[name] = fresh[name];
  mendChildren(old, [...fresh.childNodes]);
}

export function mendChildren(old, wanted) {
  const keyed = new Map([...old.children].filter((one) => one.dataset?.key).map((one) => [one.dataset.key, one]));
  let at = old.firstChild;
  for (const fresh of wanted) {
    const known = fresh.dataset?.key ? keyed.get(fresh.dataset.key) : (at?.dataset?.key ? null : at);
    if (known && known.nodeName === fresh.nodeName) {
      if (known !== at) old.insertBefore(known, at);
      else at = at.nextSibling;
      if (known.nodeType === Node.TEXT_NODE) {
        if (known.data !== fresh.data) known.data = fresh.data;
      } else if (!known.dataset.kept || known.dataset.kept !== fresh.dataset.kept) mend(known, fresh);
    } else old.insertBefore(fresh, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Return an image that the server drew, as an element; null when it is none. */
export function drawing(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return parsed.nodeName === "svg" ? document.importNode(parsed, true) : null;
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, plain(value));
  for (const child of children) made.append(child instanceof Node ? child : plain(child));
  return made;
}

export const short = (commit) => plain(commit).slice(0, 7);
export const words = (name) => plain(name).replaceAll("_", " ");

/** Return a length of time in its largest unit. */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

/** Return a time in the zone of whoever looks, as the commands print it: `2026-02-19 09:00:00 +0100`. */
export function clock(ms) {
  const minutes = -new Date(ms).getTimezoneOffset();
  const two = (number) => String(Math.floor(Math.abs(number))).padStart(2, "0");
  const here = new Date(ms + minutes * 60_000).toISOString().replace("T", " ").slice(0, 19);
  return `${here} ${minutes < 0 ? "-" : "+"}${two(minutes / 60)}${two(minutes % 60)}`;
}

// The page: what is looked at stands in the address after `#`, so that every view and moment has a link.
import { ask, draw, follow, lately } from "./data.js";
import { clock, drawing, el, mendChildren, plain, short } from "./dom.js";
import { artifacts, handoffs, machines, team, time } from "./views.js";

const VIEWS = { team: ["Team", team], time: ["Time", time], artifacts: ["Artifacts", artifacts], handoffs: ["Handoffs", handoffs], machines: ["Machines", machines] };
const KEYS = [[`1 – ${Object.keys(VIEWS).length}`, "switch the view"], ["← →", "previous, next commit"], ["Home", "the first commit"], ["End  n", "now"], ["space", "play"], ["j  k", "next, previous phase"], ["/", "search artifacts"], ["t", "theme"], ["?", "these keys"]];
const THEMES = ["auto", "light", "dark"];
const EVENTS_KEPT = 50;
const LATE_KEPT = 100;
const PLAY_MS = 350;
/** How long an event waits for the board that it changes: both are drawn at once. */
const BOARD_MS = 60;
const $ = (id) => document.getElementById(id);

const state = {
  board: null, timeline: null, artifact: null, other: null, handoffs: null, artifactError: "", company: [],
  events: [], unshown: 0, ages: new Map(), drawings: new Map(), pastArtifacts: [],
  view: "team", phase: "", at: "", path: "", repo: "0", against: "", open: null, more: 200,
  filter: { standing: "", text: "" }, live: false,
  phaseNow() { return this.board?.team?.phases.find((one) => one.phase === this.phase); },
  /** The moment that is looked at: now, or that of the commit. */
  clockMs() { return this.at ? this.ages.get(this.at) ?? Date.now() : Date.now(); },
  link(changes) { return address({ ...this, against: "", ...changes }); },
  toggle(key) { this.open = this.open === key ? null : key; show(); },
  setFilter(changes) { Object.assign(this.filter, changes); this.more = 200; show(); },
  showMore() { this.more += 400; show(); },
  compare(commit) { go({ against: commit }); },
  async copy(text, button) {
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { getSelection().selectAllChildren(button.previousSibling); }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  },
};

function address(wanted) {
  const given = ["phase", "at", "path", "repo", "against"].filter((name) => wanted[name] && !(name === "repo" && wanted[name] === "0") && !(["path", "against"].includes(name) && wanted.view !== "artifacts"));
  const query = new URLSearchParams(given.map((name) => [name, wanted[name]]));
  return `#/${wanted.view}${given.length ? `?${query}` : ""}`;
}

function go(changes) {
  const next = address({ ...state, ...changes });
  if (next !== location.hash) history.pushState(null, "", next);
  read();
}

function read() {
  const [view, query] = location.hash.slice(2).split("?");
  const given = new URLSearchParams(query);
  const before = { ...state };
  state.view = VIEWS[view] ? view : "team";
  for (const name of ["phase", "at", "path", "against"]) state[name] = given.get(name) ?? (name === "phase" ? state.phase : "");
  state.repo = given.get("repo") ?? "0";
  if (before.board && ["repo", "phase"].some((name) => before[name] !== state[name]) || Boolean(before.at) !== Boolean(state.at)) listen();
  if (!state.board || before.at !== state.at || before.repo !== state.repo || before.phase !== state.phase) look();
  if (before.phase !== state.phase || before.repo !== state.repo) { state.timeline = null; state.drawings.clear(); lookBack(); }
  else if (before.view !== state.view) lookBack();
  if (before.path !== state.path || before.at !== state.at || before.against !== state.against) lookAtArtifact();
  if (state.view === "handoffs") lookAtHandoffs();
  show();
}

// --- asking ---

const look = lately(async () => {
  const { at, repo, phase } = state;
  const newest = due.at(-1)?.seq ?? 0;
  const before = told;
  try {
    const soon = state.board ? null : "1";
    const board = await ask("board", { at, repo, phase, soon });
    if (at !== state.at || repo !== state.repo || phase !== state.phase) return look();
    if (!at && told !== before) return undefined;
    if (at && state.view === "artifacts") state.pastArtifacts = await ask("artifacts", { at, repo });
    take(board, newest);
  } catch (error) { complain(error.message); }
  return undefined;
});

/** Show a board that knows of the events up to `newest`. */
function take(board, newest) {
  const { at } = state;
  state.board = board;
  complain("");
  const phases = board.team?.phases ?? [];
  if (!phases.some((one) => one.phase === state.phase)) {
    state.phase = phases.find((one) => one.departments)?.phase ?? "";
    lookBack();
  }
  show();
  afterPaint(() => settle(newest, at ? "" : board.team?.commit));
  lookAtHandoffs();
  lookAtCompany();
}

const lookAtCompany = lately(async () => {
  const before = JSON.stringify(state.company);
  try { state.company = await ask("company", { repo: state.repo }); } catch { state.company = []; }
  if (JSON.stringify(state.company) !== before) show();
});

const lookBack = lately(async () => {
  if (!state.phase) return;
  const { phase, repo } = state;
  try {
    const looks = state.view === "time";
    const timeline = await ask("timeline", { phase, repo, look: looks ? "1" : "" });
    if (phase !== state.phase) return;
    state.timeline = timeline;
    for (const one of timeline.moments) state.ages.set(one.commit, one.at_ms);
    showTime();
    show();
    if (timeline.left && looks) setTimeout(lookBack, 20);
    if (looks && (!timeline.left || Date.now() - drawnAt > 1000)) {
      await lookAtPlots();
      drawnAt = Date.now();
      show();
    }
  } catch (error) { complain(error.message); }
});

let drawnAt = 0;
async function lookAtPlots() {
  const wide = Math.max(280, document.querySelector("[data-plot=lanes]")?.clientWidth ?? $("view").clientWidth - 40);
  const half = Math.max(280, document.querySelector("[data-plot=plans]")?.clientWidth ?? wide);
  await Promise.all(["lanes", "plans", "steps", "refusals", "latency"].map(async (name) => {
    const text = await draw({ name, phase: state.phase, repo: state.repo, width: name === "lanes" ? wide : half });
    const key = `${text.length}:${hash(text)}`;
    if (!text || state.drawings.get(name)?.key === key) return;
    const image = drawing(text);
    if (image) state.drawings.set(name, { key, image });
  }));
}

function hash(text) {
  let sum = 0;
  for (let at = 0; at < text.length; at += 1) sum = (sum * 31 + text.charCodeAt(at)) | 0;
  return sum;
}

/** Commits come in bursts; what the scrubber offers may lag a moment behind. */
let coming = null;
function lookBackSoon() {
  coming ??= setTimeout(() => { coming = null; lookBack(); }, state.view === "time" ? 600 : 1500);
}

const lookAtArtifact = lately(async () => {
  const { path, at, against, repo } = state;
  state.artifactError = "";
  try {
    const [artifact, other] = await Promise.all([path ? ask("artifact", { path, at, repo }) : null, path && against ? ask("artifact", { path, at: against, repo }) : null]);
    Object.assign(state, { artifact, other });
  } catch (error) { Object.assign(state, { artifact: null, other: null, artifactError: error.message }); }
  show();
});

const lookAtHandoffs = lately(async () => {
  const { at, repo } = state;
  const before = JSON.stringify(state.handoffs);
  try { state.handoffs = await ask("handoffs", { at, repo }); } catch (error) { complain(error.message); }
  if (at !== state.at) lookAtHandoffs();
  if (JSON.stringify(state.handoffs) !== before) show();
});

// --- how late the page is ---

/** Events that no board shows yet, each with the moment that it names. */
let due = [];
let late = [];
let measured = 0;

function expect(event) {
  due = [...due, { seq: event.seq, ms: Date.parse(event.time), commit: event.data?.commit }].slice(-LATE_KEPT);
}

/** Measure the events that the screen shows: a board of their commit, or one that was asked for after them. */
function settle(newest, commit) {
  const now = Date.now();
  const isShown = (one) => one.seq <= newest || (commit && one.commit === commit);
  for (const { seq, ms } of due.filter(isShown)) {
    if (document.hidden) continue;
    late = [...late, now - ms].slice(-LATE_KEPT);
    const end = performance.now();
    performance.measure("event", { start: Math.max(0, end - (now - ms)), end, detail: { seq } });
    if ((measured += 1) % LATE_KEPT === 0) performance.clearMeasures("event");
  }
  due = due.filter((one) => !isShown(one));
  showLive();
}

function afterPaint(act) {
  requestAnimationFrame(() => setTimeout(act, 0));
}

// --- events ---

let stop = () => {};
let first = 0;
let heard = "0";
/** How many boards the server has told unasked. */
let told = 0;
function listen() {
  const { repo, at } = state;
  stop();
  if (heard !== repo) Object.assign(state, { events: [], live: false });
  heard = repo;
  const since = state.events.length ? { since: state.events[0].seq } : { before: 12 };
  stop = follow({ repo, ...since, ...(at ? {} : { phase: state.phase }) }, {
    onEvent(event) {
      if (state.events.some((one) => one.seq === event.seq)) return;
      state.events = [event, ...state.events].slice(0, EVENTS_KEPT);
      state.unshown += 1;
      setTimeout(() => { if (state.unshown) showSoon(); }, BOARD_MS);
      if (!state.board || event.seq <= first) return;
      if (!state.at) expect(event);
      lookBackSoon();
      if (state.path && event.subject === state.path && !state.at) lookAtArtifact();
    },
    onBoard({ seq, board }) {
      told += 1;
      if (state.phase && !board.team?.phases.some((one) => one.phase === state.phase && one.departments)) { listen(); look(); }
      else take(board, seq);
    },
    onChange() { if (!state.at) look(); },
    onState(isLive, seq) {
      if (isLive && !state.live) { first = seq; look(); lookBack(); }
      state.live = isLive;
      showLive();
    },
  });
}

// --- showing ---

let asked = false;
function showSoon() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { if (asked) show(); });
}

function show() {
  asked = false;
  if (!state.board) return;
  const view = $("view");
  const phase = state.phaseNow();
  if (!phase || phase.departments) mendChildren(view, [VIEWS[state.view][1](state)]);
  if (state.unshown > 12) showSoon();
  state.unshown = 0;
  document.title = `${state.phase || "yolo-fs"}: ${VIEWS[state.view][0]}`;
  $("name").textContent = plain((state.board.root ?? $("name").textContent).split("/").pop(), 40);
  mendChildren($("views"), Object.entries(VIEWS).map(([name, [title]], at) => !isUsed(name) ? null : el("a", { href: address({ ...state, view: name }), "aria-current": name === state.view ? "page" : null, "aria-keyshortcuts": String(at + 1) }, title)).filter(Boolean));
  mendChildren($("phase"), (state.board.team?.phases ?? []).map((one) => el("option", { value: one.phase, "data-key": one.phase }, `${one.phase} · ${one.complete ? "complete" : `${one.pace.steps_done}/${one.pace.steps} steps`}`)));
  $("phase").value = state.phase;
  $("phase").parentElement.hidden = !$("phase").options.length;
  document.body.dataset.commit = state.board.team?.commit ?? "";
  document.body.dataset.past = String(Boolean(state.at));
  showLive();
  showTime();
}

/** Whether a view has something to show; one that is looked at keeps its tab. */
function isUsed(name) {
  if (name === state.view) return true;
  if (name === "machines") return Boolean(state.board.machines);
  if (name === "handoffs") return Boolean(state.handoffs?.lives.length || state.handoffs?.sessions.length || state.phaseNow()?.handoffs?.length);
  return true;
}

function showLive() {
  const isIdle = state.live && state.board?.daemon && !state.board.daemon.running;
  $("live").dataset.live = state.at ? "past" : isIdle ? "idle" : String(state.live);
  $("live-text").textContent = state.at ? `as of ${short(state.at)}` : isIdle ? "no daemon" : state.live ? "live" : "offline: trying again";
  const worst = [...late].sort((a, b) => a - b)[Math.floor(late.length * 0.95)];
  $("live").title = late.length ? `The last ${late.length} events were shown within ${worst} ms (p95)` : "";
}

function showTime() {
  const moments = state.timeline?.moments ?? [];
  const index = place();
  const range = $("when");
  range.max = String(Math.max(0, moments.length - 1));
  range.value = String(index);
  const one = moments[index];
  const words = one ? `${clock(one.at_ms)} · ${short(one.commit)} · ${plain(one.subject, 90)}` : "no commit yet";
  range.setAttribute("aria-valuetext", words);
  $("moment").textContent = moments.length ? `${index + 1} of ${moments.length} · ${words}` : words;
  $("now").disabled = !state.at;
  range.parentElement.hidden = !moments.length;
  $("play").textContent = timer ? "Pause" : "Play";
  for (const image of document.querySelectorAll(".plot svg[data-from]")) mark(image, one);
}

/** Draw a line through a plot where the moment is. */
function mark(image, one) {
  const { from, to, left, right } = image.dataset;
  image.querySelector(".cursor")?.remove();
  if (!one || !from) return;
  const x = Number(left) + (Number(right) - left) * Math.min(1, Math.max(0, (one.at_ms - from) / Math.max(1, to - from)));
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of Object.entries({ x1: x, x2: x, y1: 0, y2: image.viewBox.baseVal.height - 30, class: "cursor" })) line.setAttribute(name, value);
  image.append(line);
}

function place() {
  const moments = state.timeline?.moments ?? [];
  const found = state.at ? moments.findIndex((one) => one.commit.startsWith(state.at)) : moments.length - 1;
  return Math.max(0, found < 0 ? moments.length - 1 : found);
}

function complain(text) {
  const known = $("trouble");
  if (!text) { known?.remove(); return; }
  if (known) known.textContent = plain(text);
  else $("view").before(el("p.trouble", { id: "trouble", role: "alert" }, text));
}

// --- time ---

let timer = null;
function travel(index) {
  const moments = state.timeline?.moments ?? [];
  if (!moments.length) return;
  const at = Math.max(0, Math.min(moments.length - 1, index));
  const next = address({ ...state, at: moments[at].commit });
  history.replaceState(null, "", next);
  read();
}

function now() { if (timer) play(); go({ at: "" }); }

function play() {
  if (timer) { clearInterval(timer); timer = null; }
  else {
    if (place() >= (state.timeline?.moments.length ?? 1) - 1) travel(0);
    timer = setInterval(() => {
      if (place() >= (state.timeline?.moments.length ?? 1) - 1) play();
      else travel(place() + 1);
    }, PLAY_MS);
  }
  showTime();
}

// --- keys, theme, beginning ---

function theme(next) {
  const name = THEMES.includes(next) ? next : "auto";
  document.documentElement.dataset.theme = name;
  $("theme").textContent = `Theme: ${name}`;
  localStorage.setItem("theme", name);
}

function step(by) {
  const phases = state.board?.team?.phases.map((one) => one.phase) ?? [];
  const next = phases[phases.indexOf(state.phase) + by];
  if (next) go({ phase: next, at: "" });
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const types = event.target.closest?.("input:not([type=range]), select, textarea");
  if (types) { if (event.key === "Escape") event.target.blur(); return; }
  const names = Object.keys(VIEWS);
  const scrolls = event.target.closest?.("[tabindex='0']");
  const acts = {
    ArrowLeft: scrolls ? null : () => travel(place() - 1), ArrowRight: scrolls ? null : () => travel(place() + 1), Home: () => travel(0), End: now, n: now,
    " ": event.target.closest?.("button, summary, a") ? null : play, j: () => step(1), k: () => step(-1), t: () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]),
    "?": help, "/": () => { go({ view: "artifacts" }); $("search")?.focus(); },
  };
  const act = names[Number(event.key) - 1] ? () => { go({ view: names[Number(event.key) - 1] }); $("view").focus(); } : acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function help() {
  const dialog = $("keys");
  dialog.replaceChildren(el("h2", { id: "keys-title" }, "Keys"), el("dl", {}, KEYS.map(([name, does]) => [el("dt", {}, el("kbd", {}, name)), el("dd", {}, does)])), el("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  dialog.showModal();
}

async function begin() {
  let kept = "auto";
  try { kept = localStorage.getItem("theme") ?? "auto"; } catch { /* a browser may keep nothing */ }
  theme(kept);
  $("theme").onclick = () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]);
  $("help").onclick = help;
  $("phase").onchange = (event) => go({ phase: event.target.value, at: "" });
  $("repo").onchange = (event) => go({ repo: event.target.value, at: "", phase: "" });
  $("when").oninput = (event) => travel(Number(event.target.value));
  $("back").onclick = () => travel(place() - 1);
  $("on").onclick = () => travel(place() + 1);
  $("now").onclick = now;
  $("play").onclick = play;
  document.addEventListener("keydown", key);
  window.addEventListener("popstate", read);
  window.addEventListener("hashchange", read);
  let width = 0;
  new ResizeObserver(() => { if (Math.abs($("view").clientWidth - width) > 40) { width = $("view").clientWidth; if (state.view === "time") lookBack(); } }).observe($("view"));
  matchMedia("(max-width: 760px)").addEventListener("change", show);
  setInterval(() => { if (document.querySelector(".countdown")) show(); }, 1000);
  setInterval(() => { if (state.company.some((run) => run.acts.some((act) => act.pid))) lookAtCompany(); show(); }, 5000);
  read();
  listen();
  const names = await ask("repositories").catch(() => []);
  if (names.length > 1) { $("repo").hidden = false; $("repo").replaceChildren(...names.map((name, at) => el("option", { value: at }, name))); $("repo").value = state.repo; }
}

begin();

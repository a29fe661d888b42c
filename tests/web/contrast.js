// Returns every visible text whose colour is too close to its ground (WCAG AA: 4.5 : 1, large print 3 : 1).
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const light = ([r, g, b]) => {
    const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const over = (top, below) => top.slice(0, 3).map((value, at) => value * top[3] + below[at] * (1 - top[3]));
  const ground = (element) => {
    const stack = [];
    for (let one = element; one; one = one.parentElement) {
      const colour = rgba(getComputedStyle(one).backgroundColor);
      if (colour[3]) stack.push(colour);
      if (colour[3] === 1) break;
    }
    return stack.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const bar = (text) => {
    const box = text.getBoundingClientRect();
    const bars = [...text.ownerSVGElement.querySelectorAll("rect")].filter((one) => {
      const it = one.getBoundingClientRect();
      return it.left <= box.left + 1 && it.right >= box.right - 1 && it.top <= box.top + 4 && it.bottom >= box.bottom - 4;
    });
    return bars.length ? rgba(getComputedStyle(bars.at(-1)).fill) : null;
  };
  const wrong = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    const element = text.parentElement;
    if (!text.data.trim() || !element.checkVisibility() || ["TITLE", "OPTION", "SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName.toUpperCase()) || element.closest("[disabled], .hidden, .skip")) continue;
    const style = getComputedStyle(element);
    const inSvg = element instanceof SVGElement;
    const below = (inSvg && bar(element)) || ground(inSvg ? element.ownerSVGElement.parentElement : element);
    const colour = over(rgba(inSvg ? style.fill : style.color), below);
    const [a, b] = [light(colour), light(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) wrong.push(`${text.data.trim().slice(0, 30)}: ${ratio.toFixed(2)} (${element.className?.baseVal ?? element.className})`);
  }
  return [...new Set(wrong)];
}

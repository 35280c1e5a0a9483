// The texts of a page that stand out too little from what is below them: WCAG 2 asks for 4.5:1, and 3:1 of large text.
// What is below is what the browser finds at the middle of the text's first line. Returns how many were judged, and the faint ones.
const parsed = text => [...text.matchAll(/rgba?\(([^)]*)\)/g)].map(found => found[1].split(",").map(Number)).map(([r, g, b, a]) => [r, g, b, a ?? 1]);
const over = ([r, g, b, a], ground) => [r, g, b].map((value, k) => value * a + ground[k] * (1 - a));
const light = rgb => rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const ratio = (one, other) => { const [b, a] = [light(one), light(other)].sort((x, y) => x - y); return (a + 0.05) / (b + 0.05); };
const opacity = one => one ? Number(getComputedStyle(one).opacity) * opacity(one.parentElement) : 1;
const SHAPES = ["rect", "path", "circle", "ellipse", "polygon"], SKIPPED = ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION", "title", "style"];
// The colours that an element may lay below a text, over each of the grounds: its plain one, those of its gradient.
function laid(one, grounds) {
  const style = getComputedStyle(one), seen = opacity(one), isShape = SHAPES.includes(one.localName);
  if (one instanceof SVGElement && !isShape && one.localName !== "svg") return grounds;
  const [plain] = parsed(isShape ? style.fill : style.backgroundColor), through = isShape ? Number(style.fillOpacity) : 1;
  if (plain) grounds = grounds.map(ground => over([...plain.slice(0, 3), plain[3] * seen * through], ground));
  const drawn = isShape ? [] : parsed(style.backgroundImage);
  return drawn.length ? grounds.flatMap(ground => [...drawn.map(([r, g, b, a]) => over([r, g, b, a * seen], ground))]) : grounds;
}
const faint = [];
let judged = 0;
for (const one of document.body.querySelectorAll("*")) {
  const style = getComputedStyle(one), words = [...one.childNodes].find(node => node.nodeType === 3 && node.data.trim());
  if (!words || SKIPPED.includes(one.nodeName) || style.visibility !== "visible" || one.closest(".unseen")) continue;
  const range = document.createRange();
  range.selectNodeContents(words);
  if (!range.getClientRects().length) continue;
  one.scrollIntoView({block: "center", inline: "center"});
  const box = range.getClientRects()[0];
  if (box.width < 1 || box.height < 1) continue;
  const stack = document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2), layers = stack.slice(stack.indexOf(one));
  if (!stack.includes(one)) { layers.length = 0; for (let up = one; up; up = up.parentElement) layers.push(up); }
  let grounds = [[255, 255, 255]];
  for (const layer of layers.reverse()) grounds = laid(layer, grounds);
  const isSvg = one instanceof SVGElement;
  if (isSvg && style.paintOrder.startsWith("stroke") && style.stroke !== "none") grounds = parsed(style.stroke).map(rgb => rgb.slice(0, 3));
  const [ink] = parsed(isSvg ? style.fill : style.color), size = parseFloat(style.fontSize);
  const found = Math.min(...grounds.map(ground => ratio(over([...ink.slice(0, 3), ink[3] * opacity(one)], ground), ground)));
  judged++;
  if (found < (size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700 ? 3 : 4.5))
    faint.push(`${found.toFixed(2)}:1 ${one.nodeName}.${one.getAttribute("class")} "${words.data.trim().slice(0, 40)}" on ${grounds.map(rgb => rgb.map(Math.round))}`);
}
scrollTo(0, 0);
return [judged, [...new Set(faint)]];

// Panels: the chosen task, the source lines, the iteration space, the kernels, the tasks found. All text from users goes in as text.

const byId = id => document.getElementById(id);

function el(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") Object.assign(made.style, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...inside.filter(one => one !== null && one !== undefined));
  return made;
}

function keyOf(kernel) {
  const {letter} = run.kernels[kernel], colour = theme.kernel[kernel];
  const stripes = colour.isHatched ? `repeating-linear-gradient(135deg,${colour.ink === "#000000" ? "rgba(255,255,255,.45)" : "rgba(0,0,0,.4)"} 0 3px,transparent 3px 7px)` : "none";
  return el("span", {class: "key", style: {backgroundColor: colour.text, backgroundImage: stripes, color: colour.ink}}, letter);
}

const button = (text, click, title) => el("button", {type: "button", class: "plain link", onclick: click, title}, text);
const taskButton = task => button(short(nameOf(task), 48), () => choose(task), nameOf(task));
const siteOf = task => run.sites[run.site[task]];
const table = (head, rows, right = []) => el("table", {}, el("thead", {}, el("tr", {}, ...head.map((text, k) => el("th", {scope: "col", class: right.includes(k) ? "right" : undefined}, text)))), el("tbody", {}, ...rows));
const row = (cells, right = [], attributes = {}) => el("tr", attributes, ...cells.map((cell, k) => el("td", {class: right.includes(k) ? "right" : undefined}, cell ?? "")));
const track = (share, colour, isHatched) => el("span", {class: "track"}, el("i", {class: isHatched ? "hatch" : undefined, style: {width: `${Math.min(100, 100 * share)}%`, background: isHatched ? "" : colour}}));

// -- the chosen task ---------------------------------------------------------------------------------------------------
const HELD = {
  not: "nothing held it", edge: "the last task that it waits for ended", executor: "its executor was busy", window: "the window had no room",
  bytes: "the window of bytes had no room", entries: "the window of entries had no room", edges: "the window of edges had no room",
  ready: "too many tasks were ready", mark: "its process stood", release: "timing had not released it", start: "the start policy held it",
  submit: "the orchestrator submitted others first", dispatch: "its AICPU dispatched and retired others", calendar: "the calendar came to it then",
};
const AT_SUBMISSION = new Set(["window", "bytes", "entries", "edges", "ready", "submit", "mark"]);

function showTask() {
  const panel = byId("task"), task = state.task;
  if (task < 0) { panel.replaceChildren(...nothingChosen()); return; }
  const held = given.held[run.held[task]], ready = Math.max(run.ready[task], run.submit[task]), site = siteOf(task), rows = [];
  const heldIt = run.cause[task], line = one => siteOf(one).line > 0 ? lineButton(siteOf(one)) : "–";
  if (AT_SUBMISSION.has(held)) rows.push(row([held === "submit" ? "submission" : held, number(run.submit[task]), causeText(held, heldIt), heldIt >= 0 ? line(heldIt) : "–"], [1]));
  const last = state.before.reduce((best, one) => best === null || run.complete[one.task] > run.complete[best.task] ? one : best, null);
  if (last && ready > run.submit[task]) rows.push(row(["edge", number(ready - run.submit[task]), el("span", {}, keyOf(run.kernel[last.task]), " ", taskButton(last.task), ` ended: ${reasonText(last, task)}`), line(last.task)], [1]));
  else if (ready > run.submit[task]) rows.push(row(["mark", number(ready - run.submit[task]), HELD[held === "mark" ? "mark" : "edge"], "–"], [1]));
  const wait = run.start[task] - ready;
  if (wait > 0) rows.push(row([held === "edge" || AT_SUBMISSION.has(held) ? "dispatch" : held, number(wait), held === "edge" || AT_SUBMISSION.has(held) ? "its AICPU dispatched it" : causeText(held, heldIt), heldIt >= 0 && !AT_SUBMISSION.has(held) ? line(heldIt) : "–"], [1], wait > given.dispatch ? {class: "bad"} : {}));
  rows.push(row(["runs", number(run.length[task]), `on ${given.names ? spansOf(task).map(span => executorName(run.spans.executor[span])).join(", ") : `${executorName(run.executor[task])}, AICPU ${run.aicpu[run.executor[task]]}`}`, line(task)], [1]));
  panel.replaceChildren(
    el("h2", {}, keyOf(run.kernel[task]), " ", el("span", {title: nameOf(task)}, short(nameOf(task), 56)), el("small", {}, `task ${number(task)} of ${number(run.n)}${run.onChain.has(task) ? ", on the chain" : ""}`)),
    strip(task, ready), el("p", {class: "dim"}, "One cause at each boundary"), table(["held by", given.unit, "what", "line"], rows, [1]),
    neighbourList("waits for", state.before, task), neighbourList("wakes", state.after, task), ...regionMaps(task, site), irOf(run.kernel[task]));
}

function nothingChosen() {
  const longest = longestWaits();
  return [el("h2", {}, "Longest waits", el("small", {}, "ready, not started")),
          longest.length ? table(["task", given.unit, "held by"], longest.map(task => row([el("span", {}, keyOf(run.kernel[task]), " ", taskButton(task)), number(waited(task)), given.held[run.held[task]]], [1])), [1]) : el("p", {class: "dim"}, run.n ? "No task waited once it was ready." : "No task ran."),
          el("p", {class: "dim"}, run.n ? "Click a task, a line or a row to see why it ran when it did." : "")];
}

function longestWaits(most = 10) {
  const found = [];
  for (let k = 0; k < run.n; k++) {
    const wait = waited(k);
    if (wait <= 0 || (found.length === most && wait <= waited(found[most - 1]))) continue;
    found.splice(lowerBound(found, -wait, at => -waited(found[at])), 0, k);
    if (found.length > most) found.pop();
  }
  return found;
}

function causeText(held, by) {
  if (by < 0) return HELD[held] ?? held;
  const what = {executor: "its executor ran ", window: "the window was full until ", calendar: "the calendar has before it ", edge: "it waited for "}[held] ?? `${HELD[held] ?? held}: `;
  return el("span", {}, what, keyOf(run.kernel[by]), " ", taskButton(by), ` ended at ${number(run.end[by])}`);
}

// Return the reasons of an edge; for a conflict of regions also the tensor that both use.
function reasonText({task: other, reason}, task) {
  if (!/RAW|WAR|WAW/.test(reason)) return reason;
  const mine = new Set(siteOf(task).args.map(arg => arg.tensor)), both = siteOf(other).args.find(arg => mine.has(arg.tensor) && (arg.role !== "in" || !reason.startsWith("RAW")));
  return both ? `${reason} on ${short(given.tensors[both.tensor].name, 24)}` : reason;
}

function strip(task, ready) {
  const from = run.submit[task], to = Math.max(run.end[task], from + 1), x = time => 100 * (time - from) / (to - from), start = run.start[task];
  const part = (a, b, attributes, text) => b > a ? el("span", {...attributes, style: {left: `${x(a)}%`, width: `${Math.max(0.4, x(b) - x(a))}%`, ...(attributes.style ?? {})}}, x(b) - x(a) > 24 ? text : "") : null;
  const colour = theme.kernel[run.kernel[task]];
  const mark = (time, text, top, align) => el("b", {style: {[align]: align === "right" ? `${100 - x(time)}%` : `${x(time)}%`, top}}, text);
  const isLate = x(start) > 60;
  return el("div", {class: "strip", role: "img", "aria-label": `submitted ${number(from)}, ready ${number(ready)}, started ${number(start)}, ended ${number(run.end[task])}`},
    part(from, ready, {class: "dots"}, ""), part(ready, start, {class: waited(task) > 0 ? "hatch" : "dots"}, waited(task) > 0 ? el("em", {}, `waits ${number(start - ready)}`) : ""),
    part(start, run.end[task], {style: {background: colour.text, color: colour.ink}}, `runs ${number(run.length[task])}`),
    mark(from, `submitted ${number(from)}`, "-17px", "left"), mark(ready, `ready ${number(ready)}`, "21px", x(ready) > 60 ? "right" : "left"),
    start > ready || ready > from ? mark(start, `started ${number(start)}`, x(start) > 30 ? "-17px" : "21px", isLate ? "right" : "left") : null,
    x(start) > 60 && x(start) > 30 ? mark(run.end[task], `ended ${number(run.end[task])}`, "21px", "right") : mark(run.end[task], `ended ${number(run.end[task])}`, "-17px", "right"));
}

function neighbourList(title, found, task) {
  if (!found.length) return el("p", {class: "dim"}, given.edges.count ? `It ${title === "wakes" ? "wakes no task" : "waits for no task"}.` : title === "wakes" ? "" : given.edges.why ?? "");
  const shown = found.slice(0, 10);
  return el("div", {style: {marginTop: "8px"}}, table([title, "why", "ended"], shown.map(one => row([el("span", {}, keyOf(run.kernel[one.task]), " ", taskButton(one.task)), reasonText(one, task), number(run.end[one.task])], [2])), [2]),
            found.length > 10 ? el("p", {class: "dim"}, `${number(found.length - 10)}${found.length >= 400 ? "+" : ""} more`) : null);
}

const irOf = kernel => el("details", {style: {marginTop: "8px"}}, el("summary", {}, `Tile IR of ${short(run.kernels[kernel].name, 40)}`), el("pre", {tabindex: "0", "aria-label": "tile IR"}, run.kernels[kernel].ir));

// -- regions -----------------------------------------------------------------------------------------------------------
const regionColumns = new Map();

async function loadRegions(siteNumber) {
  const site = run.sites[siteNumber];
  if (!run.ofSite) {
    run.ofSite = new Int32Array(run.n);
    const next = new Int32Array(run.sites.length);
    for (let k = 0; k < run.n; k++) run.ofSite[k] = next[run.site[k]]++;
  }
  for (const arg of site.args) if (arg.offset && !regionColumns.has(arg)) {
    const [offset, rows, cols, down, across] = await Promise.all(["offset", "rows", "cols", "down", "across"].map(name => column(arg[name])));
    regionColumns.set(arg, {offset, rows, cols, down, across});
  }
}

// Return a figure for each argument: the tensor's last two dimensions, with the region that the task reads (blue) or writes (ink).
function regionMaps(task, site) {
  if (!site.args.length) return [];
  return [el("div", {class: "maps"}, ...site.args.slice(0, 8).map(arg => {
    const tensor = given.tensors[arg.tensor], role = arg.role === "in" ? "reads" : arg.role === "out" ? "writes" : arg.role;
    const columns = regionColumns.get(arg), caption = text => el("figcaption", {title: `${arg.param}: ${text}`}, el("b", {}, arg.param), ` ${role} `, el("span", {class: "mono"}, short(text, 44)));
    if (!columns || tensor.fresh) return el("figure", {}, caption(arg.view));
    const at = run.ofSite[task], rows = columns.rows[at], cols = columns.cols[at];
    if (rows <= 0 || cols <= 0) return el("figure", {}, caption(`${tensor.name}: empty`));
    const box = boxIn(tensor, columns.offset[at], [[rows, columns.down[at]], [cols, columns.across[at]]]);
    if (!box) return el("figure", {}, caption(arg.view));
    const text = `${tensor.name}[${box.map(([begin, size]) => size === 1 ? begin : `${begin}:${begin + size}`).join(", ")}]`;
    const n = tensor.shape.length, [dy, dx] = n > 1 ? [tensor.shape[n - 2], tensor.shape[n - 1]] : [1, tensor.shape[0] ?? 1];
    const [y, x] = n > 1 ? [box[n - 2], box[n - 1]] : [[0, 1], box[0] ?? [0, 1]];
    const w = 120, h = Math.max(14, Math.min(70, Math.round(w * dy / dx))), svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": text})) svg.setAttribute(name, value);
    for (const [name, value] of Object.entries({x: x[0] / dx * w, y: y[0] / dy * h, width: Math.max(2, x[1] / dx * w), height: Math.max(2, y[1] / dy * h), fill: arg.role === "in" ? theme.link : theme.ink})) rect.setAttribute(name, value);
    svg.append(rect);
    return el("figure", {}, caption(text), svg, el("span", {}, tensor.shape.join(" × ")));
  }))];
}

// Return begin and size in each dimension of a strided box; null where it is none (negative or foreign strides).
function boxIn(tensor, offset, extents) {
  const order = tensor.shape.map((_, dim) => dim).sort((a, b) => tensor.strides[b] - tensor.strides[a]);
  const box = tensor.shape.map(() => [0, 1]);
  for (const dim of order) {
    if (tensor.strides[dim] <= 0) { if (tensor.shape[dim] > 1) return null; continue; }
    const begin = tensor.shape[dim] === 1 ? 0 : Math.floor(offset / tensor.strides[dim]);
    if (begin < 0 || begin >= tensor.shape[dim]) return null;
    box[dim][0] = begin; offset -= begin * tensor.strides[dim];
  }
  for (const [size, stride] of extents) {
    if (size === 1) continue;
    const dim = tensor.shape.findLastIndex((extent, k) => tensor.strides[k] === stride && extent > 1);
    if (dim < 0 || box[dim][0] + size > tensor.shape[dim]) return null;
    box[dim][1] = size;
  }
  return box;
}

// -- source lines ------------------------------------------------------------------------------------------------------
const lineKey = site => `${site.file}:${site.line}`;
const lineQuery = site => `line ${/^[^\s"]+$/.test(site.at) ? site.at : site.line}`;
const lineButton = site => button(String(site.line), () => find(lineQuery(site)), `tasks of ${site.at}`);
let lineSums = null;

function sumLines() {
  lineSums = new Map();
  for (let k = 0; k < run.n; k++) {
    const key = lineKey(siteOf(k));
    let sum = lineSums.get(key);
    if (!sum) lineSums.set(key, sum = {site: siteOf(k), kernel: run.kernel[k], run: 0, wait: 0, n: 0});
    sum.run += run.length[k]; sum.wait += waited(k); sum.n++;
  }
}

function showSource() {
  if (!lineSums) sumLines();
  const sums = [...lineSums.values()], most = Math.max(1, ...sums.map(sum => sum.run)), waits = sums.reduce((all, sum) => all + sum.wait, 0);
  const mine = state.task >= 0 ? lineKey(siteOf(state.task)) : "", parts = [];
  for (const {file, name, lines} of given.sources) {
    const shown = [];
    const indents = lines.filter(([, text]) => text.trim()).map(([, text]) => text.length - text.trimStart().length), indent = indents.length ? Math.min(...indents) : 0;
    let before = 0;
    for (const [at, text] of lines) {
      if (before && at > before + 1) shown.push(el("div", {class: "line"}, el("span", {class: "no"}, "⋮")));
      before = at;
      const sum = lineSums.get(`${file}:${at}`), inside = [el("span", {class: "no"}, String(at)), el("code", {}, text.slice(indent) || "…")];
      if (!sum) { shown.push(el("div", {class: "line"}, ...inside)); continue; }
      inside.push(track(sum.run / most, theme.kernel[sum.kernel].text), el("span", {class: "track", title: "ready, not started"}, el("i", {class: "hatch", style: {width: `${waits ? 100 * sum.wait / waits : 0}%`}})));
      const title = `${number(sum.n)} tasks, ${number(sum.run)} ${given.unit} on cores, ${number(sum.wait)} ready but not started (${percent(waits ? sum.wait / waits : 0)})`;
      shown.push(el("button", {type: "button", class: `plain line${mine === `${file}:${at}` ? " chosen" : ""}`, "data-line": String(at), title, "aria-label": `line ${at}: ${title}`, onclick: () => find(lineQuery(sum.site))}, ...inside));
    }
    parts.push(el("h2", {}, short(name, 40), el("small", {}, `${given.unit} on cores, and ready but not started, by line`)), el("div", {class: "lines", tabindex: "0", role: "group", "aria-label": name}, ...shown));
  }
  byId("source").replaceChildren(...(parts.length ? parts : [el("h2", {}, "Source"), el("p", {class: "dim"}, "The lines of the workload are not known.")]));
  const chosen = byId("source").querySelector(".chosen");
  if (chosen) { const box = chosen.parentElement; if (chosen.offsetTop - box.offsetTop < box.scrollTop || chosen.offsetTop - box.offsetTop > box.scrollTop + box.clientHeight - 20) box.scrollTop = chosen.offsetTop - box.offsetTop - 60; }
}

// -- iteration space ---------------------------------------------------------------------------------------------------
const MEASURES = {wait: ["ready, not started", waited], length: ["cycles", task => run.length[task]], start: ["start", task => run.start[task]], executor: ["executor", task => run.executor[task]]};
const grids = new Map();

// Return the place of each task of a call: the innermost index across, the next one down, the others as blocks.
function gridOf(siteNumber) {
  if (grids.has(siteNumber)) return grids.get(siteNumber);
  const site = run.sites[siteNumber], names = site.index.map(([label]) => label), values = site.index.map(([, name]) => run.index[name]);
  let n = 0;
  for (const one of run.site) n += one === siteNumber;
  const tasks = new Int32Array(n), x = new Int32Array(n), y = new Int32Array(n);
  for (let k = 0, at = 0; k < run.n; k++) if (run.site[k] === siteNumber) tasks[at++] = k;
  const across = values.length ? values[values.length - 1] : null, above = values.slice(0, -1);
  const spans = above.map(column => { let least = Infinity, most = -Infinity; for (const task of tasks) { least = Math.min(least, column[task]); most = Math.max(most, column[task]); } return [least, most - least + 1]; });
  const lineOf = task => { let key = 0; above.forEach((column, k) => { key = key * spans[k][1] + column[task] - spans[k][0]; }); return key; };      // in the order of the indices
  const columns = across ? sortedSet(tasks, task => across[task]) : [0], keys = sortedSet(tasks, lineOf), columnAt = new Map(columns.map((value, k) => [value, k])), lineAt = new Map(keys.map((key, k) => [key, k]));
  const lines = new Array(keys.length);
  tasks.forEach((task, k) => { x[k] = across ? columnAt.get(across[task]) : 0; y[k] = lineAt.get(lineOf(task)); lines[y[k]] ??= above.map(column => column[task]); });
  const made = {tasks, x, y, columns, lines, names};
  grids.set(siteNumber, made);
  return made;
}

const sortedSet = (tasks, of) => { const found = new Set(); for (const task of tasks) found.add(of(task)); return [...found].sort((a, b) => a - b); };

function showSpace() {
  const panel = byId("space");
  if (!run.n) { panel.replaceChildren(el("h2", {}, "Iteration space"), el("p", {class: "dim"}, "No task ran, so it is empty.")); return; }
  const siteNumber = state.task >= 0 ? run.site[state.task] : state.site >= 0 ? state.site : largestSite(), made = gridOf(siteNumber), site = run.sites[siteNumber];
  const choice = el("select", {"aria-label": "colour of the cells", onchange: event => { state.measure = event.target.value; show(); }}, ...Object.entries(MEASURES).map(([name, [text]]) => el("option", {value: name, ...(name === state.measure ? {selected: ""} : {})}, text)));
  const one = el("canvas", {role: "img", "aria-label": `iteration space of ${short(run.kernels[site.kernel].name)}: ${number(made.tasks.length)} tasks`});
  panel.replaceChildren(el("h2", {}, `${short(run.kernels[site.kernel].name, 30)}, ${number(made.tasks.length)} tasks`, el("small", {}, choice)), el("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "iteration space"}, one));
  drawSpace(one, made, panel.clientWidth);
  if (state.measure === "wait" && !made.tasks.some(waited)) panel.append(el("p", {class: "dim"}, "None of them waited once it was ready."));
}

function largestSite() {
  const n = new Int32Array(run.sites.length);
  for (const one of run.site) n[one]++;
  return n.indexOf(Math.max(...n));
}

function drawSpace(one, made, room) {
  const scale = window.devicePixelRatio || 1, {columns, lines, x, y, tasks, names} = made, value = MEASURES[state.measure][1];
  const nAbove = names.length - 1, nOuter = Math.max(0, nAbove - 1), left = nOuter > 0 ? 92 : nAbove > 0 ? 62 : 8, top = names.length ? 18 : 4;
  const wide = Math.max(1, Math.min(30, Math.floor((room - left - 16) / Math.max(1, columns.length)))), perPixel = Math.max(1, Math.ceil(columns.length / Math.max(50, room - left - 16)));
  const tall = lines.length > 2000 ? 1 : lines.length > 200 ? 3 : lines.length > 60 ? 9 : 13, linesPerPixel = Math.max(1, Math.ceil(lines.length / 4000));
  const block = key => key.slice(0, -1).join();
  let gaps = 0;
  const yOf = lines.map((key, k) => { if (k && nOuter && tall > 3 && block(key) !== block(lines[k - 1])) gaps += 4; return top + Math.floor(k / linesPerPixel) * tall + gaps; });
  const width = left + Math.ceil(columns.length / perPixel) * wide + 8, height = (yOf[yOf.length - 1] ?? top) + tall + 4, px = size => Math.round(size * scale);
  one.width = px(width); one.height = px(height); one.style.width = width + "px"; one.style.height = height + "px";
  const context = one.getContext("2d"), cells = new Pixels(one.width, one.height), gap = wide > 4 ? 1 : 0, below = tall > 4 ? 1 : 0;
  let least = Infinity, most = -Infinity;
  for (const task of tasks) { const it = value(task); least = Math.min(least, it); most = Math.max(most, it); }
  if (state.measure === "wait") least = 0;
  const ground = rgb(theme.hair), full = rgb(state.measure === "wait" ? theme.bad : theme.link), paper = rgb(theme.bg), isExecutor = state.measure === "executor";
  const shades = Array.from({length: 33}, (_, k) => isExecutor ? mixed(rgb(theme.hue[k % 8]), paper, k % 32 < 8 ? 0.28 : 0.28 + 0.14 * Math.floor(k % 32 / 8)) : mixed(ground, full, k / 32));
  const solid = shades.map(pixel), pale = shades.map(shade => pixel(mixed(shade, paper, 0.75)));
  const shareOf = task => most > least ? (value(task) - least) / (most - least) : 0;
  cells.data.fill(theme.bgPx);
  for (let k = 0; k < tasks.length; k++) {
    const task = tasks[k], x0 = left + Math.floor(x[k] / perPixel) * wide, y0 = yOf[y[k]], shade = isExecutor ? run.executor[task] % 32 : Math.round(shareOf(task) * 32);
    cells.fill(px(x0), px(x0 + wide - gap), px(y0), px(y0 + tall - below), (lanes.lit !== null && !lanes.lit[task] ? pale : solid)[shade]);
  }
  context.putImageData(cells.image, 0, 0);
  context.scale(scale, scale);
  context.font = "9.5px Inter, system-ui, sans-serif"; context.textBaseline = "middle";
  context.fillStyle = theme.ink3;
  if (names.length) { context.fillText(`${short(names[nAbove], 8)}${names[nAbove] ? "=" : ""}${columns[0]}`, left, 9); context.textAlign = "right"; if (columns.length > 2) context.fillText(String(columns[columns.length - 1]), width - 8, 9); context.textAlign = "left"; }
  let before = -20;
  if (nAbove > 0) lines.forEach((key, k) => {
    if (yOf[k] < before + 11) return;
    const isFirst = nOuter && (!k || block(key) !== block(lines[k - 1]));
    const label = (at) => `${short(names[at], 6)}${names[at] ? "=" : ""}${key[at]}`;
    context.fillText(short((isFirst ? key.slice(0, -1).map((_, at) => label(at)).join(" ") + " " : "") + label(nOuter), 14), 0, yOf[k] + tall / 2);
    before = yOf[k];
  });
  if (wide >= 22 && tall >= 13 && tasks.length <= 1200) {
    context.textAlign = "center";
    for (let k = 0; k < tasks.length; k++) {
      const it = value(tasks[k]), isPale = lanes.lit !== null && !lanes.lit[tasks[k]];
      if (!it && !isExecutor) continue;
      context.fillStyle = isPale ? theme.ink3 : !isExecutor && shareOf(tasks[k]) > 0.6 ? theme.bg : theme.ink;
      context.fillText(isExecutor ? shortName(run.executor[tasks[k]]) : compact(it), left + x[k] * wide + (wide - gap) / 2, yOf[y[k]] + tall / 2);
    }
  }
  const chosen = state.task >= 0 ? tasks.indexOf(state.task) : -1;
  if (chosen >= 0) { context.strokeStyle = theme.ink; context.lineWidth = 2; context.strokeRect(left + Math.floor(x[chosen] / perPixel) * wide, yOf[y[chosen]], Math.max(3, wide - gap), Math.max(3, tall - below)); }
  one.onclick = event => {
    const at = Math.floor((event.offsetX - left) / wide), hit = tasks.findIndex((_, k) => Math.floor(x[k] / perPixel) === at && event.offsetY >= yOf[y[k]] && event.offsetY < yOf[y[k]] + tall);
    if (hit >= 0) choose(tasks[hit]);
  };
}

const counted = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
const compact = value => value >= 1e6 ? `${(value / 1e6).toFixed(1)}m` : value >= 1e4 ? `${Math.round(value / 1e3)}k` : value >= 1e3 ? `${(value / 1e3).toFixed(1)}k` : String(Math.round(value));

// -- kernels and tasks found -------------------------------------------------------------------------------------------
let kernelSums = null;

function showKernels() {
  kernelSums ??= sumKernels();
  const most = Math.max(1, ...kernelSums.map(sum => sum.total)), longest = Math.max(1, ...kernelSums.map(sum => sum.wait / Math.max(1, sum.n)));
  const right = [2, 3, 5, 6, 7], mine = state.task >= 0 ? run.kernel[state.task] : -1;
  const rows = kernelSums.slice(0, 40).map(sum => row([
    el("span", {}, keyOf(sum.kernel), " ", button(short(run.kernels[sum.kernel].name, 32), () => find(kernelQuery(sum.kernel)), run.kernels[sum.kernel].name)), given.pools.length > 1 ? [...sum.pools].map(pool => given.pools[pool]).join(", ") : counted(sum.executors.size, given.place), number(sum.n), number(sum.total),
    track(sum.total / most, theme.kernel[sum.kernel].text), number(sum.total / sum.n), number(sum.longest),
    el("span", {class: sum.wait / sum.n === longest && longest > sum.total / sum.n ? "bad" : undefined}, number(sum.wait / sum.n))], right, {class: sum.kernel === mine ? "chosen" : undefined}));
  byId("kernels").replaceChildren(el("h2", {}, "Kernels", el("small", {}, given.unit)), table(["kernel", given.pools.length > 1 ? "unit" : "on", "tasks", "total", "", "mean", "max", "mean wait"], rows, right), kernelSums.length > 40 ? el("p", {class: "dim"}, `${kernelSums.length - 40} more`) : "");
}

function kernelQuery(kernel) { const {name} = run.kernels[kernel]; return /^[^\s"]+$/.test(name) ? `kernel=${name}` : `kernel="${name.replaceAll('"', "")}"`; }

function sumKernels() {
  const sums = run.kernels.map((_, kernel) => ({kernel, n: 0, total: 0, longest: 0, wait: 0, pools: new Set(), executors: new Set()}));
  for (let k = 0; k < run.n; k++) {
    const sum = sums[run.kernel[k]];
    sum.n++; sum.total += run.length[k]; sum.wait += waited(k); sum.longest = Math.max(sum.longest, run.length[k]);
    sum.pools.add(run.pool[run.executor[k]]); sum.executors.add(run.executor[k]);
  }
  return sums.filter(sum => sum.n).sort((a, b) => b.total - a.total);
}

function showMatches() {
  const panel = byId("matches"), lit = lanes.lit;
  if (!lit) {
    const rows = causes().map(([text, tone, cycles]) => row([text, number(cycles), percent(cycles / run.total), track(cycles / run.total, tone === "work" ? theme.work : theme.sub, tone === "bad")], [1, 2]));
    panel.replaceChildren(el("h2", {}, "The makespan by cause", el("small", {}, "from cycle 0 to the end of the last task; [ and ] walk it")), rows.length ? table(["cause", given.unit, "share", ""], rows, [1, 2]) : el("p", {class: "dim"}, "No task ran."));
    return;
  }
  const found = state.matches.slice(0, 14);
  panel.replaceChildren(el("h2", {}, "Tasks found", el("small", {}, `${number(state.matches.length)} of ${number(run.n)}`)),
    table(["task", "start", "ran", "waited", "held by"], found.map(task => row([el("span", {}, keyOf(run.kernel[task]), " ", taskButton(task)), number(run.start[task]), number(run.length[task]), number(waited(task)), given.held[run.held[task]]], [1, 2, 3], {class: task === state.task ? "chosen" : undefined})), [1, 2, 3]),
    state.matches.length > found.length ? el("p", {class: "dim"}, `${number(state.matches.length - found.length)} more`) : "");
}

// -- the head ----------------------------------------------------------------------------------------------------------
function showHead() {
  const used = new Set(run.executor).size, {total, bound} = given;
  byId("about").textContent = `${given.title} · ${counted(run.n, "task")} of ${counted(run.kernels.length, "kernel")} on ${used} of ${counted(run.nExecutors, given.place)} · ${number(total)} ${given.unit}`;
  byId("verdict").textContent = given.sentence || (run.n ? "" : "No task ran.");
  byId("advice").textContent = given.advice ?? "";
  const gap = Math.max(0, total - bound), isAbove = gap >= 0.005 * bound, bar = byId("made-of"), sorted = causes();
  const part = (share, attributes) => el("span", {...attributes, style: {display: "inline-block", height: "100%", width: `${100 * share}%`, ...attributes.style}});
  const colours = {work: theme.work, submission: theme.sub, rest: theme.line, bad: theme.bad};
  if (!run.n) { bar.replaceChildren(); return; }
  bar.setAttribute("aria-label", `lower bound ${number(bound)}, gap ${number(gap)}, total ${number(total)}; chain of causes: ${sorted.map(([text, , cycles]) => `${text} ${percent(cycles / total)}`).join(", ")}`);
  bar.replaceChildren(
    el("div", {style: {display: "flex", gap: "16px", fontSize: "11px"}}, el("span", {}, `bound ${number(bound)}`), el("span", {class: isAbove ? "bad" : "dim", style: {fontWeight: 600}}, isAbove ? `gap ${number(gap)} · ${percent(gap / Math.max(1, bound))}` : "at the bound"), el("b", {style: {marginLeft: "auto"}}, number(total))),
    el("div", {style: {height: "18px", whiteSpace: "nowrap", fontSize: 0, background: theme.hair}}, part(Math.min(1, bound / run.total), {style: {background: theme.work, borderRight: `2px solid ${theme.ink}`, boxSizing: "border-box"}}), gap ? part(gap / run.total, {class: "hatch"}) : null),
    el("div", {style: {height: "9px", whiteSpace: "nowrap", fontSize: 0, marginTop: "5px", overflow: "hidden"}}, ...sorted.map(([text, tone, cycles]) => part(cycles / run.total, {title: text, style: {background: colours[tone]}}))),
    el("div", {style: {display: "flex", flexWrap: "wrap", gap: "0 14px", fontSize: "11px"}}, ...sorted.slice(0, 4).map(([text, tone, cycles]) => el("span", {class: tone === "bad" ? "bad" : undefined}, `${text} ${percent(cycles / run.total)}`))));
}

function showLegend() {
  kernelSums ??= sumKernels();
  const shown = kernelSums.slice(0, 12);
  byId("legend").replaceChildren(...shown.map(({kernel}) => el("span", {}, keyOf(kernel), " ", short(run.kernels[kernel].name, 30))), ...(kernelSums.length > 12 ? [el("span", {class: "dim"}, `${kernelSums.length - 12} other kernels`)] : []),
    el("span", {style: {marginLeft: "auto"}}, el("span", {class: "swatch", style: {background: `repeating-linear-gradient(135deg,${theme.badline} 0 2px,${theme.badtint} 2px 6px)`}}), "idle, and work is ready"),
    el("span", {}, el("span", {class: "swatch", style: {background: theme.hair}}), "idle, nothing is ready"), el("span", {}, el("span", {class: "swatch", style: {background: theme.ink, height: "3px", verticalAlign: "3px"}}), "on the chain"));
}

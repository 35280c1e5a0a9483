// Lanes: the overview, rows of counts, and a lane for each executor, from the whole run down to single tasks.
//
// Where more tasks than pixels are in view, a lane is a density bar: its height is the busy share, its colour the kernel that ran most.
// Bars come from a pyramid: each level halves the number of bins of the one below.

const LEFT = given.names ? 158 : 118, RIGHT = 92;              // of labels and of figures, in CSS pixels; between them all plots share one x
const MOST_LANES = 96, LABELS = 4000, LABELS_MOVING = 300;
const lanes = {rows: [], lit: null, litMade: 0, isMoving: false};
const view = {from: 0, to: 1};
const canvas = document.getElementById("lanes"), over = document.getElementById("over"), overview = document.getElementById("overview");

const lowerBound = (sorted, value, get = k => sorted[k], from = 0, to = sorted.length) => {
  while (from < to) { const mid = (from + to) >> 1; if (get(mid) < value) from = mid + 1; else to = mid; }
  return from;
};

// -- making ------------------------------------------------------------------------------------------------------------
function makeLanes() {
  const nPools = Math.max(1, given.pools.length);
  run.poolFirst = new Int32Array(nPools).fill(-1);
  for (let e = 0; e < run.nExecutors; e++) if (run.poolFirst[run.pool[e]] < 0) run.poolFirst[run.pool[e]] = e;
  const laneOf = new Int32Array(run.nExecutors), made = [];
  const homes = new Map(), used = new Uint8Array(run.nExecutors);
  for (const e of run.spans.executor) used[e] = 1;
  const isFolded = used.reduce((sum, one) => sum + one, 0) > MOST_LANES;
  const spare = new Map();
  for (let e = 0; e < run.nExecutors; e++) if (!used[e]) spare.set(run.pool[e] * 1e6 + run.aicpu[e], (spare.get(run.pool[e] * 1e6 + run.aicpu[e]) ?? 0) + 1);
  const nHomes = new Set(Array.from(run.pool, (pool, e) => pool * 1e6 + run.aicpu[e])).size;
  const perLane = isFolded && !given.names && nHomes > MOST_LANES ? Math.ceil(run.nExecutors / MOST_LANES) : 0;
  let shown = Array.from({length: run.nExecutors}, (_, e) => e).filter(e => !given.names || given.names[e]);
  if (given.names) shown.sort((a, b) => run.aicpu[a] - run.aicpu[b] || a - b);      // rank by rank, cores before links
  const isLink = e => given.names[e].includes(" link "), folded = new Map();
  if (given.names && isFolded) {      // half of the lanes for ranks, half for links: no lane has both
    const parts = [shown.filter(e => !isLink(e)), shown.filter(isLink)];
    for (const part of parts) part.forEach((e, k) => folded.set(e, `${isLink(e)} ${Math.floor(k / Math.ceil(2 * part.length / MOST_LANES))}`));
    shown = parts.flat();
  }
  for (const e of shown) {
    const home = run.pool[e] * 1e6 + run.aicpu[e], isSpare = !used[e] && spare.get(home) > 2;      // idle ones of a home share a lane
    const key = folded.get(e) ?? (perLane ? Math.floor(e / perLane) : isFolded ? home : isSpare ? `idle ${home}` : e);
    if (!homes.has(key)) { homes.set(key, made.length); made.push({kind: "lane", executors: [], pool: run.pool[e], aicpu: run.aicpu[e]}); }
    laneOf[e] = homes.get(key);
    made[laneOf[e]].executors.push(e);
  }
  const count = new Int32Array(made.length + 1);
  const {spans} = run;
  for (let k = 0; k < spans.n; k++) count[laneOf[spans.executor[k]] + 1]++;
  for (let k = 0; k < made.length; k++) count[k + 1] += count[k];
  const order = new Int32Array(spans.n), next = count.slice();
  for (let k = 0; k < spans.n; k++) order[next[laneOf[spans.executor[k]]]++] = k;
  made.forEach((lane, k) => {
    lane.order = order.subarray(count[k], count[k + 1]);
    for (let at = 1; at < lane.order.length; at++) if (spans.start[lane.order[at]] < spans.start[lane.order[at - 1]]) {
      lane.order.sort((a, b) => spans.start[a] - spans.start[b]); break;
    }
    const first = lane.executors[0], last = lane.executors[lane.executors.length - 1];
    const ranks = run.aicpu[first] === run.aicpu[last] ? `rank ${run.aicpu[first]}` : `rank ${run.aicpu[first]}–${run.aicpu[last]}`;
    lane.label = lane.executors.length === 1 ? executorName(first) : folded.size ? (isLink(first) ? `links of ${ranks}` : ranks) :
      `${executorName(first)}–${executorName(last).split(" ").pop()}`;
    lane.longest = 0;
    for (const span of lane.order) lane.longest = Math.max(lane.longest, spans.end[span] - spans.start[span]);
  });
  lanes.made = made; lanes.laneOf = laneOf;
  makeCounts(nPools);
  const h = made.length <= 20 ? 18 : made.length <= 32 ? 15 : made.length <= 48 ? 12 : made.length <= 72 ? 10 : 8;
  let y = 24, group = "";
  const rows = [];
  const add = (row, height, gap = 3) => { rows.push({...row, y, h: height}); y += height + gap; };
  add({kind: "chain", label: "chain of causes"}, 12);
  add({kind: "submit", label: given.streams > 1 ? "processes submit" : "orchestrator"}, 10);
  add({kind: "level", label: counts.windowSize ? `window, of ${number(counts.windowSize)}` : "in flight", up: counts.submit, down: counts.complete,
       most: counts.windowSize || counts.inFlight, isWindow: counts.windowSize > 0}, 26);
  counts.queues.forEach((queue, pool) => queue.most && add({kind: "level", label: `ready${counts.queues.length > 1 ? " " + given.pools[pool] : ", not started"}`,
                                              up: queue.up, down: queue.down, most: queue.most, isQueue: true}, 20));
  run.channels.slice(0, 8).forEach(channel => add({kind: "channel", label: short(channel.name, 16), channel}, 18));
  y += 5;
  const severalPools = given.pools.length > 1, shares = new Set(made.map(lane => `${lane.pool} ${lane.aicpu}`)).size < made.length;
  made.forEach(lane => {
    const name = `${severalPools && !given.names ? lane.pool : ""} ${lane.aicpu}`;
    if (group && name !== group) y += shares || (given.names && !folded.size) ? 5 : 0;
    rows.push({...lane, lane, y, h, group: name !== group && (shares || severalPools) && !given.names ? `AICPU ${lane.aicpu}` : ""});
    lane.y = y; lane.h = h;
    group = name;
    y += h + (h > 9 ? 2 : 1);
  });
  lanes.rows = rows; lanes.height = y + 22;
}

const counts = {};

// Sort what the rows of counts need: how many submissions, ends, ready tasks and starts there were up to a time.
function makeCounts(nPools) {
  const sorted = values => Float64Array.from(values).sort();
  counts.submit = sorted(run.submit); counts.complete = sorted(run.complete);
  const window = given.windows.find(one => one.unit === "tasks" && one.size > 0);
  counts.inFlight = mostAt(counts.submit, counts.complete);
  counts.windowSize = window && given.streams === 1 && (window.stalls || 2 * counts.inFlight >= window.size) ? window.size : 0;
  const pools = queuesOf(run.pool, nPools);
  counts.late = run.queue === run.pool ? pools : queuesOf(run.queue, run.queue.reduce((most, one) => Math.max(most, one + 1), 0));
  counts.queues = nPools <= 4 ? pools : [];
}

// Return when tasks of each queue became ready and began; `queueOf`: by executor.
function queuesOf(queueOf, nQueues) {
  const n = new Int32Array(nQueues);
  for (let k = 0; k < run.n; k++) n[queueOf[run.executor[k]]]++;
  const up = Array.from(n, size => new Float64Array(size)), down = Array.from(n, size => new Float64Array(size));
  n.fill(0);
  for (let k = 0; k < run.n; k++) {
    const queue = queueOf[run.executor[k]], at = n[queue]++, ready = Math.max(run.ready[k], run.submit[k]);
    up[queue][at] = ready; down[queue][at] = Math.max(ready, run.start[k] - given.dispatch);
  }
  return up.map((values, queue) => ({up: values.sort(), down: down[queue].sort(), most: mostAt(up[queue], down[queue])}));
}

function mostAt(up, down) {
  let most = 0;
  for (let k = 0, ended = 0; k < up.length; k++) {
    while (ended < down.length && down[ended] <= up[k]) ended++;
    most = Math.max(most, k + 1 - ended);
  }
  return most;
}

function levelAt(row, time) {
  const after = sorted => { let from = 0, to = sorted.length; while (from < to) { const mid = (from + to) >> 1; if (sorted[mid] <= time) from = mid + 1; else to = mid; } return from; };
  if (row.channel) { const at = after(row.channel.times); return at ? row.channel.levels[at - 1] : 0; }
  return after(row.up) - after(row.down);
}

// Return the levels of a lane: busy share and kernel of each bin; `lit`: of these tasks alone.
function pyramidOf(lane, lit) {
  let n = 64;
  while (n < 2 * lane.order.length && n < 1 << 20) n *= 2;
  const busy = new Float32Array(n), kernel = new Uint16Array(n), best = new Float32Array(n), width = run.total / n, share = 1 / (width * lane.executors.length);
  for (const span of lane.order) {
    const task = run.spans.task[span];
    if (lit && !lit[task]) continue;
    const start = run.spans.start[span], end = run.spans.end[span], first = Math.min(n - 1, Math.floor(start / width)), last = Math.min(n - 1, Math.ceil(end / width) - 1);
    for (let k = first; k <= last; k++) {
      const part = Math.min(end, (k + 1) * width) - Math.max(start, k * width);
      busy[k] += part * share;
      if (part > best[k]) { best[k] = part; kernel[k] = run.kernel[task]; }
    }
  }
  const levels = [{busy, kernel, n}];
  while (n > 64) {
    const below = levels[levels.length - 1];
    n /= 2;
    const level = {busy: new Float32Array(n), kernel: new Uint16Array(n), n};
    for (let k = 0; k < n; k++) {
      const a = below.busy[2 * k], b = below.busy[2 * k + 1];
      level.busy[k] = (a + b) / 2;
      level.kernel[k] = below.kernel[a >= b ? 2 * k : 2 * k + 1];
    }
    levels.push(level);
  }
  return levels;
}

// -- drawing -----------------------------------------------------------------------------------------------------------
let frame = null, asked = false, settled = 0;

function draw(isMoving = false) {
  lanes.isMoving = isMoving;
  clearTimeout(settled);
  if (isMoving) settled = setTimeout(() => draw(), 140);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; drawLanes(); drawOver(); drawBrush(); });
}

function fitCanvas(one, height) {
  const scale = window.devicePixelRatio || 1, width = one.clientWidth || one.parentElement.clientWidth;
  const w = Math.round(width * scale), h = Math.round(height * scale);
  if (one.width !== w || one.height !== h) { one.width = w; one.height = h; one.style.height = height + "px"; }
  const context = one.getContext("2d", {alpha: one === over});
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return {context, width, scale};
}

const between = (least, value, most) => Math.min(most, Math.max(least, value));
const plotWidth = () => Math.max(50, (canvas.clientWidth || 1000) - LEFT - RIGHT);
const xOf = time => LEFT + (time - view.from) / (view.to - view.from) * plotWidth();
const timeOf = x => view.from + (x - LEFT) / plotWidth() * (view.to - view.from);

function drawLanes() {
  const {context, width, scale} = fitCanvas(canvas, lanes.height);
  const w = Math.round(plotWidth() * scale), h = Math.round(lanes.height * scale);
  if (!frame || frame.width !== w || frame.height !== h) frame = new Pixels(w, h);
  frame.data.fill(theme.bgPx);
  context.fillStyle = theme.bg;
  context.fillRect(0, 0, width, lanes.height);
  const each = (view.to - view.from) / w;              // time of a pixel
  const lateMade = [], late = queue => lateMade[queue] ??= lateColumns(counts.late[queue], w, each);
  const labels = [], figures = [], eachLane = Math.ceil((lanes.isMoving ? LABELS_MOVING : LABELS) / lanes.made.length);
  for (const row of lanes.rows) {
    const y0 = Math.round(row.y * scale), y1 = Math.round((row.y + row.h) * scale);
    if (row.kind === "lane") figures.push([row, percent(drawLane(row.lane, y0, y1, w, each, late(run.queue[row.executors[0]]), labels, labels.length + eachLane, scale))]);
    else if (row.kind === "chain") drawChain(row, y0, y1, w, each, labels, scale);
    else if (row.kind === "submit") drawSubmissions(y0, y1, w, each);
    else figures.push([row, drawLevel(row, y0, y1, w, each)]);
  }
  const ticks = ticksOf(view.from, view.to, plotWidth());
  for (const tick of ticks) { const x = Math.round((tick - view.from) / each); frame.fill(x, x + 1, Math.round(19 * scale), Math.round(23 * scale), theme.ink3Px); }
  context.putImageData(frame.image, Math.round(LEFT * scale), 0);
  context.textBaseline = "middle";
  context.font = "9.5px Inter, system-ui, sans-serif";
  context.textAlign = "left";
  for (let k = 0; k < labels.length; k++) { const [text, x, y, ink] = labels[k]; context.fillStyle = ink; context.fillText(text, x, y); }
  drawGutters(context, figures, ticks, width);
}

function ticksOf(from, to, width) {
  const rough = (to - from) / Math.max(2, width / 110), power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = Math.max(1, power * [1, 2, 5, 10].find(k => k * power >= rough)), found = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) found.push(t);
  return found;
}

function drawGutters(context, figures, ticks, width) {
  context.font = "11px Inter, system-ui, sans-serif";
  context.fillStyle = theme.ink3;
  context.textAlign = "right";
  context.fillText(given.unit, LEFT - 8, 11);
  context.textAlign = "center";
  for (const tick of ticks) context.fillText(number(tick), between(LEFT + context.measureText(number(tick)).width / 2, xOf(tick), LEFT + plotWidth() - context.measureText(number(tick)).width / 2), 10);
  context.textAlign = "left";
  context.fillText("in view", LEFT + plotWidth() + 10, 11);
  for (const row of lanes.rows) {
    const y = row.y + row.h / 2 + 0.5;
    if (row.kind === "lane" && row.h < 10) context.font = "9px Inter, system-ui, sans-serif";
    context.textAlign = "right";
    context.fillStyle = theme.ink2;
    context.fillText(row.label, LEFT - 8, y);
    if (row.group) { context.textAlign = "left"; context.fillStyle = theme.ink3; context.fillText(row.group, 0, y); }
  }
  context.textAlign = "right";
  for (const [row, text] of figures) {
    const y = row.y + row.h / 2 + 0.5, x = LEFT + plotWidth() + 10;
    context.font = row.h < 10 ? "9px Inter, system-ui, sans-serif" : "11px Inter, system-ui, sans-serif";
    if (row.kind === "lane") {
      context.fillStyle = theme.hair; context.fillRect(x, row.y + 2, 40, Math.max(3, row.h - 4));
      context.fillStyle = theme.work; context.fillRect(x, row.y + 2, 40 * parseFloat(text) / 100, Math.max(3, row.h - 4));
    }
    context.textAlign = row.kind === "lane" ? "right" : "left";
    context.fillStyle = row.isWindow && given.windows.some(one => one.stalls) ? theme.bad : theme.ink2;
    context.fillText(text, row.kind === "lane" ? width - 2 : x, y);
  }
}

// Return 1 for each pixel column in whose middle a task of the pool is ready, but not started.
function lateColumns(queue, w, each) {
  const found = new Uint8Array(w);
  for (let x = 0; x < w; x++) found[x] = levelAt(queue, view.from + (x + 0.5) * each) > 0 ? 1 : 0;
  return found;
}

function idle(x0, x1, y0, y1, late) {
  for (let y = y0; y < y1; y++) for (let x = x0; x < x1; x++) frame.data[y * frame.width + x] = !late[x] ? theme.hairPx : (x + y) % 6 < 2 ? theme.badlinePx : theme.badtintPx;
}

// Draw a lane and return the share of the view in which it was busy.
function drawLane(lane, y0, y1, w, each, late, labels, mostLabels, scale) {
  idle(0, w, y0, y1, late);
  const {order} = lane, {spans} = run, lit = lanes.lit;
  const from = lowerBound(order, view.from - lane.longest, k => spans.start[order[k]]), to = lowerBound(order, view.to, k => spans.start[order[k]], from);
  if (lane.executors.length > 1 || to - from > w / 2) return drawDensity(lane, y0, y1, w, each, late);
  let busy = 0;
  const top = y0, height = y1 - y0;
  for (let k = from; k < to; k++) {
    const task = spans.task[order[k]], begin = spans.start[order[k]], end = spans.end[order[k]];
    if (end < view.from) continue;
    busy += Math.max(0, Math.min(end, view.to) - Math.max(begin, view.from));
    const x0 = Math.round((begin - view.from) / each), x1 = Math.max(x0 + 1, Math.round((end - view.from) / each)), isWide = x1 - x0 > 3 * scale;
    const isPale = lit !== null && !lit[task];
    frame.mark(x0, isWide ? x1 - Math.ceil(scale / 2) : x1, top, y1, run.kernel[task], isPale);
    if (run.onChain.has(task)) frame.fill(x0, isWide ? x1 - Math.ceil(scale / 2) : x1, y1 - Math.max(1, Math.round(2 * scale)), y1, theme.inkPx);
    if (height >= 9 * scale && x1 - x0 >= 10 * scale && labels.length < mostLabels) label(task, x0, x1, lane, labels, isPale, scale);
  }
  return busy / (view.to - view.from);
}

function label(task, x0, x1, lane, labels, isPale, scale) {
  const left = Math.max(0, x0) / scale, room = Math.min(x1 / scale, plotWidth()) - left - 5;
  if (room < 6) return;
  const kernel = run.kernels[run.kernel[task]];
  let text = kernel.letter;
  if (room > 30) {
    const full = `${kernel.name} ${indexOf(task).map(([name, value]) => (name.length <= 2 ? name : "") + value).join(" ")}`;
    if (full.length * 5.1 <= room) text = full;
  }
  labels.push([text, LEFT + left + 3, lane.y + lane.h / 2 + 0.5, isPale ? theme.ink3 : theme.kernel[run.kernel[task]].ink]);
}

function drawDensity(lane, y0, y1, w, each, late) {
  lane.pyramid ??= pyramidOf(lane, null);
  if (lanes.lit && lane.litOf !== lanes.litMade) { lane.litPyramid = pyramidOf(lane, lanes.lit); lane.litOf = lanes.litMade; }
  const height = y1 - y0, busy = bars(lane.pyramid, lane, y0, y1, w, each, lanes.lit !== null);
  if (lanes.lit) bars(lane.litPyramid, lane, y0, y1, w, each, false);
  return busy;
}

function bars(pyramid, lane, y0, y1, w, each, isPale) {
  let depth = 0;
  while (depth + 1 < pyramid.length && run.total / pyramid[depth + 1].n <= each) depth++;
  const {busy, kernel, n} = pyramid[depth], bin = run.total / n, height = y1 - y0;
  let sum = 0, before = -1, beforeHeight = 0, begin = 0;
  for (let x = 0; x <= w; x++) {
    let share = 0, most = -1;
    if (x < w) {
      const t0 = view.from + x * each, first = Math.max(0, Math.floor(t0 / bin)), last = Math.min(n - 1, Math.floor((t0 + each) / bin));
      let best = 0;
      for (let k = first; k <= last; k++) { share += busy[k]; if (busy[k] > best) { best = busy[k]; most = kernel[k]; } }
      share = last >= first ? Math.min(1, share / (last - first + 1)) : 0;
      sum += share;
    }
    const tall = most < 0 ? 0 : Math.max(1, Math.round(share * height));
    if (most !== before || tall !== beforeHeight || x === w) {
      if (beforeHeight > 0) frame.mark(begin, x, y1 - beforeHeight, y1, before, isPale);
      before = most; beforeHeight = tall; begin = x;
    }
  }
  return sum / w;
}

function drawChain(row, y0, y1, w, each, labels, scale) {
  const steps = run.chain;
  frame.fill(0, w, y0, y1, theme.hairPx);
  const first = Math.max(0, lowerBound(steps, view.from, k => steps[k].end));
  let painted = -1;
  for (let k = first; k < steps.length && steps[k].begin <= view.to; k++) {
    const step = steps[k], x0 = Math.round((step.begin - view.from) / each), x1 = Math.max(x0 + 1, Math.round((step.end - view.from) / each));
    const tone = toneOf(step.cause);
    if (x1 <= painted + 1 && tone[1] !== "bad") continue;      // many steps in a pixel
    painted = Math.max(painted, x1 - 1);
    frame.fill(x0, x1 - x0 > 3 ? x1 - 1 : x1, y0, y1, theme.tone[tone[1]]);
    const text = step.task >= 0 ? run.kernels[run.kernel[step.task]].name : tone[0];
    const left = Math.max(0, x0) / scale, room = Math.min(x1, w) / scale - left - 6;
    if (room > 12 && text.length * 5.2 <= room) labels.push([text, LEFT + left + 3, row.y + row.h / 2 + 0.5, tone[1] === "submission" || tone[1] === "rest" ? theme.ink : theme.bg]);
  }
}

function drawSubmissions(y0, y1, w, each) {
  frame.fill(0, w, y0, y1, theme.hairPx);
  const window = {up: counts.submit, down: counts.complete};
  let before = lowerBound(counts.submit, view.from);
  for (let x = 0; x < w; x++) {
    const time = view.from + (x + 1) * each, now = lowerBound(counts.submit, time, k => counts.submit[k], before);
    if (now > before) frame.fill(x, x + 1, y0, y1, theme.workPx);
    else if (counts.windowSize && levelAt(window, time - each / 2) >= counts.windowSize && now < run.n) frame.hatch(x, x + 1, y0, y1, theme.badtintPx, theme.badlinePx, 6, 2);
    before = now;
  }
}

function drawLevel(row, y0, y1, w, each) {
  frame.fill(0, w, y1 - 1, y1, theme.linePx);
  const most = Math.max(1, row.channel ? Math.max(row.channel.depth || 0, 1) : row.most), height = y1 - y0;
  let highest = 0;
  for (let x = 0; x < w; x++) {
    const level = levelAt(row, view.from + (x + 0.5) * each);
    highest = Math.max(highest, level);
    const tall = Math.min(height, Math.round(level / most * height));
    const isFull = (row.isWindow || row.channel) && level >= most;
    frame.fill(x, x + 1, y1 - tall, y1, theme.subPx);
    if (isFull) frame.fill(x, x + 1, y0, Math.min(y1, y0 + Math.ceil(height / 5)), theme.badPx);
  }
  if (row.channel) return `≤ ${highest} of ${row.channel.depth}`;
  const stalls = given.windows.reduce((sum, one) => sum + one.stalls, 0);
  return row.isWindow && stalls ? `${number(stalls)} stalls` : `≤ ${number(highest)}`;
}

// -- the choice, over the lanes ----------------------------------------------------------------------------------------
function drawOver() {
  const {context, width} = fitCanvas(over, lanes.height);
  context.clearRect(0, 0, width, lanes.height);
  const task = state.task;
  if (task < 0) return;
  context.save();
  context.beginPath(); context.rect(LEFT, 0, plotWidth(), lanes.height); context.clip();
  const {spans} = run, places = one => spansOf(one).map(span => {
    const lane = lanes.made[lanes.laneOf[spans.executor[span]]];
    return {x0: xOf(spans.start[span]), x1: xOf(spans.end[span]), y: lane.y, h: lane.h, mid: lane.y + lane.h / 2};
  });
  const mine = places(task), last = of => of[of.length - 1];
  context.strokeStyle = theme.ink2; context.setLineDash([2, 3]); context.lineWidth = 1;
  for (const time of [run.submit[task], run.ready[task], run.start[task], run.end[task]]) {
    context.beginPath(); context.moveTo(xOf(time), 24); context.lineTo(xOf(time), lanes.height - 16); context.stroke();
  }
  context.setLineDash([]);
  for (const [others, isBefore] of [[state.before, true], [state.after, false]]) for (const {task: other} of others.slice(0, 8)) {
    const its = places(other), [a, b] = isBefore ? [last(its), mine[0]] : [last(mine), its[0]];
    if (a.x1 < LEFT - 4000 || b.x0 > LEFT + plotWidth() + 4000) continue;
    const reach = Math.max(24, Math.min(160, Math.abs(b.x0 - a.x1) / 2));
    for (const [colour, thick] of [[theme.bg, 4], [theme.ink, 1.3]]) {
      context.strokeStyle = colour; context.lineWidth = thick;
      context.beginPath(); context.moveTo(a.x1, a.mid); context.bezierCurveTo(a.x1 + reach, a.mid, b.x0 - reach, b.mid, b.x0, b.mid); context.stroke();
    }
    context.fillStyle = theme.ink;
    context.beginPath(); context.moveTo(b.x0, b.mid); context.lineTo(b.x0 - 7, b.mid - 3.5); context.lineTo(b.x0 - 7, b.mid + 3.5); context.fill();
  }
  context.lineWidth = 2; context.strokeStyle = theme.ink;
  for (const one of mine) context.strokeRect(one.x0, one.y, Math.max(2, one.x1 - one.x0), one.h);
  const text = waited(task) > 0 ? `ready, not started for ${number(waited(task))} ${given.unit}` : "", x = xOf(Math.max(run.ready[task], run.submit[task]));
  if (text) {
    const y = lanes.height - 14;
    context.lineWidth = 1.2; context.beginPath(); context.moveTo(x, y + 5); context.lineTo(mine[0].x0, y + 5); context.stroke();
    context.font = "600 10.5px Inter, system-ui, sans-serif"; context.textAlign = "center"; context.textBaseline = "middle";
    const size = context.measureText(text).width + 12, mid = Math.min(LEFT + plotWidth() - size / 2, Math.max(LEFT + size / 2, (x + mine[0].x0) / 2));
    context.fillStyle = theme.ink; context.fillRect(mid - size / 2, y - 2, size, 14);
    context.fillStyle = theme.bg; context.fillText(text, mid, y + 5.5);
  }
  context.restore();
}

// -- the overview ------------------------------------------------------------------------------------------------------
const OVERVIEW = 112;
let whole = null;

// Draw the whole run once: stacked bars of busy shares by kernel for each pool, and the window.
function makeWhole(scale) {
  const w = Math.round(plotWidth() * scale), nPools = Math.min(3, given.pools.length), isSummed = given.pools.length > 3;
  const rows = isSummed ? 1 : nPools, h = Math.round(OVERVIEW * scale), each = run.total / w;
  const made = new Pixels(w, h), nKernels = run.kernels.length, mean = [];
  made.data.fill(theme.bgPx);
  const tall = Math.floor((OVERVIEW - 34) / rows * scale), busy = Array.from({length: rows}, () => new Float32Array(w * nKernels)), sizes = new Int32Array(rows);
  for (let e = 0; e < run.nExecutors; e++) if (!given.names || given.names[e]) sizes[isSummed ? 0 : run.pool[e]]++;
  const {spans} = run;
  for (let s = 0; s < spans.n; s++) {
    const k = spans.task[s];
    if (lanes.lit && !lanes.lit[k]) continue;
    const row = busy[isSummed ? 0 : run.pool[spans.executor[s]]], start = spans.start[s], end = spans.end[s], last = Math.min(w - 1, Math.floor(end / each));
    for (let x = Math.min(w - 1, Math.floor(start / each)); x <= last; x++) row[x * nKernels + run.kernel[k]] += Math.max(0, Math.min(end, (x + 1) * each) - Math.max(start, x * each));
  }
  for (let r = 0; r < rows; r++) {
    const y1 = Math.round(4 * scale) + (r + 1) * tall - 3, full = each * Math.max(1, sizes[r]), height = tall - Math.round(4 * scale);
    made.fill(0, w, y1 - height, y1, theme.hairPx);
    let sum = 0;
    for (let x = 0; x < w; x++) {
      let y = y1, total = 0;
      for (let k = 0; k < nKernels; k++) {
        const part = busy[r][x * nKernels + k];
        if (part <= 0) continue;
        total += part;
        const to = Math.max(y1 - height, y1 - Math.round(Math.min(1, total / full) * height));
        if (to < y) { made.mark(x, x + 1, to, y, k, false); y = to; }
      }
      if (total > 0 && y === y1) made.fill(x, x + 1, y1 - 1, y1, theme.workPx);
      sum += total;
    }
    mean.push({label: isSummed || given.pools.length === 1 ? "busy" : `${given.pools[r]} busy`, text: `${percent(sum / (run.total * Math.max(1, sizes[r])))} mean`, y: (y1 - height / 2) / scale});
  }
  const y1 = h - Math.round(2 * scale), height = Math.round(24 * scale), window = {up: counts.submit, down: counts.complete};
  const most = counts.windowSize || Math.max(1, counts.inFlight);
  for (let x = 0; x < w; x++) {
    const level = levelAt(window, (x + 0.5) * each);
    made.fill(x, x + 1, y1 - Math.min(height, Math.round(level / most * height)), y1, theme.subPx);
    if (counts.windowSize && level >= counts.windowSize) made.fill(x, x + 1, y1 - height, y1 - height + Math.ceil(4 * scale), theme.badPx);
  }
  const stalls = given.windows.find(one => one.stalls);
  mean.push({label: counts.windowSize ? `window, of ${number(counts.windowSize)}` : "in flight", text: stalls ? `${number(stalls.stalls)} stalls` : `≤ ${number(counts.inFlight)}`,
             y: (y1 - height / 2) / scale, isBad: Boolean(stalls)});
  whole = {made, mean, width: w};
}

function drawBrush() {
  const {context, width, scale} = fitCanvas(overview, OVERVIEW);
  if (!whole || whole.width !== Math.round(plotWidth() * scale)) makeWhole(scale);
  context.fillStyle = theme.bg; context.fillRect(0, 0, width, OVERVIEW);
  context.putImageData(whole.made.image, Math.round(LEFT * scale), 0);
  context.font = "11px Inter, system-ui, sans-serif"; context.textBaseline = "middle";
  for (const {label: text, text: figure, y, isBad} of whole.mean) {
    context.fillStyle = theme.ink2; context.textAlign = "right"; context.fillText(text, LEFT - 8, y);
    context.textAlign = "left"; context.fillStyle = isBad ? theme.bad : theme.ink2; context.fillText(figure, LEFT + plotWidth() + 10, y);
  }
  const x0 = LEFT + view.from / run.total * plotWidth(), x1 = LEFT + view.to / run.total * plotWidth();
  context.globalAlpha = 0.55; context.fillStyle = theme.bg;
  context.fillRect(LEFT, 0, x0 - LEFT, OVERVIEW); context.fillRect(x1, 0, LEFT + plotWidth() - x1, OVERVIEW);
  context.globalAlpha = 1; context.strokeStyle = theme.ink; context.lineWidth = 1.6;
  context.strokeRect(x0, 1, Math.max(2, x1 - x0), OVERVIEW - 2);
  context.fillStyle = theme.ink; context.fillRect(x0 - 2, OVERVIEW / 2 - 7, 4, 14); context.fillRect(x1 - 2, OVERVIEW / 2 - 7, 4, 14);
  if (state.task >= 0) { const x = LEFT + run.start[state.task] / run.total * plotWidth(); context.fillRect(x - 1, 0, 2, OVERVIEW); }
}

// -- where a task is ---------------------------------------------------------------------------------------------------
function taskAt(x, y) {
  const lane = lanes.made.find(one => y >= one.y - 1 && y < one.y + one.h + 1);
  if (!lane || x < LEFT || x > LEFT + plotWidth() || !lane.order.length) return -1;
  const time = timeOf(x), near = 3 * (view.to - view.from) / plotWidth(), {order} = lane, {spans} = run;
  let best = -1, distance = Infinity;
  const to = lowerBound(order, time + near, k => spans.start[order[k]]);
  for (let k = to - 1; k >= 0 && k >= to - 400 && spans.start[order[k]] >= time - lane.longest - near; k--) {
    const span = order[k], far = time < spans.start[span] ? spans.start[span] - time : time > spans.end[span] ? time - spans.end[span] : 0;
    if (far < distance) { best = spans.task[span]; distance = far; }
    if (!far) break;
  }
  return distance <= near ? best : -1;
}

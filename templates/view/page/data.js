"use strict";
// Data: the columns of the page as typed arrays, and what follows from them: names, edges, chains of causes.

const given = JSON.parse(document.getElementById("run").textContent);
const run = {n: given.n, total: Math.max(1, given.total), kernels: given.kernels, sites: given.sites, unit: given.unit};

async function bytesOf(text) {
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Return a column as an array of the kind asked for.
async function column(from, Kind = Float64Array) {
  const values = new Kind(from.n);
  if (!from.type) return values.fill(from.base);
  const bytes = await bytesOf(from.data), n = from.n, width = Number(from.type[1]);
  if (from.type === "f8") { values.set(new Float64Array(bytes.buffer)); return values; }
  const base = from.base;
  if (width === 1) for (let k = 0; k < n; k++) values[k] = bytes[k] + base;
  else if (width === 2) for (let k = 0; k < n; k++) values[k] = bytes[k] + bytes[n + k] * 256 + base;
  else for (let k = 0; k < n; k++) values[k] = bytes[k] + bytes[n + k] * 256 + bytes[2 * n + k] * 65536 + bytes[3 * n + k] * 16777216 + base;
  if (from.delta !== undefined) {
    values[0] = from.delta;
    for (let k = 1; k < n; k++) values[k] += values[k - 1];
  }
  return values;
}

async function load() {
  const c = given.columns, n = run.n;
  const kinds = {site: Int32Array, executor: Int32Array, held: Uint8Array};
  await Promise.all(Object.keys(c).map(async name => { run[name] = await signed(c[name], kinds[name]); }));
  run.length = run.run;
  run.end = new Float64Array(n); run.complete = new Float64Array(n); run.kernel = new Int32Array(n);
  const cause = new Int32Array(n), start = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    run.ready[k] += run.submit[k];
    start[k] = Math.max(run.ready[k], run.submit[k]) + run.start[k];
    run.end[k] = start[k] + run.length[k];
    run.complete[k] = run.end[k] + run.retire[k];
    run.kernel[k] = run.sites[run.site[k]].kernel;
    cause[k] = run.cause[k] ? k - run.cause[k] : -1;
  }
  run.start = start; run.cause = cause;
  run.pool = await column(given.homes.pool, Int32Array);
  run.aicpu = await column(given.homes.aicpu, Int32Array);
  run.nExecutors = run.pool.length;
  run.queue = run.pool;            // by executor, who it shares ready tasks with: its pool; over a mesh, its rank's pool
  if (given.names) {
    const nAicpus = run.aicpu.reduce((most, one) => Math.max(most, one + 1), 1);
    run.queue = run.pool.map((pool, e) => pool * nAicpus + run.aicpu[e]);
    run.pool = run.pool.map(pool => Math.min(pool, given.pools.length - 1));      // all links are one
  }
  await loadSpans(n);
  run.index = {};
  await Promise.all(Object.keys(given.index).map(async name => { run.index[name] = await column(given.index[name]); }));
  run.channels = await Promise.all(given.channels.map(async one => ({...one, times: await column(one.times), levels: await column(one.levels)})));
  run.chain = given.chain ? given.chain.steps.map(([begin, end, task, cause]) => ({begin, end, task, cause})) : followCauses(lastTask());
  run.onChain = new Set(run.chain.filter(step => step.task >= 0).map(step => step.task));
}

// Times in which executors were busy: each task, but of a copy over several links each link.
async function loadSpans(n) {
  const whole = Int32Array.from({length: n}, (_, k) => k);
  run.spans = {n, own: n, task: whole, executor: run.executor, start: run.start, end: run.end};
  if (!given.hops) return;
  const hops = {};
  await Promise.all(Object.keys(given.hops).map(async name => { hops[name] = await signed(given.hops[name]); }));
  const hopping = new Set(hops.task), own = whole.filter(task => !hopping.has(task));
  const joined = (Kind, of, more) => { const found = new Kind(own.length + more.length); own.forEach((task, k) => { found[k] = of[task]; }); found.set(more, own.length); return found; };
  run.spans = {n: own.length + hops.task.length, own: own.length, task: joined(Int32Array, whole, hops.task), executor: joined(Int32Array, run.executor, hops.executor),
               start: joined(Float64Array, run.start, hops.start), end: joined(Float64Array, run.end, hops.end)};
}

// Return the spans of a task, in order of time. Tasks of one span come first, then links, both by task.
function spansOf(task) {
  const {task: of, own, n} = run.spans, at = lowerBound(of, task, undefined, 0, own), found = [];
  if (at < own && of[at] === task) return [at];
  for (let k = lowerBound(of, task, undefined, own, n); k < n && of[k] === task; k++) found.push(k);
  return found;
}

// Differences need signed sums, so a column with differences is summed as floats first.
async function signed(from, Kind) {
  const found = await column(from, Float64Array);
  return Kind ? Kind.from(found) : found;
}

// Return the cycles of the makespan by cause, with the words and the tone of each, most first.
function causes() {
  const sums = new Map(given.chain ? Object.entries(given.chain.causes) : []);
  if (!given.chain) for (const step of run.chain) sums.set(step.cause, (sums.get(step.cause) ?? 0) + step.end - step.begin);
  return [...sums].filter(([, cycles]) => cycles > 0).sort((a, b) => b[1] - a[1]).map(([cause, cycles]) => [...toneOf(cause), cycles]);
}

const toneOf = cause => given.tones[cause] ?? [cause, "rest"];

// -- names -------------------------------------------------------------------------------------------------------------
function short(text, most = 60) {
  const half = (most - 1) >> 1;
  return text.length <= most ? text : text.slice(0, half) + "…" + text.slice(-half);
}

function indexOf(task) { return run.sites[run.site[task]].index.map(([label, name]) => [label, run.index[name][task]]); }

function indexText(task) { return indexOf(task).map(([label, value]) => label ? `${label}=${value}` : `${value}`).join(", "); }

function nameOf(task) {
  const index = indexText(task), label = run.sites[run.site[task]].label;
  return run.kernels[run.kernel[task]].name + (index ? `[${index}]` : "") + (label ? ` (${label})` : "");
}

function executorName(executor) {
  if (given.names) return given.names[executor] ?? `${given.place} ${executor}`;
  const pool = run.pool[executor];
  if (given.pools.length === 1) return `${given.place} ${executor}`;
  return `${given.pools[pool]} ${executor - run.poolFirst[pool]}`;
}

// Return the number that stands for an executor where there is room for no more; of a mesh, its rank's.
const shortName = executor => given.names ? executorName(executor).match(/\d+/)[0] : executorName(executor).split(" ").pop();

const number = value => Math.round(value).toLocaleString("en-US");
const percent = share => `${Math.round(100 * share)}%`;
const waited = task => Math.max(0, run.start[task] - Math.max(run.ready[task], run.submit[task]) - given.dispatch);

// -- edges -------------------------------------------------------------------------------------------------------------
let edgesMade = null;

// Return the edges by target and by source; decoded when first asked for.
function edges() { return edgesMade ??= decodeEdges(); }

async function decodeEdges() {
  const from = given.edges;
  if (!from.count) return null;
  const count = await column(from.count, Float64Array), distance = await column(from.source), reason = await column(from.reason, Float64Array);
  const n = count.length, into = new Int32Array(n + 1), source = new Int32Array(distance.length), target = new Int32Array(distance.length);
  for (let k = 0; k < n; k++) into[k + 1] = into[k] + count[k];
  for (let k = 0; k < n; k++) for (let at = into[k]; at < into[k + 1]; at++) { source[at] = k - distance[at]; target[at] = k; }
  const outOf = new Int32Array(n + 1), after = new Int32Array(distance.length);
  for (const one of source) outOf[one + 1]++;
  for (let k = 0; k < n; k++) outOf[k + 1] += outOf[k];
  const next = outOf.slice(0, n);
  for (let at = 0; at < source.length; at++) after[next[source[at]]++] = at;
  return {into, source, target, outOf, after, reason, words: from.reasons};
}

// Return the tasks before or after a task with the reasons; those behind barriers stand for the barrier's.
function neighbours(graph, task, isBefore, most = 400) {
  const found = [], seen = new Set(), left = [[task, ""]];
  while (left.length && found.length < most) {
    const [node, why] = left.pop();
    const begin = isBefore ? graph.into[node] : graph.outOf[node], end = isBefore ? graph.into[node + 1] : graph.outOf[node + 1];
    for (let at = begin; at < end && found.length < most; at++) {
      const edge = isBefore ? at : graph.after[at], other = isBefore ? graph.source[edge] : graph.target[edge];
      if (seen.has(other)) continue;
      seen.add(other);
      const reason = why || graph.words[graph.reason[edge]];
      if (other >= run.n) left.push([other, reason]);
      else found.push({task: other, reason});
    }
  }
  return found;
}

// -- causes ------------------------------------------------------------------------------------------------------------
function lastTask() {
  let last = -1;
  for (let k = 0; k < run.n; k++) if (last < 0 || run.complete[k] > run.complete[last]) last = k;
  return last;
}

// Return the steps that lead to the end of a task: its run, what held it last, the run of the task that did so, and so on to 0.
function followCauses(task) {
  const steps = [], gaps = {edge: "latency", executor: "late", retire: "dispatch"};
  let behind = "task";
  while (task >= 0 && steps.length < 2 * run.n + 2) {
    steps.push({begin: run.start[task], end: run.end[task], task, cause: behind});
    const before = run.cause[task], held = given.held[run.held[task]];
    const from = before >= 0 && run.end[before] <= run.start[task] ? run.end[before] : before >= 0 ? Math.min(run.start[before], run.start[task]) : 0;
    if (from < run.start[task]) steps.push({begin: from, end: run.start[task], task: -1, cause: before < 0 ? "submit" : gaps[held] ?? held});
    behind = held;
    task = before;
  }
  return steps.reverse();
}

let heldMade = null;

// Return, for each task, the one with the latest end among those that it held last; -1 for none. Tasks of the chain come first.
function heldBy() {
  if (heldMade) return heldMade;
  heldMade = new Int32Array(run.n).fill(-1);
  for (let k = 0; k < run.n; k++) {
    const by = run.cause[k];
    if (by < 0) continue;
    const other = heldMade[by];
    if (other < 0 || (run.onChain.has(k) && !run.onChain.has(other)) || (run.onChain.has(k) === run.onChain.has(other) && run.end[k] > run.end[other])) heldMade[by] = k;
  }
  return heldMade;
}

// Search: words to tasks. Parts of a query are all to hold.

const AMOUNT = String.raw`([\d][\d_,.]*\s*[km]?)\b`;
const COMPARE = {"=": (a, b) => a === b, "!=": (a, b) => a !== b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, "<": (a, b) => a < b};

function amount(text) {
  const unit = text.trim().slice(-1).toLowerCase(), factor = unit === "k" ? 1e3 : unit === "m" ? 1e6 : 1;
  return parseFloat(text.replace(/[_,\skm]/gi, "")) * factor;
}

// Return the tests of a query, and what no task can match.
function parse(query) {
  const tests = [], faults = [];
  let rest = query;
  const take = (pattern, use) => { rest = rest.replace(new RegExp(pattern, "gi"), (...found) => { use(found.slice(1)); return " "; }); };
  take(String.raw`\bkernel\s*=\s*(?:"([^"]*)"|(\S+))`, ([quoted, word]) => { const name = (quoted ?? word).toLowerCase(), fits = run.kernels.map(one => one.name.replaceAll('"', quoted === undefined ? '"' : "").toLowerCase() === name); tests.push(task => fits[run.kernel[task]]); });
  take(String.raw`\b(?:waited|waiting|waits?)\s*(?:(?:longer|more)\s+than|>)\s*${AMOUNT}`, ([n]) => { const least = amount(n); tests.push(task => waited(task) > least); });
  take(String.raw`\b(?:(?:ran|runs?)\s*)?(?:(?:longer|more)\s+than)\s*${AMOUNT}`, ([n]) => { const least = amount(n); tests.push(task => run.length[task] > least); });
  take(String.raw`\bheld\s+by\s+([a-z]+)`, ([word]) => {
    const at = given.held.indexOf(word.toLowerCase());
    if (at < 0) faults.push(`nothing is held by “${word}”: ${given.held.join(", ")}`);
    tests.push(task => run.held[task] === at);
  });
  take(String.raw`\bline\s+(?:(\S+):)?(\d+)`, ([file, line]) => { const fits = run.sites.map(site => site.line === Number(line) && (!file || site.at === `${file}:${line}`)); tests.push(task => fits[run.site[task]]); });
  take(String.raw`#(\d+)`, ([n]) => tests.push(task => task === Number(n)));
  take(String.raw`\bAICPU\s+(\d+)`, ([n]) => tests.push(task => run.aicpu[run.executor[task]] === Number(n)));
  take(String.raw`\b(?:executor|thread)\s+(\d+)`, ([n]) => tests.push(task => run.executor[task] === Number(n)));
  take(String.raw`\b(rank\s+\d+(?:\s+(?:core\s+\d+|link)\b)?)`, ([words]) => {
    const wanted = words.toLowerCase().replace(/\s+/g, " "), fits = Object.fromEntries(Object.entries(given.names ?? {}).filter(([, name]) => `${name} `.startsWith(`${wanted} `)));
    if (!Object.keys(fits).length) faults.push(`nothing is called “${wanted}”`);
    tests.push(task => run.executor[task] in fits);
  });
  given.pools.forEach((name, pool) => { if (given.pools.length > 1) {
    take(String.raw`\b${name}\s+(\d+)`, ([n]) => tests.push(task => run.executor[task] === run.poolFirst[pool] + Number(n) && run.pool[run.executor[task]] === pool));
  } });
  take(String.raw`([^\s\[\],<>=!"]+)\s*(>=|<=|!=|=|<|>)\s*(-?\d+)`, ([name, sign, value]) => {
    const number = Number(value), has = run.sites.map(site => site.index.some(([label, column]) => label === name || (!label && column === name)));
    if (!has.some(Boolean)) faults.push(`no task has an index “${short(name, 30)}”`);
    tests.push(task => has[run.site[task]] && COMPARE[sign](run.index[name][task], number));
  });
  for (const word of rest.replace(/[\[\],]/g, " ").split(/\s+/).filter(one => one && !/^(and|\(|\))$/i.test(one))) {
    const wanted = word.toLowerCase(), pool = given.pools.length > 1 ? given.pools.findIndex(name => name.toLowerCase() === wanted) : -1;
    const fits = run.sites.map(site => run.kernels[site.kernel].name.toLowerCase().includes(wanted) || site.label.toLowerCase().includes(wanted));
    if (pool >= 0 && !fits.some(Boolean)) tests.push(task => run.pool[run.executor[task]] === pool);
    else { if (!fits.some(Boolean)) faults.push(`no kernel or label has “${short(word, 30)}”`); tests.push(task => fits[run.site[task]]); }
  }
  return {tests, faults};
}

// Set which tasks are lit: those that a query finds, all without one.
function light(query) {
  state.query = query;
  const {tests, faults} = query.trim() ? parse(query) : {tests: [], faults: []};
  lanes.litMade++;
  whole = null;
  if (!tests.length) { lanes.lit = null; state.matches = []; byId("found").textContent = query.trim() ? "nothing to find in these words" : ""; return; }
  const lit = new Uint8Array(run.n), found = [];
  let cycles = 0;
  for (let k = 0; k < run.n; k++) if (tests.every(test => test(k))) { lit[k] = 1; found.push(k); cycles += run.length[k]; }
  lanes.lit = lit; state.matches = found;
  state.site = found.length ? run.site[found[0]] : -1;
  byId("found").textContent = found.length ? `${number(found.length)} of ${number(run.n)} tasks, ${number(cycles)} ${given.unit}` : `no task: ${faults.join("; ") || "these words do not meet"}`;
}

function find(query) {
  byId("query").value = query;
  light(query);
  if (lanes.lit && state.task >= 0 && !lanes.lit[state.task]) state.task = -1;
  show();
}

// Choose the next or the previous match, seen from the chosen task.
function nextMatch(step) {
  const found = state.matches;
  if (!found.length) return;
  const at = lowerBound(found, state.task), isAt = found[at] === state.task;
  choose(found[(at + (step > 0 ? isAt ? 1 : 0 : -1) + found.length) % found.length], true);
}

// Main: what is chosen, shown everywhere and kept in the address.

const state = {task: -1, before: [], after: [], query: "", matches: [], site: -1, measure: "wait", usual: "wait"};

// Choose a task, or none (-1), in all panels. `follow`: bring it into view.
async function choose(task, follow = false) {
  state.task = task;
  await follows(task);
  if (follow && task >= 0 && (run.start[task] < view.from || run.end[task] > view.to)) {
    const size = Math.max(view.to - view.from, 1.2 * run.length[task]), mid = (run.start[task] + run.end[task]) / 2;
    setView(mid - size / 2, mid + size / 2);
  }
  show();
}

// Find what a choice needs: neighbours and regions are decoded when first asked for.
async function follows(task) {
  state.before = []; state.after = [];
  if (task < 0) return;
  const graph = await edges();
  await loadRegions(run.site[task]);
  if (state.task !== task || !graph) return;
  state.before = neighbours(graph, task, true);
  state.after = neighbours(graph, task, false);
}

function show() {
  showTask(); showSource(); showSpace(); showKernels(); showMatches(); showHead(); showLegend();
  const {task} = state;
  byId("said").textContent = task < 0 ? "" : `${short(nameOf(task), 90)}: ${number(run.length[task])} ${given.unit} from ${number(run.start[task])} on ${executorName(run.executor[task])}, held by ${given.held[run.held[task]]}`;
  look();
}

function look(isMoving = false) { draw(isMoving); clearTimeout(look.timer); look.timer = setTimeout(writeAddress, isMoving ? 250 : 0); }

// -- the address -------------------------------------------------------------------------------------------------------
function writeAddress() {
  const parts = new URLSearchParams();
  if (view.from > 0 || view.to < run.total) parts.set("v", `${Math.floor(view.from)}-${Math.ceil(view.to)}`);
  if (state.task >= 0) parts.set("t", state.task);
  if (state.query.trim()) parts.set("q", state.query);
  if (state.measure !== state.usual) parts.set("c", state.measure);
  const text = parts.toString();
  if (location.hash.slice(1) !== text) history.replaceState(null, "", text ? "#" + text : location.href.split("#")[0]);
}

async function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1)), [from, to] = (parts.get("v") ?? "").split("-").map(Number), task = Number(parts.get("t") ?? -1);
  if (to > from && from >= 0) setView(from, to); else setView(0, run.total);
  state.measure = parts.get("c") in MEASURES ? parts.get("c") : state.usual;
  byId("query").value = parts.get("q") ?? "";
  light(byId("query").value);
  state.task = Number.isInteger(task) && task >= 0 && task < run.n ? task : -1;
  await follows(state.task);
  show();
}

// -- the theme ---------------------------------------------------------------------------------------------------------
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.jpThemeLight ?? String(!system.matches)) === "false";

function setTheme(dark) {
  if (dark !== null) document.documentElement.dataset.jpThemeLight = String(!dark);
  byId("theme").setAttribute("aria-pressed", String(isDark()));
  readTheme();
  whole = null;
}

// -- start -------------------------------------------------------------------------------------------------------------
async function begin() {
  await load();
  byId("app").hidden = false;
  const cards = byId("cards");
  cards.classList.add("below");
  cards.prepend(el("h2", {}, "All figures"));
  setTheme(null);
  makeLanes();
  if (!longestWaits(1).length) state.usual = "length";      // nothing waited: show costs
  watchKeys();
  watchPointer();
  await readAddress();
  system.addEventListener("change", () => { setTheme(null); show(); });
  addEventListener("hashchange", readAddress);
  addEventListener("resize", () => { whole = null; show(); });
  addEventListener("beforeprint", () => { begin.wasDark = document.documentElement.dataset.jpThemeLight; setTheme(false); show(); drawLanes(); drawBrush(); });
  addEventListener("afterprint", () => { if (begin.wasDark === undefined) delete document.documentElement.dataset.jpThemeLight; else document.documentElement.dataset.jpThemeLight = begin.wasDark; setTheme(null); show(); });
  document.documentElement.dataset.ready = "yes";
}

begin();

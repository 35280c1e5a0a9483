// Keys and pointer: zoom and move as in Perfetto, brush, hover, click.

function setView(from, to) {
  const size = Math.min(run.total, Math.max(Math.max(8, run.total / 1e7), to - from));
  view.from = Math.min(Math.max(0, from), run.total - size);
  view.to = view.from + size;
}

function moveBy(share) { const size = view.to - view.from; setView(view.from + share * size, view.from + share * size + size); look(true); }

function zoomBy(factor, at = (view.from + view.to) / 2) { setView(at - (at - view.from) * factor, at + (view.to - at) * factor); look(true); }

// Show the chosen task with what it waited for; without one the tasks found, or the whole run.
function fit() {
  let from = 0, to = run.total;
  const {task} = state;
  if (task >= 0) {
    from = Math.min(run.start[task], ...state.before.slice(0, 8).map(one => run.start[one.task]), Math.max(run.ready[task], run.submit[task]));
    to = run.end[task];
  } else if (state.matches.length) {
    from = Infinity; to = 0;
    for (const one of state.matches) { from = Math.min(from, run.start[one]); to = Math.max(to, run.end[one]); }
  }
  const room = 0.08 * Math.max(1, to - from);
  setView(from - room, to + room);
  look();
}

function along(step) {
  if (state.task < 0) { const last = lastTask(); if (last >= 0) choose(last, true); return; }
  const next = step < 0 ? run.cause[state.task] : heldBy()[state.task];
  if (next >= 0) choose(next, true);
  else byId("said").textContent = step < 0 ? "no task held this one" : "this task held no other";
}

function besides(across, down) {
  if (!run.n) return;
  if (state.task < 0) { choose(run.spans.task[lanes.made.find(one => one.order.length).order[0]], true); return; }
  const at = lanes.laneOf[run.executor[state.task]], {order} = lanes.made[at], {spans} = run;
  if (across) { const k = order.findIndex(span => spans.task[span] === state.task) + across; if (k >= 0 && k < order.length) choose(spans.task[order[k]], true); return; }
  for (let k = at + down; k >= 0 && k < lanes.made.length; k += down) {
    const other = lanes.made[k].order;
    if (other.length) { choose(spans.task[other[Math.min(other.length - 1, lowerBound(other, run.start[state.task], j => spans.start[other[j]]))]], true); return; }
  }
}

const pointer = {x: -1, time: 0, isDown: false, moved: false};

const KEYS = {
  w: () => zoomBy(0.7, pointer.x >= 0 ? timeOf(pointer.x) : undefined), s: () => zoomBy(1 / 0.7, pointer.x >= 0 ? timeOf(pointer.x) : undefined),
  a: () => moveBy(-0.12), d: () => moveBy(0.12), f: fit, "[": () => along(-1), "]": () => along(1), "/": () => byId("query").focus(), n: () => nextMatch(1), N: () => nextMatch(-1),
  "?": () => byId("keys").showModal(), Escape: () => { state.task = -1; byId("query").value = ""; light(""); show(); },
};

function watchKeys() {
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (isTyping && event.key !== "Escape") return;
    if (event.target === canvas && /^Arrow/.test(event.key)) {
      besides(event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0, event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0);
      event.preventDefault();
      return;
    }
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    if (isTyping) event.target.blur();
    act();
  });
  byId("help").addEventListener("click", KEYS["?"]);
  byId("find").addEventListener("submit", event => { event.preventDefault(); nextMatch(1); });
  byId("after").addEventListener("click", () => nextMatch(1));
  byId("before").addEventListener("click", () => nextMatch(-1));
  let typed = 0;
  byId("query").addEventListener("input", event => { clearTimeout(typed); typed = setTimeout(() => { light(event.target.value); show(); }, run.n > 2e5 ? 250 : 60); });
  byId("theme").addEventListener("click", () => { setTheme(!isDark()); show(); });
}

function watchPointer() {
  canvas.addEventListener("pointerdown", event => { if (event.button) return; Object.assign(pointer, {isDown: true, moved: false, at: event.offsetX, from: view.from, to: view.to}); canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", event => {
    pointer.x = event.offsetX;
    if (pointer.isDown && (pointer.moved || Math.abs(event.offsetX - pointer.at) > 3)) {
      pointer.moved = true;
      const by = (pointer.at - event.offsetX) / plotWidth() * (pointer.to - pointer.from);
      setView(pointer.from + by, pointer.to + by);
      look(true);
      return;
    }
    hover(event);
  });
  canvas.addEventListener("pointerup", event => {
    pointer.isDown = false;
    if (pointer.moved) return;
    const task = taskAt(event.offsetX, event.offsetY);
    choose(task);
  });
  canvas.addEventListener("pointerleave", () => { pointer.x = -1; byId("tip").hidden = true; });
  canvas.addEventListener("wheel", event => {
    if (event.ctrlKey || event.metaKey) zoomBy(Math.exp(event.deltaY / 300), timeOf(event.offsetX));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) moveBy((event.deltaX || event.deltaY) / 1000);
    else return;
    event.preventDefault();
  }, {passive: false});
  overview.addEventListener("pointerdown", event => {
    const time = overviewTime(event), near = 6 / plotWidth() * run.total;
    const edge = Math.abs(time - view.from) < near ? "from" : Math.abs(time - view.to) < near ? "to" : time > view.from && time < view.to && view.to - view.from < run.total ? "move" : "new";
    pointer.brush = {edge, time, from: view.from, to: view.to};
    overview.setPointerCapture(event.pointerId);
  });
  overview.addEventListener("pointermove", event => {
    const {brush} = pointer, time = overviewTime(event);
    if (!brush) return;
    if (brush.edge === "move") setView(brush.from + time - brush.time, brush.to + time - brush.time);
    else {
      const fixed = brush.edge === "from" ? brush.to : brush.edge === "to" ? brush.from : brush.time;
      setView(Math.min(time, fixed), Math.max(time, fixed));
    }
    look(true);
  });
  overview.addEventListener("pointerup", event => {
    const {brush} = pointer;
    pointer.brush = null;
    if (brush && brush.edge === "new" && Math.abs(overviewTime(event) - brush.time) < 3 / plotWidth() * run.total) { const size = brush.to - brush.from; if (size < run.total) setView(brush.time - size / 2, brush.time + size / 2); look(); }
  });
}

const overviewTime = event => Math.min(run.total, Math.max(0, (event.offsetX - LEFT) / plotWidth() * run.total));

function hover(event) {
  const tip = byId("tip"), task = taskAt(event.offsetX, event.offsetY);
  tip.hidden = task < 0;
  if (task < 0) return;
  const wait = waited(task);
  tip.textContent = `${short(nameOf(task), 90)} · ${number(run.length[task])} ${given.unit} from ${number(run.start[task])}` + (wait ? ` · ready for ${number(wait)}, held by ${given.held[run.held[task]]}` : "");
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 12)}px`;
  tip.style.top = `${event.clientY + 16}px`;
}

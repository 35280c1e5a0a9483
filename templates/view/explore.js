// Show the controls of an explorer and tell what is chosen. All pictures come from Python as HTML that is escaped there; every word of a
// control is set as text.
function made(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

function row(control, option, place, most, choose) {
  const label = made("label", "pto-option" + (option.refused ? " refused" : ""));
  const input = made("input");
  input.type = "radio";
  input.name = "pto-" + control.name + "-" + choose.id;
  input.checked = place === control.chosen;
  input.addEventListener("change", () => choose(control.name, place));
  const track = made("span", "track");
  if (option.cycles !== null) {
    const at = Math.min(100, 100 * option.cycles / most);
    const line = made("span", "line");
    const dot = made("span", "dot" + (input.checked ? " on" : ""));
    line.style.width = at + "%";
    dot.style.left = at + "%";
    track.append(line, dot);
  }
  const cycles = option.refused ? "refused" : option.cycles === null ? "" : option.cycles.toLocaleString("en-US");
  label.title = option.refused || (option.cycles === null ? "choose it to see what it costs" : option.label + ": " + cycles + " cycles");
  label.append(input, made("span", "words", option.label), track, made("span", "cycles", cycles));
  return label;
}

function render({ model, el }) {
  const id = Math.random().toString(36).slice(2);
  const root = made("div", "pto-card pto-explore");
  const style = made("style");
  const left = made("div", "pto-controls");
  const right = made("div", "pto-shown");
  const bar = made("div", "pto-buttons");
  const message = made("p", "pto-message");
  message.setAttribute("role", "status");
  const picture = made("div", "pto-picture");
  const kept = made("div", "pto-kept");
  const code = made("pre", "pto-code");
  code.tabIndex = 0;
  code.hidden = true;
  let asked = 0;
  const ask = what => { model.set("asked", { do: what, n: ++asked }); model.save_changes(); };
  const choose = (name, place) => {
    const chosen = { ...model.get("chosen") };
    if (place) chosen[name] = place; else delete chosen[name];
    model.set("chosen", chosen);
    model.save_changes();
  };
  choose.id = id;
  const button = (text, action) => {
    const one = made("button", "", text);
    one.type = "button";
    one.addEventListener("click", action);
    bar.append(one);
    return one;
  };
  button("Keep", () => ask("keep"));
  const opens = button("Code", () => { code.hidden = !code.hidden; opens.setAttribute("aria-expanded", String(!code.hidden)); });
  button("Reset", () => { model.set("chosen", {}); model.save_changes(); });
  button("Clear kept", () => ask("clear"));

  function drawControls() {
    const controls = model.get("controls");
    const active = document.activeElement;
    const focus = active && left.contains(active) ? [...left.querySelectorAll("input")].indexOf(active) : -1;
    const now = controls.flatMap(control => control.options.filter((option, place) => place === control.chosen).map(option => option.cycles || 0));
    const most = Math.max(1, 2 * Math.max(...now));      // what takes more than twice as long lies at the end
    left.replaceChildren(made("div", "pto-title", "Schedule"), made("div", "pto-hint", "dot: cycles if you choose it"));
    for (const control of controls) {
      const group = made("fieldset");
      const legend = made("legend", "", control.name);
      legend.append(made("span", "pto-note", control.note));
      group.append(legend, ...control.options.map((option, place) => row(control, option, place, most, choose)));
      left.append(group);
    }
    if (focus >= 0) { const again = left.querySelectorAll("input")[focus]; if (again) again.focus(); }
  }
  const drawPicture = () => { style.textContent = model.get("style"); picture.innerHTML = model.get("html"); };
  const drawKept = () => { kept.innerHTML = model.get("kept_html"); };
  const drawCode = () => { code.textContent = model.get("code"); };
  const drawMessage = () => { message.textContent = model.get("message"); };
  const follows = [["controls", drawControls], ["html", drawPicture], ["style", drawPicture], ["kept_html", drawKept], ["code", drawCode],
                   ["message", drawMessage]];
  for (const [name, draw] of follows) { model.on("change:" + name, draw); draw(); }
  right.append(bar, message, picture, code, kept);
  root.append(left, right);
  el.append(style, root);
  return () => { for (const [name, draw] of follows) model.off("change:" + name, draw); };
}

export default { render };

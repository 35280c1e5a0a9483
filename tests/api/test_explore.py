"""Exploring schedules: the widget's Python side, the code it gives, and its page in a browser."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    PtoError,
    Tensor,
    Tile,
    TracePolicy,
    Tunable,
    Workload,
    explore,
    kernel,
    pto,
    workload,
)
from pto_wsp.resources import templates_dir

anywidget = pytest.importorskip("anywidget")

F32 = DType.F32
X, Y = (Tensor(np.ones((6, 4, 16), np.float32)) for _ in range(2))


@kernel
def scale(x: In[Tile[4, 16, F32]], y: Out[Tile[4, 16, F32]]) -> None:
    pto.store(y, x * 2.0)


@workload
def rows() -> None:
    for b in P(6):
        scale[b](X[b], Y[b])


def on(n: int) -> Workload:
    return rows().dispatch(DispatchPolicy.round_robin(n)).task_graph(trace=TracePolicy.cycles(lambda t: 100))


@pytest.fixture
def widget() -> Any:
    return explore(on(2).compile(target="interp").run())


def place_of(widget: Any, control: str, label: str) -> int:
    (options,) = [one["options"] for one in widget.controls if one["name"] == control]
    return [option["label"] for option in options].index(label)


def test_a_choice_is_simulated_and_shown_beside_the_run(widget: Any) -> None:
    assert widget.simulation.total_cycles == 300 and "300 cycles" in widget.html
    widget.chosen = {"AICPUs": place_of(widget, "AICPUs", "1")}
    assert widget.simulation.total_cycles == 600 and widget.schedule.dispatch.num_aicpus == 1
    assert "round_robin(1)" in widget.html and 'class="boxed"' in widget.html and "<script" not in widget.html + widget.style
    widget.reset()
    assert widget.simulation.total_cycles == 300


def test_each_option_says_what_it_would_cost(widget: Any) -> None:
    (aicpus,) = [one for one in widget.controls if one["name"] == "AICPUs"]
    assert [(option["label"], option["cycles"]) for option in aicpus["options"]] == [("as run", 300), ("1", 600), ("2", 300), ("4", 200)]
    (window,) = [one for one in widget.controls if one["name"] == "window"]
    assert {option["cycles"] for option in window["options"]} == {300}
    (arch,) = [one for one in widget.controls if one["name"] == "arch"]
    assert len(arch["options"]) == 3 and aicpus["chosen"] == 0


def test_keep_makes_a_comparison(widget: Any) -> None:
    widget.chosen = {"AICPUs": place_of(widget, "AICPUs", "4")}
    widget.asked = {"do": "keep", "n": 1}
    widget.chosen = {"AICPUs": place_of(widget, "AICPUs", "1"), "ready": place_of(widget, "ready", "work_steal")}
    widget.asked = {"do": "keep", "n": 2}
    assert [one.cycles for one in widget.comparison] == [200, 300, 600] and "AICPUs 4" in widget.kept_html
    widget.asked = {"do": "clear", "n": 3}
    assert len(widget.comparison) == 1 and widget.kept_html == ""


def test_the_code_gives_the_same_cycles(widget: Any) -> None:
    widget.chosen = {"dispatch": place_of(widget, "dispatch", "affinity b"), "AICPUs": place_of(widget, "AICPUs", "4"),
                     "window": place_of(widget, "window", "16"), "ready": place_of(widget, "ready", "priority -b")}
    scope: dict[str, Any] = {"w": on(2)}
    exec(widget.code, scope)
    assert scope["program"].stats.total_cycles == widget.simulation.total_cycles == 200
    assert scope["program"].schedule == widget.schedule


def test_what_is_refused_is_said_and_the_picture_stays() -> None:
    widget = explore(rows().calendar([(b % 2, b // 2) for b in range(6)]).compile(target="interp").run())
    shown = widget.html
    widget.chosen = {"ready": place_of(widget, "ready", "work_steal")}
    assert "contradict" in widget.message and widget.html == shown and widget.simulation is None
    widget.asked = {"do": "keep", "n": 1}
    assert len(widget.comparison) == 1


def test_what_a_page_sends_is_not_trusted(widget: Any) -> None:
    for chosen in ({"window": 99}, {"window": "x"}, {"no such": 1}, {"window": -1}, {"window": None}):
        widget.chosen = chosen
        assert widget.simulation.total_cycles == 300 and widget.message == ""


@pytest.mark.slow
def test_tunables_are_controls_that_run_when_they_are_chosen() -> None:
    made = []

    def sized(n: int = Tunable(6, 3)) -> Workload:  # type: ignore[assignment]
        made.append(n)

        @workload
        def part() -> None:
            for b in P(n):
                scale[b](X[b], Y[b])

        return part().dispatch(DispatchPolicy.round_robin(1)).task_graph(trace=TracePolicy.cycles(lambda t: 100))

    widget = explore(sized)
    assert made == [6] and widget.simulation.total_cycles == 600
    (tunable,) = [one for one in widget.controls if one["name"] == "n"]
    assert [option["cycles"] for option in tunable["options"]] == [600, None]
    widget.chosen = {"n": 1}
    assert made == [6, 3] and widget.simulation.total_cycles == 300 and "w = sized(n=3)" in widget.code


def test_mistakes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, code in ((42, "S112"), (lambda: 42, "S112"), (on(2).compile(target="interp"), "R103")):
        with pytest.raises(PtoError) as raised:
            explore(given)  # type: ignore[arg-type]
        assert raised.value.code == code
    from pto_wsp.api import explore as module

    module.widget_class.cache_clear()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(PtoError) as missing:
        explore(on(2))
    assert missing.value.code == "C120" and missing.value.help == "pip install 'pto-wsp[notebook]'"


PAGE = """<!doctype html><body><style>{css}</style><div id=root></div><script type=module>{esm}
const state = {state}, on = {{}};
window.sent = [];
const model = {{get: n => state[n], set: (n, v) => {{ state[n] = v; }}, save_changes: () => window.sent.push(JSON.stringify(state)),
  on: (n, f) => {{ (on[n] = on[n] || []).push(f); }}, off: () => {{}}}};
window.put = (n, v) => {{ state[n] = v; (on['change:' + n] || []).forEach(f => f()); }};
window.onerror = message => {{ document.title = message; }};
render({{model, el: document.getElementById('root')}});
</script>"""


@pytest.mark.slow
def test_a_browser_sends_choices_and_shows_what_comes_back(widget: Any, tmp_path: Path) -> None:
    webdriver = pytest.importorskip("selenium.webdriver")
    if shutil.which("chromium") is None:
        pytest.skip("no chromium")
    names = ("chosen", "asked", "controls", "html", "style", "kept_html", "code", "message")
    state = json.dumps({name: getattr(widget, name) for name in names}).replace("</", "<\\/")
    css = (templates_dir() / "view" / "explore.css").read_text(encoding="utf-8")
    esm = (templates_dir() / "view" / "explore.js").read_text(encoding="utf-8").replace("export default { render };", "")
    (tmp_path / "page.html").write_text(PAGE.format(css=css, esm=esm, state=state), encoding="utf-8")
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=1300,1000"):
        options.add_argument(flag)
    with webdriver.Chrome(options=options) as browser:
        browser.get((tmp_path / "page.html").as_uri())
        by_text = {one.text.split("\n")[0]: one for one in browser.find_elements("css selector", "fieldset")}
        aicpus = next(one for text, one in by_text.items() if text.startswith("AICPUs"))
        aicpus.find_elements("css selector", "input")[3].click()
        widget.chosen = json.loads(browser.execute_script("return sent[sent.length - 1]"))["chosen"]
        assert widget.simulation.total_cycles == 200
        for name in names[2:]:
            browser.execute_script("put(arguments[0], arguments[1])", name, getattr(widget, name))
        assert "200 cycles" in browser.find_element("css selector", ".pto-picture").text
        keep, code, *_ = browser.find_elements("css selector", ".pto-buttons button")
        keep.click()
        widget.asked = json.loads(browser.execute_script("return sent[sent.length - 1]"))["asked"]
        assert len(widget.comparison) == 2
        code.click()
        assert "DispatchPolicy.round_robin" in browser.find_element("css selector", ".pto-code").text
        assert browser.title == "" and [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []

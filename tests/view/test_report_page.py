"""The report in a browser: clicks, search, keys and links show the same task everywhere; nothing is asked for; nothing is in the way."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pto_wsp import DispatchPolicy, Pools, Program, TaskWindow, WindowMode
from tests.view.browser import Browser, missing, open_browser
from tests.view.test_report import layer, linked

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "a browser is there")]

DISPATCH = 600        # cycles that an AICPU of the model takes to dispatch a task
# Click a place of the lanes.
_CLICK = """
const canvas = document.getElementById('lanes'), box = canvas.getBoundingClientRect(), [x, y] = arguments;
for (const type of ['pointerdown', 'pointerup'])
  canvas.dispatchEvent(new PointerEvent(type, {clientX: box.left + x, clientY: box.top + y, button: 0, bubbles: true, pointerId: 1}));
"""
# Hover over a place of the lanes and return the tip.
_HOVER = """
const canvas = document.getElementById("lanes"), box = canvas.getBoundingClientRect(), [x, y] = arguments;
const tip = document.getElementById("tip");
canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + x, clientY: box.top + y, bubbles: true, pointerId: 1}));
return tip.hidden ? '' : tip.textContent;
"""
_COLOUR = """
const context = document.getElementById('lanes').getContext('2d'), [x, y] = arguments;
return [...context.getImageData(x, y, 1, 1).data].slice(0, 3);
"""


@pytest.fixture(scope="module")
def program() -> Program:
    scheduled = layer().dispatch(DispatchPolicy.round_robin(num_aicpus=2)).task_graph(
        window=TaskWindow(4, "tasks", WindowMode.STALL), pools=Pools.by_exec_unit())
    return scheduled.compile(target="interp", arch="ascend_910b", overheads=True).run()


@pytest.fixture(scope="module")
def path(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program.report(tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


def _poll(browser: Browser, script: str, *given: object) -> Any:
    """Return what a script of the page returns once that is true, or None if it stays false."""
    for _ in range(300):
        found = browser.run(script, *given)
        if found:
            return found
    return None


def title_has(browser: Browser, text: str) -> bool:
    return bool(_poll(browser, "return document.querySelector('#task h2').innerText.includes(arguments[0])", text))


def chosen(browser: Browser) -> dict[str, str]:
    """Return what each panel shows as chosen."""
    found: dict[str, str] = browser.run("""
        const text = one => document.querySelector(one)?.innerText ?? '';
        return {task: text('#task h2'), line: document.querySelector('#source .chosen')?.dataset.line ?? '',
                kernel: text('#kernels tr.chosen'), space: text('#space h2'), ir: document.querySelector('#task pre')?.textContent ?? '',
                regions: text('#task .maps'), waits: text('#task'), said: text('#said'),
                strip: document.querySelector('#task .strip')?.ariaLabel ?? '', hash: location.hash};
    """)
    return found


def middle_of(browser: Browser, program: Program, task: int) -> float:
    """Return where the middle of a task is across the lanes, which show the whole run between gutters of 118 and 92 pixels."""
    trace, width = program.trace, browser.run("return document.getElementById('lanes').clientWidth")
    return float(118 + (int(trace.start[task]) + int(trace.end[task])) / 2 / trace.total_cycles * (width - 118 - 92))


def test_a_click_on_a_task_chooses_it_in_every_panel(browser: Browser, program: Program, path: Path) -> None:
    browser.open(path)
    task = 13          # mm[b=1, t=2]
    x, height = middle_of(browser, program, task), browser.run("return document.getElementById('lanes').clientHeight")
    for y in range(60, height, 4):
        browser.run(_CLICK, x, y)
        if "mm[b=1, t=2]" in browser.text("#task h2"):
            break
    assert title_has(browser, "mm[b=1, t=2]")
    shown = chosen(browser)
    (line,) = [edge for edge in program.graph.edges_into(task) if edge.source == task - 1]
    assert line.reasons[0] == "RAW" and "scale[b=1, t=2]" in shown["waits"] and "RAW on Y" in shown["waits"]
    assert "It waits for no task." not in shown["waits"] and "It wakes no task." in shown["waits"]
    assert shown["line"] == program.explain(task).line.rpartition(":")[2] and "mm" in shown["kernel"]
    assert shown["space"].startswith("mm, 12 tasks") and shown["ir"].startswith("kernel mm(")
    assert "Y[1, 2, 0:16, 0:64]" in shown["regions"] and "Z[1, 2, 0:16, 0:64]" in shown["regions"]
    told = program.explain(task)
    assert shown["strip"] == f"submitted {told.submitted:,}, ready {told.ready:,}, started {told.started:,}, ended {told.ended:,}"
    assert shown["hash"] == "#t=13" and f"from {told.started:,}" in shown["said"]


def test_a_copy_is_on_the_lane_of_each_link_of_its_route(browser: Browser, tmp_path: Path) -> None:
    program = linked("ring")
    browser.open(program.report(tmp_path / "ring.html"))
    assert title_has(browser, "Longest waits")
    height, width = (browser.run(f"return document.getElementById('lanes').client{name}") for name in ("Height", "Width"))

    def tasks_at(time: float) -> list[str]:
        """Return the tasks on the lanes at a time, from above; labels of ranks take 158 pixels."""
        x = 158 + time / program.stats.total_cycles * (width - 158 - 92)
        tips = [browser.run(_HOVER, x, y).split(" ")[0] for y in range(24, height, 3)]
        return list(dict.fromkeys(filter(None, tips)))

    start, end = program.trace.start[4], program.trace.end[4]
    assert (start, end, program.stats.total_cycles) == (3072, 3072 + 2 * 1124, 5320)       # 1024 elements and the latency, twice
    assert tasks_at(start - 50) == [f"scale[r={r}]" for r in range(4)]
    assert tasks_at(start + 500) == [f"copy_part[r={r}]" for r in range(4)]
    assert tasks_at(end - 500) == [f"copy_part[r={r}]" for r in (3, 0, 1, 2)]              # on the link of the rank behind
    browser.open(tmp_path / "ring.html", "t=6")               # from rank 2 to rank 0
    assert title_has(browser, "copy_part[r=2]")
    assert "on rank 2 link to the next rank, rank 3 link to the next rank" in browser.text("#task")
    for query, found in (("rank 1", "2 of 8 tasks"), ("rank 9", "nothing is called “rank 9”")):       # a kernel, and the copy that it sends
        browser.open(tmp_path / "ring.html", f"q={query}")
        assert _poll(browser, "return document.getElementById('found').innerText.includes(arguments[0])", found)
    assert browser.log() == []


def test_many_ranks_fold_to_lanes_of_ranks_and_lanes_of_links(browser: Browser, tmp_path: Path) -> None:
    """Of 60 ranks and as many links in use, a lane has two ranks, or the links of two: never a rank and a link."""
    browser.open(linked("all", 60).report(tmp_path / "many.html"))
    assert title_has(browser, "Longest waits")
    browser.run("window.said = new Set(); const draw = CanvasRenderingContext2D.prototype.fillText;"
                "CanvasRenderingContext2D.prototype.fillText = function (text, ...at) { said.add(text); draw.call(this, text, ...at); }")
    browser.press("w")       # it draws again, and what it writes is kept
    pairs = [f"rank {rank}–{rank + 1}" for rank in range(0, 60, 2)]
    assert _poll(browser, "return said.has(arguments[0])", f"links of {pairs[-1]}")
    labels = [text for text in browser.run("return [...said]") if text.startswith(("rank ", "links "))]
    assert [text for text in labels if text != "rank busy"] == [f"{of}{pair}" for of in ("", "links of ") for pair in pairs]
    assert browser.log() == []


def test_a_link_is_a_place(browser: Browser, program: Program, path: Path) -> None:
    browser.open(path, "t=5&v=1000-9000&q=scale&c=start")
    assert title_has(browser, "mm[b=0, t=2]")
    assert browser.run("return document.getElementById('query').value") == "scale"
    assert "12 of 24 tasks" in browser.text("#found")
    assert browser.run("return document.querySelector('#space select').value") == "start"
    assert _poll(browser, "return location.hash === '#v=1000-9000&t=5&q=scale&c=start'")
    browser.run("location.hash = 't=7'")
    assert title_has(browser, "mm[b=0, t=3]") and browser.text("#found") == ""
    for wrong in ("t=99", "t=x&v=5-2&c=no", "%E0%A4%A", "t=-3&v=a-b"):
        browser.open(path, wrong)
        assert title_has(browser, "Longest waits"), wrong
    assert browser.log() == []


@pytest.mark.parametrize(("query", "expected"), [
    ("scale", lambda p, k: k % 2 == 0),
    ("kernel=mm", lambda p, k: k % 2 == 1),
    ("b=1", lambda p, k: k // 8 == 1),
    ("scale b>=1 t!=2", lambda p, k: k % 2 == 0 and k >= 8 and k // 2 % 4 != 2),
    ("mm[b=2, t=3]", lambda p, k: k == 23),
    ("#7", lambda p, k: k == 7),
    ("longer than 1.5k", lambda p, k: p.trace.end[k] - p.trace.start[k] > 1500),
    ("waited longer than 100", lambda p, k: p.trace.start[k] - max(p.trace.ready[k], p.trace.causes.submit[k]) - DISPATCH > 100),
    ("held by edge", lambda p, k: p.trace.causes.held[k] == "edge"),
    ("AIV", lambda p, k: p.trace.home_of(int(p.trace.executor[k])).pool == 1),
    ("AICPU 1", lambda p, k: p.trace.home_of(int(p.trace.executor[k])).aicpu == 1),
    ("executor 0", lambda p, k: p.trace.executor[k] == 0),
    ("a & b <i>", None),
    ("nonsense", lambda p, k: False),
    ("q=1", lambda p, k: False),
    ("held by cats", lambda p, k: False),
    ("(((", None), ("\\", None), ("<script>alert(1)</script>", None),
])
def test_a_search_finds_the_tasks_that_its_words_name(browser: Browser, program: Program, path: Path, query: str, expected: Any) -> None:
    browser.open(path)
    browser.run("""const box = document.getElementById('query'); box.value = arguments[0];
                   box.dispatchEvent(new Event('input', {bubbles: true}))""", query)
    found = _poll(browser, "return document.getElementById('found').innerText")
    if expected is not None:
        n = sum(bool(expected(program, k)) for k in range(24))
        assert found.startswith(f"{n} of 24 tasks" if n else "no task: "), found
    assert browser.log() == []


def test_a_line_and_a_kernel_light_their_tasks(browser: Browser, program: Program, path: Path) -> None:
    browser.open(path)
    browser.run("document.querySelectorAll('#source button.line')[1].click()")
    assert "12 of 24 tasks" in browser.text("#found") and "mm[" in browser.text("#matches")
    assert browser.run("return document.getElementById('query').value").startswith("line test_report.py:")
    browser.run("[...document.querySelectorAll('#kernels button')].find(one => one.innerText === 'scale').click()")
    assert "scale[" in browser.text("#matches") and "mm[" not in browser.text("#matches")
    browser.run("document.querySelector('#matches button').click()")
    assert title_has(browser, "scale[b=0, t=0]")


def test_keys_zoom_move_fit_walk_the_chain_and_clear(browser: Browser, program: Program, path: Path) -> None:
    browser.open(path)
    total = program.trace.total_cycles

    def view() -> tuple[int, int]:
        _poll(browser, "return new Promise(done => setTimeout(() => done(true), 320))")
        text = browser.run("return new URLSearchParams(location.hash.slice(1)).get('v')")
        begin, end = text.split("-") if text else (0, total)
        return int(begin), int(end)

    browser.press("w")
    begin, end = view()
    assert end - begin == pytest.approx(0.7 * total, rel=1e-3) and (begin + end) / 2 == pytest.approx(total / 2, rel=1e-3)
    browser.press("d")
    moved, _ = view()
    assert moved - begin == pytest.approx(0.12 * 0.7 * total, rel=1e-3)
    browser.press("a")
    assert view()[0] == pytest.approx(begin, abs=2)
    browser.press("s")
    assert view() == (0, total)
    browser.press("]")                                   # without a choice: the last task of the chain
    last = int(program.explain().task)
    assert title_has(browser, f"task {last} of 24")
    walked = [last]
    for _ in range(3):
        by = int(program.trace.causes.task[walked[-1]])
        if by < 0:
            break
        browser.press("[")
        assert title_has(browser, f"task {by} of 24")
        walked.append(by)
    assert len(walked) > 1
    browser.press("f")
    begin, end = view()
    task = walked[-1]
    assert begin <= program.trace.start[task] and program.trace.end[task] <= end and end - begin < total
    browser.press("Escape")
    assert title_has(browser, "Longest waits")
    browser.press("f")
    assert view() == (0, total)
    browser.press("/")
    assert browser.run("return document.activeElement.id") == "query"
    browser.run("document.activeElement.blur()")
    browser.press("?")
    assert browser.run("return document.getElementById('keys').open")
    assert browser.log() == []


def test_arrows_on_the_lanes_go_from_task_to_task(browser: Browser, program: Program, path: Path) -> None:
    browser.open(path, "t=1")

    def arrow(name: str) -> None:
        browser.run("""const lanes = document.getElementById('lanes'); lanes.focus();
                       lanes.dispatchEvent(new KeyboardEvent('keydown', {key: 'Arrow' + arguments[0], bubbles: true}))""", name)

    mine = [k for k in range(24) if program.trace.executor[k] == program.trace.executor[1]]
    after = mine[mine.index(1) + 1]
    arrow("Right")
    assert title_has(browser, f"task {after} of 24")
    arrow("Left")
    assert title_has(browser, "task 1 of 24")


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_the_page_is_accessible_and_quiet(path: Path, is_dark: bool) -> None:
    spec = importlib.util.find_spec("axe_core_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe-core-python is not installed")
    axe = (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    with open_browser(is_dark=is_dark) as browser:
        for place in ("", "t=13&q=scale"):
            browser.open(path, place)
            browser.driver.execute_script(axe)
            result = browser.driver.execute_async_script("const done = arguments[arguments.length - 1]; axe.run().then(done)")
            faults = [(one["id"], [node["html"][:200] for node in one["nodes"]][:4]) for one in result["violations"]]
            assert len(result["passes"]) > 10
            broken = [(one["id"], one["message"]) for one in result["incomplete"] if "error" in one]
            assert not broken, broken           # a rule that met an error judges nothing
            assert "color-contrast" in {one["id"] for one in result["passes"]}
            assert browser.faint_text() == []   # also what axe leaves open: text on shapes and stripes
            assert not faults, json.dumps(faults, indent=1)
        assert browser.log() == []
        asked = {url.partition("#")[0] for url in browser.requests()}
        assert path.resolve().as_uri() in asked
        assert all(url == path.resolve().as_uri() or url.startswith(("about:", "data:")) for url in asked), asked
        ground = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(16, 19, 23)" if is_dark else "rgb(255, 255, 255)")
        browser.run("document.getElementById('theme').click()")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") != ground
        assert browser.run(_COLOUR, 2, 2) == ([255, 255, 255] if is_dark else [16, 19, 23])


def test_without_scripts_the_page_is_its_cards(path: Path) -> None:
    with open_browser(scripts=False) as browser:
        browser.driver.get(path.resolve().as_uri())
        text = browser.driver.find_element("tag name", "body").text
        assert "The makespan by cause" in text and "for t in P.seq(4):" in text and "light / dark" not in text


def test_a_printed_page_is_light_and_whole(path: Path) -> None:
    with open_browser(is_dark=True) as browser:
        browser.open(path, "t=13")
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert browser.run(_COLOUR, 2, 2) == [255, 255, 255]
        browser.run("window.dispatchEvent(new Event('afterprint'))")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(16, 19, 23)"
        assert len(browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 20_000

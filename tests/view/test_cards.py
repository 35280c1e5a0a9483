"""Cards: what they say of a value, how large they are, and that their HTML is well formed and escaped."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable
from html.parser import HTMLParser
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
    Pools,
    Program,
    PtoError,
    TaskWindow,
    Tensor,
    Tile,
    WindowMode,
    Workload,
    kernel,
    pto,
    timeline,
    workload,
)
from pto_wsp.errors import ArgumentKindError, CommandError
from pto_wsp.timing.trace import Causes, Home, Trace
from pto_wsp.view import notebook
from pto_wsp.view.card import BarPart, BoxesPart, Card, LabelledValue, LanesPart, Preformatted, TablePart, ValuesPart
from pto_wsp.view.colours import legend_of, slot_of
from pto_wsp.view.graph_cards import graph_card
from pto_wsp.view.html import html_of, page_of, shortened
from pto_wsp.view.run_cards import MOST_MARKS, lanes_of, stats_card, trace_card

F32 = DType.F32
X, Y, Z = (Tensor(np.ones((3, 4, 16, 64), np.float32)) for _ in range(3))
W = Tensor(np.ones((64, 64), np.float32))


@kernel
def scale(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x * 2.0)


@kernel
def mm(x: In[Tile[16, 64, F32]], w: In[Tile[64, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x @ w)


@workload
def layer() -> None:
    for b in P(3):
        for t in P.seq(4):
            scale[b, t](X[b, t], Y[b, t])
            mm[b, t](Y[b, t], W, Z[b, t])


def scheduled() -> Workload:
    return layer().dispatch(DispatchPolicy.round_robin(num_aicpus=2)).task_graph(
        window=TaskWindow(4, "tasks", WindowMode.STALL), pools=Pools.by_exec_unit())


@pytest.fixture(scope="module")
def program() -> Program:
    return scheduled().compile(target="interp", arch="ascend_910b", overheads=True).run()


def part_of(card: Card, kind: type) -> Any:
    (part,) = [part for part in card.parts if isinstance(part, kind)]
    return part


class Tags(HTMLParser):
    """Check that tags are closed in order; collect their text and attributes."""

    VOID = frozenset({"br", "circle", "input", "meta", "path", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = io.StringIO()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in self.VOID or (tag == "rect" and self.get_starttag_text()[-2:] != "/>"):  # type: ignore[index]
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text.write(data)


def text_of(html: str) -> str:
    """Return the text of HTML that is well formed, and asks for nothing outside itself."""
    reader = Tags()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    assert not any(name in ("src", "href") or name.startswith("on") for name, _ in reader.attributes)
    assert "<script" not in html and "url(" not in html and "@import" not in html
    return reader.text.getvalue()


# -- what cards say ----------------------------------------------------------------------------------------------------
def test_a_trace_is_lanes_with_a_mark_a_task(program: Program) -> None:
    card = trace_card(program.trace)
    lanes = part_of(card, LanesPart)
    assert sum(len(lane.marks) for lane in lanes.lanes) == 24 and not lanes.merged
    assert [entry.name for entry in lanes.legend] == ["scale", "mm"]
    assert lanes.total == program.stats.total_cycles
    by_name = {mark.name.partition(":")[0]: mark for lane in lanes.lanes for mark in lane.marks}
    for event in program.trace:
        mark = by_name[event.name]
        assert mark.x == round(1000 * event.start / lanes.total)
        assert abs(mark.x + mark.width - 1000 * event.end / lanes.total) <= 1.5
    assert {lane.group for lane in lanes.lanes} == {"pool 0", "pool 1"}


def test_the_chain_of_causes_makes_up_the_makespan(program: Program) -> None:
    bar = part_of(stats_card(program.stats), BarPart)
    assert sum(segment.amount for segment in bar.segments) == program.stats.total_cycles
    assert bar.bound == program.stats.lower_bound


def test_the_sentence_says_how_far_the_run_is_above_its_bound(program: Program) -> None:
    stats = program.stats
    assert stats_card(stats).sentence.startswith(f"{stats.cores_used} of 72 cores used. {stats.total_cycles:,} cycles, ")
    assert stats.dominated_by in stats_card(stats).sentence


def test_a_graph_is_folded_to_calls(program: Program) -> None:
    rows = part_of(graph_card(program.graph), TablePart).rows
    assert ("scale", "mm", "RAW", "12") in rows
    assert sum(int(row[3]) for row in rows) == len(program.graph.edges)


def test_a_workload_is_boxes_in_boxes() -> None:
    card = scheduled().card
    (outer,) = part_of(card, BoxesPart).boxes
    (inner,) = outer.inside
    assert (outer.head, outer.order, inner.head, inner.order) == ("for b in P(3):", "any", "for t in P.seq(4):", "down")
    assert [(site.kernel.name, site.index) for site in inner.inside] == [("scale", "[b, t]"), ("mm", "[b, t]")]
    assert [(arg.label, arg.value) for arg in inner.inside[1].arguments] == [("x in", "Y[b, t]"), ("w in", "W"), ("y out", "Z[b, t]")]
    assert tuple(row[:2] for row in part_of(card, TablePart).rows) == tuple(scheduled().schedule.directives())


def test_calls_of_many_lines_are_one_site_each() -> None:
    @kernel
    def a_name_that_is_long(an_input_of_the_kernel: In[Tile[16, 64, F32]], the_output_of_the_kernel: Out[Tile[16, 64, F32]]) -> None:
        pto.store(the_output_of_the_kernel, an_input_of_the_kernel)

    @workload
    def wide() -> None:
        for the_number_of_the_request in P(3):
            first = a_name_that_is_long[the_number_of_the_request](X[the_number_of_the_request, 0], Y[the_number_of_the_request, 0])
            with P.when(the_number_of_the_request > 1):
                scale[the_number_of_the_request](X[the_number_of_the_request, 1], Z[the_number_of_the_request, 1], after=[first])

    (loop,) = part_of(wide().card, BoxesPart).boxes
    site, branch = loop.inside
    assert site.kernel.name == "a_name_that_is_long" and len(site.arguments) == 2
    assert branch.head.startswith("with P.when(") and branch.inside[0].kernel.name == "scale"


def test_a_view_runs_and_simulates_nothing() -> None:
    fresh = scheduled().compile(target="interp", arch="ascend_910b")
    assert fresh.card.state == "not run: .run()"
    assert "interp" in fresh.card.subtitle
    before = Y.data.copy() if hasattr(Y, "data") else None
    fresh._repr_mimebundle_()
    assert before is None or (Y.data == before).all()
    fresh.run()
    assert ".stats and .trace" in fresh.card.state
    cycles = fresh.stats.total_cycles
    assert f"{cycles:,} cycles" in fresh.card.sentence and fresh.card.state == ""


def test_a_timeline_is_text_at_a_prompt_and_lanes_in_a_notebook(program: Program) -> None:
    shown = timeline(program.trace, end=2 * program.stats.total_cycles)
    assert repr(shown) == str(shown) and "busy" in shown
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"] == str(shown)
    lanes = part_of(shown.card, LanesPart)
    assert lanes.total == 2 * program.stats.total_cycles and max(mark.x for lane in lanes.lanes for mark in lane.marks) <= 500
    assert str(scale.ir).startswith("kernel scale(")


def test_no_repr_is_a_dump_of_fields(program: Program) -> None:
    assert repr(program.trace) == f"Trace(24 tasks on {program.stats.cores_used} of 72 executors, {program.stats.total_cycles} cycles)"
    assert repr(program.stats) == str(program.stats)
    assert repr(program.graph.edges[0]) == "Edge(0 → 1: RAW)"


# -- sizes -------------------------------------------------------------------------------------------------------------
def drawn_trace(n: int, n_executors: int, n_kernels: int = 5, names: Callable[[int], str] = "k[{}]".format) -> Trace:
    rng = np.random.default_rng(0)
    executor = rng.integers(0, n_executors, n)
    start = np.arange(n, dtype=np.int64) * 10
    end = start + rng.integers(1, 40, n)
    causes = Causes(np.maximum(start - 50, 0), ["edge"] * n, np.full(n, -1))
    homes = tuple(Home(k % 2, k // 6) for k in range(n_executors))
    kernels = tuple(names(k) for k in range(n_kernels))
    return Trace(start, end, start, executor, rng.integers(0, n_kernels, n), kernels, [f"task {k}" for k in range(min(n, 10 ** 5))] * max(
        1, -(-n // 10 ** 5)), n_executors, int(end.max()) if n else 0, homes, None, causes)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("n", "executors"), [(0, 4), (1, 1), (MOST_MARKS, 32), (10 ** 5, 8), (10 ** 6, 72), (10 ** 6, 20_000)])
def test_a_cell_stays_small_at_any_number_of_tasks(n: int, executors: int) -> None:
    trace = drawn_trace(n, executors)
    html = trace._repr_mimebundle_()["text/html"]
    assert len(html) < 100_000
    text_of(html)
    lanes = lanes_of(trace)
    assert len(lanes.lanes) <= 32
    assert sum(len(lane.marks) for lane in lanes.lanes) <= MOST_MARKS + 40 * len(lanes.lanes)


def test_merged_marks_are_the_kernel_that_ran_longest() -> None:
    n = 3000
    start = np.arange(n, dtype=np.int64) * 10
    kernel_of = np.where(start < 10_000, 0, 1)
    trace = Trace(start, start + np.where(start < 20_000, 10, 2), start, np.zeros(n, np.int64), kernel_of, ("a", "b"), ["t"] * n, 1,
                  30_000, (Home(0, 0),))
    (lane,) = lanes_of(trace).lanes
    assert [(mark.kernel, mark.full, round(mark.x, -1), round(mark.x + mark.width, -1)) for mark in lane.marks] == \
        [(0, True, 0, 330), (1, True, 330, 670), (1, False, 670, 1000)]


# -- HTML --------------------------------------------------------------------------------------------------------------
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a&b", "{{ 7 * 7 }}", "שלום", "x" * 10_000, "‮gnp"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_text_and_never_markup(name: str) -> None:
    trace = drawn_trace(5, 2, names=lambda k: f"{name}{k}")
    card = Card(title=name, subtitle=name, state=name, sentence=name, foot=name, parts=(
        lanes_of(trace), ValuesPart(values=(LabelledValue(label=name, value=name, note=name),)), Preformatted(text=name),
        TablePart(title=name, head=(name,), rows=((name,),))))
    text = text_of(html_of(card))
    assert shortened(name) in text
    assert len(html_of(card)) < 200_000


def test_a_page_is_complete_in_itself(program: Program, tmp_path: Path) -> None:
    path = program.report(tmp_path / "report.html")
    html = re.sub("<script.*?</script>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)     # those: test_report.py
    text = text_of(html.replace("<!doctype html>", ""))
    for said in ("Longest waits", "The makespan by cause", "for t in P.seq(4):", "scale", "proved"):
        assert said in text
    assert re.search("@media \\(prefers-color-scheme:dark\\)", html)


def test_a_report_that_cannot_be_written_is_an_error(program: Program, tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        program.report(tmp_path / "no" / "such" / "folder.html")
    with pytest.raises(ArgumentKindError):
        program.report(3)  # type: ignore[arg-type]
    with pytest.raises(PtoError, match="R103"):
        scheduled().compile(target="interp").report(tmp_path / "x.html")


def test_a_card_that_fails_leaves_the_text() -> None:
    def broken() -> Card:
        raise ZeroDivisionError

    assert notebook.mimebundle(lambda: "text", broken) == {"text/plain": "text"}
    assert notebook.mimebundle(lambda: "text", lambda: None) == {"text/plain": "text"}


def test_every_part_reads_back_from_json(program: Program) -> None:
    for card in (program.card, scheduled().card, scale.card, trace_card(program.trace)):
        assert Card.model_validate_json(card.model_dump_json()) == card


def test_colours_stay_with_names_and_letters_differ() -> None:
    names = [f"kernel_{k}" for k in range(20)]
    first = legend_of(names)
    assert [slot_of(name) for name in reversed(names)] == [entry.slot for entry in reversed(first)]
    letters = [entry.letter for entry in first]
    assert len(set(letters)) == 20 and letters[:5] == list("KERNL")


@pytest.mark.slow
def test_a_view_takes_milliseconds() -> None:
    trace = drawn_trace(10 ** 5, 72)
    html_of(trace_card(trace))      # templates are compiled once
    took = []
    for _ in range(5):
        begin = time.process_time()
        html_of(trace_card(trace))
        took.append(time.process_time() - begin)
    assert min(took) < 1.0, "a view that walks tasks one by one takes seconds"


def test_a_page_of_nothing() -> None:
    assert "<main>" in page_of((), "none")

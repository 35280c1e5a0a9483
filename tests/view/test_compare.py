"""Comparisons: what is timed, how it is ranked, what is said of it, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

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
    ReadyPolicy,
    Schedule,
    TaskWindow,
    Tensor,
    Tile,
    TracePolicy,
    Workload,
    auto_schedule,
    builtin_arch,
    compare,
    kernel,
    pto,
    workload,
)
from pto_wsp.schedule.changes import changed, code_of, settings_of
from pto_wsp.view.card import ComparedPart, CurvePart, TablePart
from pto_wsp.view.html import html_of
from tests.view.test_cards import part_of, text_of

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
    """Six tasks of 100 cycles each, on n executors."""
    return rows().dispatch(DispatchPolicy.round_robin(n)).task_graph(trace=TracePolicy.cycles(lambda t: 100))


@pytest.fixture(scope="module")
def program() -> Program:
    return on(2).compile(target="interp").run()


# -- what is compared --------------------------------------------------------------------------------------------------
def test_schedules_are_timed_from_the_record_and_ranked(program: Program) -> None:
    found = program.compare({"three": on(3), "one": DispatchPolicy.round_robin(1)}, six=on(6).schedule)
    assert [(one.name, one.letter, one.cycles) for one in found] == [("six", "d", 100), ("three", "b", 200), ("as run", "a", 300),
                                                                    ("one", "c", 600)]
    assert found.first.name == "as run" and found.best.name == "six" and found["b"] is found["three"]
    assert found.best.changes == {"dispatch": "round_robin(6)"}
    columns = found.columns()
    assert columns["speedup"].tolist() == [3.0, 1.5, 1.0, 0.5]
    assert columns["gap"].tolist() == [0.0, 0.0, 0.0, 0.0] and columns["lower_bound"].tolist() == [100, 200, 300, 600]
    assert columns["cores_used"].tolist() == [6, 3, 2, 1] and columns["tasks"].tolist() == [6] * 4
    assert columns["changes"].tolist() == ["dispatch round_robin(6)", "dispatch round_robin(3)", "", "dispatch round_robin(1)"]


def test_a_policy_takes_the_place_of_that_of_the_run_and_leaves_the_others(program: Program) -> None:
    found = compare(program, [TaskWindow(1), ReadyPolicy.work_steal()], TaskWindow(64, "edges"), builtin_arch("unit").with_aicpu(count=8))
    by_letter = {one.letter: one for one in found}
    assert by_letter["b"].changes == {"window": "1", "ready": "work_steal"} and by_letter["b"].cycles == 600
    assert by_letter["c"].name == "window of edges 64" and by_letter["c"].cycles == 300
    assert by_letter["d"].changes == {"arch.aicpu.count": "8"}
    assert by_letter["c"].settings["dispatch"] == "round_robin(2)" and by_letter["c"].settings["window"] == "8,192"


def test_figures_and_simulations_are_compared_too(program: Program) -> None:
    found = compare(program.simulate(on(3)), program.stats, {"one": program.simulate(on(1))})
    assert [one.cycles for one in found] == [200, 300, 600]
    assert found.rows[1].trace is None and found.rows[1].changes == {}
    assert found["one"].kernel_cycles == {"scale": 600}
    assert [one.name for one in compare(program, program, program.stats)] == ["rows", "rows (2)", "figures"]


def test_equals_are_ranked_by_what_changes_least(program: Program) -> None:
    found = program.compare(steal=[ReadyPolicy.work_steal(), TaskWindow(32)], wide=TaskWindow(32))
    assert [one.name for one in found] == ["as run", "wide", "steal"] and found.card.sentence == "All 3 take 300 cycles."


def test_a_program_without_tasks_is_compared() -> None:
    @workload
    def empty() -> None:
        for b in P(0):
            scale[b](X[b], Y[b])

    found = compare(empty().compile(target="interp").run(), TaskWindow(4))
    assert found.best.cycles == 0 and "No task ran." in text_of(html_of(found.card)) and "No task ran." in str(found)


@pytest.mark.parametrize(("given", "code"), [
    ((), "S112"), ((42,), "S112"), (({"wide": TaskWindow(4)},), "S112"), (({3: TaskWindow(4)},), "S112"),
    ((on(2).compile(target="interp"),), "R103")])
def test_what_cannot_be_compared_is_refused(given: tuple[object, ...], code: str) -> None:
    with pytest.raises(PtoError) as raised:
        compare(*given)
    assert raised.value.code == code


def test_a_refusal_says_which_one_it_is_of(program: Program) -> None:
    with pytest.raises(PtoError, match="while comparing 'odd'"):
        program.compare(odd=[TaskWindow(4), "x"])
    with pytest.raises(PtoError, match="two of the compared are called 'a'"):
        program.compare({"a": TaskWindow(4)}, a=TaskWindow(8))


# -- what is shown -----------------------------------------------------------------------------------------------------
def test_the_card_has_one_scale_and_boxes_what_differs(program: Program) -> None:
    found = program.compare({"<b>three</b>": on(3), "stolen": [ReadyPolicy.work_steal(), DispatchPolicy.round_robin(1)]})
    part = part_of(found.card, ComparedPart)
    assert part.total == 600 and [row.cycles for row in part.rows] == [200, 300, 600] and part.bound is None
    differing = [[setting.label for setting in row.settings if setting.differs] for row in part.rows]
    assert differing == [["dispatch"], [], ["dispatch", "ready"]]
    assert [sum(segment.amount for segment in row.segments) for row in part.rows] == [200, 300, 600]
    marks = [mark for row in part.rows for pool in row.pools for lane in pool.lanes for mark in lane.marks]
    assert len(marks) == 18 and {mark.width for mark in marks} == {167, 166} and part.ticks == (0, 100, 200, 300, 400, 500, 600)
    assert [row.versus for row in part.rows] == ["−33 %", "", "+100 %"]
    html = html_of(found.card)
    assert "<b>three</b>" in text_of(html) and html.count('class="boxed"') == 3 and len(html) < 20_000


def test_of_many_the_card_shows_some_and_the_first(program: Program) -> None:
    found = program.compare({f"window {n}": TaskWindow(n) for n in range(1, 40)})
    part = part_of(found.card, ComparedPart)
    assert len(part.rows) == 12 and part.more == 28 and any(row.letter == "1" for row in part.rows)
    assert len(html_of(found.card)) < 100_000 and len(str(found).splitlines()) < 30


def test_kernels_whose_cycles_differ_are_told(program: Program) -> None:
    dearer = on(2).task_graph(trace=TracePolicy.cycles(lambda t: 150)).schedule
    table = part_of(program.compare(dearer=dearer).card, TablePart)
    assert table.rows == (("scale", "600", "900"),) and table.head == ("kernel", "a as run", "b dearer")


def test_the_text_has_bars_on_one_scale(program: Program) -> None:
    lines = str(program.compare({"one": on(1)})).splitlines()
    assert lines[0] == "as run: 300 cycles, at the lower bound; nothing here is faster."
    assert lines[2].count("█") == 12 and lines[3].count("█") == 23 and "dispatch round_robin(1)" in lines[3] and "+100 %" in lines[3]


def test_a_page_has_the_comparison_and_each_of_the_compared(program: Program, tmp_path: Path) -> None:
    page = program.compare(three=on(3)).report(tmp_path / "x.html").read_text()
    shown = text_of(page)
    assert "compare(a, b)" in shown
    assert "w.dispatch(DispatchPolicy.round_robin(3)).task_graph(trace=TracePolicy.cycles(lambda t: 100))" in shown
    assert shown.count("Executors") == 2


# -- schedules as code -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("schedule", [
    Schedule(),
    on(3).schedule,
    rows().dispatch(DispatchPolicy.affinity("b", 2)).streams(2).task_graph(window=(TaskWindow(8), TaskWindow(4, "edges")),
                                                                          pools=Pools.by_exec_unit()).named("it's").schedule,
    rows().dispatch(DispatchPolicy.dispatch_by(lambda t: -1 * t.get("b") + t.params[0] // 2, 3)).stream_by("b").schedule,
    rows().task_graph(ready=ReadyPolicy.priority(lambda t: -t.get("b", 0))).schedule,
    rows().calendar([(0, 0), (0, 1)]).schedule,
], ids=["default", "cycles", "windows", "keys", "a default", "table"])
def test_code_gives_the_schedule_back(schedule: Schedule) -> None:
    import pto_wsp

    code = code_of(schedule)
    assert eval(f"w{code}", {**{name: getattr(pto_wsp, name) for name in pto_wsp.__all__}, "w": rows()}).schedule == schedule


def test_a_change_of_the_graph_leaves_where_edges_come_from() -> None:
    assert changed(Schedule(), TaskWindow(8)).deps == Schedule().deps
    assert settings_of(changed(Schedule(), TaskWindow(8)))["deps"] == settings_of(Schedule())["deps"] == "hybrid"


def test_what_a_search_found_is_compared(program: Program) -> None:
    found = auto_schedule(on(2), budget=4)
    assert compare(program, found.schedule).best.cycles <= 300


def test_a_simulation_shows_itself(program: Program) -> None:
    shown = text_of(program.simulate(on(3))._repr_mimebundle_()["text/html"])
    assert "Simulation · unit" in shown and "200 cycles, at the lower bound" in shown and "DispatchPolicy.round_robin(3)" in shown


# -- searches ----------------------------------------------------------------------------------------------------------
def test_a_search_is_ranked_with_how_it_came_to_the_best() -> None:
    found = auto_schedule(rows().dispatch(DispatchPolicy.round_robin(2)), budget=40)
    card = found.card
    ranking, curve = part_of(card, ComparedPart), part_of(card, CurvePart)
    assert [row.cycles for row in ranking.rows] == sorted({trial.cycles for trial in found.trials})
    assert "auto_schedule(rows)" in card.title and f"{found.cycles:,} cycles" in card.sentence
    best = sorted({round(1000 * (int(curve.high.replace(",", "")) - min(t.cycles for t in found.trials[:k + 1])) / max(
        1, int(curve.high.replace(",", "")) - int(curve.low.replace(",", "")))) for k in range(len(found.trials))})
    assert sorted({step.y for step in curve.steps}) == best and len(curve.dots) == len(found.trials)
    assert found.comparison is not None and found.comparison.best.cycles == found.cycles
    assert pickle.loads(pickle.dumps(found)).comparison is None
    assert repr(found) == str(found) and "AutoSchedule(" not in repr(found)
    assert len(text_of(html_of(card))) < 20_000


def test_ctrl_c_leaves_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    simulate = Program.simulate

    def interrupted(self: Program, *args: object, **named: object) -> object:
        asked.append(args)
        if len(asked) == 5:
            raise KeyboardInterrupt
        return simulate(self, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Program, "simulate", interrupted)
    found = auto_schedule(on(2), budget=40)
    assert found.was_stopped and len(found.trials) == 4 and found.cycles == min(trial.cycles for trial in found.trials)
    assert "stopped by Ctrl-C" in str(found) and "then stopped" in text_of(html_of(found.card))


def test_the_label_of_the_bound_stays_on_the_card() -> None:
    found = html_of(on(6).compile("interp").run().compare({"b": on(6)}).card)
    assert '<b style="left:100.00%;transform:translateX(-100.00%)">bound 100</b>' in found

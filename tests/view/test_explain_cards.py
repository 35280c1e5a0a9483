"""Waits as strips, chains of causes, edges and paths as tables: what they say and that it adds up."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DispatchPolicy, DType, In, Out, P, Program, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.view.card import BarPart, CodePart, StripPart, TablePart
from tests.view.test_cards import part_of, text_of

X, Y, Z = (Tensor(np.ones((6, 16, 64), np.float32), name=name) for name in "XYZ")


@kernel
def load(x: In[Tile[16, 64, DType.F32]], y: Out[Tile[16, 64, DType.F32]]) -> None:
    pto.store(y, x * 2.0)


@workload
def two() -> None:
    for b in P(6):
        load[b](X[b], Y[b])
        load[b](Y[b], Z[b])


@workload
def none() -> None:
    for b in P(0):
        load[b](X[b], Y[b])


def scheduled() -> Workload:
    return two().dispatch(DispatchPolicy.round_robin(2))


@pytest.fixture(scope="module")
def program() -> Program:
    return scheduled().compile(target="interp", arch="ascend_910b", overheads=True).run()


def test_a_wait_is_a_strip_whose_spans_add_up(program: Program) -> None:
    for task in range(12):
        found = program.explain(task)
        strip = part_of(found.card, StripPart)
        assert len(strip.moments) == len(strip.spans) + 1
        assert [later - earlier for (_, earlier), (_, later) in zip(strip.moments, strip.moments[1:], strict=False)] == [
            span.amount for span in strip.spans]
        assert (strip.moments[0][1], strip.moments[-1][1]) == (found.submitted, found.completed)
        assert all(span.amount > 0 for span in strip.spans)
        (run,) = [span for span in strip.spans if span.label == "runs"]
        assert run.amount == found.ended - found.started
        assert found.card.sentence == f"Delayed by {found.cause.text}."
    assert any("RAW on Y[" in span.cause for span in strip.spans)


def test_a_wait_has_the_line_of_the_call(program: Program) -> None:
    card = program.explain(3).card
    (line,) = part_of(card, CodePart).lines
    assert [run.text for run in line.runs if run.tone == "mark"] == ["load[b](Y[b], Z[b])"]
    assert part_of(card, TablePart).rows[0][1] == "2 load[b=1]"


def test_a_task_that_waits_for_an_executor_names_it_at_that_boundary() -> None:
    program = scheduled().compile(target="interp").run()
    late = next(program.explain(task) for task in range(12) if program.explain(task).cause.held.name == "EXECUTOR")
    (span,) = [span for span in part_of(late.card, StripPart).spans if span.tone == "bad"]
    assert span.amount == late.started - late.ready and span.cause == late.cause.text


def test_the_bar_of_a_chain_makes_up_the_makespan(program: Program) -> None:
    chain = program.explain().chain()
    bar, table = part_of(chain.card, BarPart), part_of(chain.card, TablePart)
    assert sum(segment.amount for segment in bar.segments) == program.stats.total_cycles
    assert [row[:3] for row in table.rows] == [(f"{s.begin:,}", f"{s.end:,}", f"{s.end - s.begin:,}") for s in chain]
    assert chain.card.sentence.startswith(f"{program.stats.total_cycles:,} cycles: {chain.cycles['task']:,} in ")


def test_edges_and_paths_are_tables_with_reasons(program: Program) -> None:
    why = program.graph.why(0, 1)
    (row,) = part_of(why.card, TablePart).rows
    assert row[:3] == ("0 load[b=0]", "1 load[b=0]", "RAW on Y[0, 0:16, 0:64], order")
    assert program.graph.why(0, 11).card.sentence == "Nothing orders them."
    path = program.critical_path
    rows = part_of(path.card, TablePart).rows
    assert sum(int(row[0].replace(",", "")) for row in rows) == path.cycles and len(rows) == len(path)


def test_nothing_ran_is_said() -> None:
    program = none().compile(target="interp").run()
    for value in (program.critical_path, program.trace, program.stats, program.graph):
        text_of(value._repr_mimebundle_()["text/html"])
    assert program.critical_path.card.sentence == "No task ran."

"""Generated workloads, sanitized: a run ends with a race exactly when two tasks share an element and no way through the structure orders
them, as a search over all pairs finds; without one it leaves the bits of program order, and shows what the plain program does under any
schedule. Taking one ordered loop's order away is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from pto_wsp import Deps, Program, PtoError, TaskWindow, Tensor, Workload, connect, process
from pto_wsp.run.interpreter import stream_of
from pto_wsp.run.orchestrator import MarkInstance, TaskInstance
from tests.laws.generated_pipelines import FOLD, WIDTHS, expected, random_network, workload_of
from tests.laws.generated_schedules import ScheduleRecipe, schedule_recipes
from tests.laws.generated_workloads import Bench, For, If, Part, Slotted, Spot, Together, Walk, WorkloadRecipe, workload_recipes
from tests.laws.generated_workloads import Call as TaskCall
from tests.laws.test_workloads import elements
from tests.tolerances import assert_identical

pytestmark = pytest.mark.usefixtures("races_allowed")


def has_race(traced: Workload) -> bool:
    """Tell whether two tasks that share an element, one of them writing it, have no order in the structure."""
    program = traced.compile(target="interp")
    before: list[frozenset[int]] = []
    touched: list[tuple[int, frozenset[int], frozenset[int]]] = []
    for node, item in enumerate(stream_of(program.plan, program.bind())):
        match item:
            case TaskInstance():
                direct: tuple[int, ...] = (*item.order, *item.after)
            case MarkInstance():
                direct = item.order
            case tuple():
                direct = item
            case _:
                direct = ()
        before.append(frozenset(direct).union(*(before[source] for source in direct)))
        if isinstance(item, TaskInstance):
            reads, writes = elements(program, item)
            for other, read_before, written_before in touched:
                conflict = writes & (read_before | written_before) or reads & written_before
                if conflict and other not in before[node]:
                    return True
            touched.append((node, reads, writes))
    return False


def sanitized(bench: Bench, traced: Workload) -> Program | None:
    """Run sanitized; None: it ended with a race, and no task had run."""
    program = traced.compile(sanitize=True)
    try:
        bench.run(program)
    except PtoError as error:
        assert error.code == "R201" and "program.replay(0x" in error.notes[-1]
        assert np.array_equal(bench.memory, bench.start)
        return None
    assert program.sanitized is not None and program.sanitized.unchecked == 0
    return program


def check(recipe: WorkloadRecipe) -> bool:
    """Raise AssertionError unless sanitized runs are right about this workload; return whether it races."""
    bench = Bench(recipe)
    traced = bench.trace()
    expected = bench.run(traced.compile(target="interp"))
    races = has_race(traced)
    for scheduled in (traced, traced.task_graph(deps=Deps.infer_bytes_overlap())):
        program = sanitized(bench, scheduled)
        assert (program is None) == races, recipe
        if program is not None:
            assert_identical(bench.memory, expected, ("sanitized", recipe))
            seed = program.sanitized.seed   # type: ignore[union-attr]
            plain = scheduled.compile()
            bench.memory[...] = bench.start
            plain.replay(seed)
            assert_identical(bench.memory, expected, ("replayed", seed, recipe))
            assert plain.stats.total_cycles == program.stats.total_cycles
    return races


@pytest.mark.slow
@given(workload_recipes(control=True))
@settings(max_examples=3)
def test_a_sanitized_run_finds_the_races_that_there_are_in_many(recipe: WorkloadRecipe) -> None:
    check(recipe)


# ---- the plain program ----

def changed(parts: tuple[Part, ...], change: Callable[[Part], Part]) -> tuple[Part, ...]:
    """Return the parts, and those inside them, each changed."""
    return tuple(_changed(change(part), change) for part in parts)


def _changed(part: Part, change: Callable[[Part], Part]) -> Part:
    match part:
        case For() | Walk() | Slotted():
            return replace(part, body=changed(part.body, change))
        case Together(how, sides):
            return Together(how, tuple(changed(side, change) for side in sides))
        case If(_, sides, otherwise):
            rest = None if otherwise is None else changed(otherwise, change)
            return replace(part, sides=tuple(changed(side, change) for side in sides), otherwise=rest)
        case _:
            return part


def in_order(part: Part) -> Part:
    """Return an ordered loop for a loop, sides one after another for any sides: then nothing races."""
    if isinstance(part, For | Walk):
        return replace(part, ordered=True)
    return Together("sequential", part.sides) if isinstance(part, Together) else part


def on_one_tensor(part: Part) -> Part:
    """Return a task on the whole tensor alone: Deps.explicit() refuses two tensors on one memory."""
    return replace(part, x=replace(part.x, tensor="whole"), y=replace(part.y, tensor="whole")) if isinstance(part, TaskCall) else part


def seen(bench: Bench, program: Program) -> tuple[object, ...]:
    """Return all that a run shows: edges with their reasons, when each task ran and where, the numbers of the report, what it left."""
    left = bench.run(program)
    trace, report = program.trace, str(program.stats).splitlines()[1:]    # the first line has the times of this machine
    return ([(edge.source, edge.target, edge.bits) for edge in program.graph.edges], program.stats.total_cycles, report,
            trace.start.tolist(), trace.end.tolist(), left.tolist())


def check_is_the_plain_program(recipe: WorkloadRecipe, schedule: ScheduleRecipe) -> None:
    """Raise AssertionError unless a sanitized run shows what the plain one does."""
    if schedule.deps == "explicit":
        recipe = replace(recipe, parts=changed(recipe.parts, on_one_tensor))
    bench = Bench(recipe)
    if has_race(bench.trace()):
        bench = Bench(replace(recipe, parts=changed(recipe.parts, in_order)))
    scheduled = schedule.of(bench.trace())
    try:
        plain = scheduled.compile()
    except PtoError as error:      # exact regions, or structure alone, leave conflicts without an order
        assert schedule.deps in ("exact", "explicit") and error.code == "W203", (error, bench.recipe, schedule)
        with pytest.raises(PtoError, match=error.code):
            scheduled.compile(sanitize=True)
        return
    assert seen(bench, scheduled.compile(sanitize=True)) == seen(bench, plain), (bench.recipe, schedule)


APART = WorkloadRecipe((For(3, False, (For(2, False, (
    TaskCall("put", (1, 1), Spot("whole", 8, 0, (0, 0), (0, 0)), Spot("whole", 0, 0, (2, 0), (0, 2))),)),)),), (), 7)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("schedule", [
    ScheduleRecipe(streams=1), ScheduleRecipe(streams=2, stream_by=3, deps="overlap"),
    ScheduleRecipe(("round robin", 4), streams=1, deps="explicit"),
    ScheduleRecipe(("steal", 2), stream_by=2, timing=("interleaved", 2), deps="exact", window=TaskWindow(2), trace="cycles")], ids=str)
def test_streams_order_a_sanitized_run(schedule: ScheduleRecipe) -> None:
    check_is_the_plain_program(APART, schedule)
    assert any("stream" in edge.reasons for edge in schedule.of(Bench(APART).trace()).compile(sanitize=True).run().graph.edges)


@pytest.mark.slow
@given(workload_recipes(control=True), schedule_recipes())
@settings(max_examples=4)
def test_a_sanitized_run_is_the_plain_program_under_many_schedules(recipe: WorkloadRecipe, schedule: ScheduleRecipe) -> None:
    check_is_the_plain_program(recipe, schedule)


# ---- one order taken away ----

def _row(part: str = "mix") -> TaskCall:
    """A task that updates the same row whatever the loops are at."""
    return TaskCall(part, (1, 1), Spot("whole", 3, 3, (0, 0), (0, 0)), Spot("whole", 5, 5, (0, 0), (0, 0)))


ORDERED = WorkloadRecipe((For(3, True, (For(2, True, (_row(),)), _row())), _row()), (), 7)


def without_one_order(parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
    """Yield the parts with one ordered loop made free, or two neighbours put side by side."""
    for k, part in enumerate(parts):
        if isinstance(part, For):
            if part.ordered:
                yield (*parts[:k], replace(part, ordered=False), *parts[k + 1:])
            for body in without_one_order(part.body):
                yield (*parts[:k], replace(part, body=body), *parts[k + 1:])
        if k + 1 < len(parts):
            yield (*parts[:k], Together("combine", ((part,), (parts[k + 1],))), *parts[k + 2:])


@pytest.mark.slow
def test_every_order_that_is_taken_away_is_missed() -> None:
    assert not check(ORDERED)
    mutants = [replace(ORDERED, parts=parts) for parts in without_one_order(ORDERED.parts)]
    assert len(mutants) == 4
    assert all(check(mutant) for mutant in mutants)


# ---- pipelines ----

@pytest.mark.slow
@pytest.mark.parametrize("deps", [Deps.hybrid(), Deps.infer_bytes_overlap()], ids=str)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 4))])
def test_networks_are_what_they_are(seed: int, deps: Deps) -> None:
    """Each process notes in a row of its own: nothing races, and numbers, cycles and edges are those of the plain program."""
    costs = dict.fromkeys(WIDTHS, 1)
    network = next(drawn for k in range(100) if expected(drawn := random_network(3000 + 100 * seed + k, merges=seed == 1), costs, 0)[0]
                   == "ended")
    notes = np.zeros((len(network.scripts), 8), np.int64)
    traced = workload_of(network, Tensor(notes, name="acc")).task_graph(deps=deps)
    plain = traced.compile().run()
    left = notes.copy()
    notes[...] = 0
    program = traced.compile(sanitize=True).run()
    assert program.sanitized is not None and (program.sanitized.races, program.sanitized.unchecked) == (0, 0)
    assert np.array_equal(notes, left)
    assert program.stats.total_cycles == plain.stats.total_cycles
    assert [(e.source, e.target, e.bits) for e in program.graph.edges] == [(e.source, e.target, e.bits) for e in plain.graph.edges]


def test_processes_that_note_in_one_row_race() -> None:
    notes = Tensor(np.zeros((2, 8), np.int64), name="acc")

    def noting() -> None:
        FOLD[1](x=notes[0:1, 0:1], n=3)
    both = connect([process("one").body(noting), process("other").body(noting)], [])
    with pytest.raises(PtoError) as caught:
        both.compile(sanitize=True).run()
    assert caught.value.code == "R201" and caught.value.help == "order them through a channel or an event"

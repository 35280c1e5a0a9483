"""Emitted orchestrations on the host runtime: their task graphs order what cpu_sim's graphs order, and nothing else.

The mutants at the end take edges out of the emitted text: every one is noticed.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    DenseDyn,
    Deps,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    PtoError,
    Ragged,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    combine,
    kernel,
    pto,
    workload,
)
from pto_wsp.npu.emit.orchestration import emit_orchestration
from tests.npu.harness import Outcome, RunFault
from tests.npu.package import RUNTIMES, Array
from tests.npu.submits import Orders, compare_orders, npu_plan, submit
from tests.npu.tasks import grow, move

F32, I64 = DType.F32, DType.I64
N = 6


@kernel
def mix(a: In[Tile[16, 16, F32]], b: In[Tile[16, 16, F32]], y: Out[Tile[16, 16, F32]]) -> None:
    """A product, then vector work: two tasks on the device."""
    pto.store(y, pto.exp(pto.matmul(a, b)) + 1)


@kernel
def scaled(x: In[Tile[4, 8, F32]], f: Scalar[F32], n: Scalar[I64], y: Out[Tile[4, 8, F32]]) -> None:
    """Use one scalar of each kind."""
    pto.store(y, x * f + pto.full((1, 1), n, F32))


def tensors(names: str, *shape: int) -> tuple[Tensor, ...]:
    """Return a tensor of that shape for each letter."""
    return tuple(Tensor(np.ones(shape, np.float32), name=name) for name in names)


def loops() -> Workload:
    """Two statements in a loop, a loop behind it, and an ordered loop behind that."""
    X, Y, Z = tensors("XYZ", 8, 4, 8)

    @workload
    def case() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
            move[b](Y[b], Z[b])
        for b in P(8):
            move[b](Z[b], X[b])
        for i in P.seq(4):
            made = move[i](X[i], Y[i + 1])
            move[i](X[i], Z[i], after=made)
    return case()


def barrier() -> Workload:
    """More tasks on both sides of a statement's end than one task can wait for: they are joined."""
    X, Y, Z = tensors("XYZ", 40, 4, 8)

    @workload
    def case() -> None:
        for b in P(40):
            move[b](X[b], Y[b])
        for b in P(40):
            move[b](X[39 - b], Z[b])
        move(X[0], Y[3])
    return case()


def nested() -> Workload:
    """Loops in loops, with a handle used in its body, behind one loop, and behind both."""
    X, Y, Z = (Tensor(np.ones((N, 3, 4, 8), np.float32), name=name) for name in "XYZ")

    @workload
    def case() -> None:
        for b in P(N):
            for h in P(3):
                made = move[b, h](X[b, h], Y[b, h])
                move[b, h](X[b, h], Z[b, h], after=made)
            move[b](X[b, 0], X[b, 1], after=made)
        move(X[0, 2], Z[5, 2], after=made)
    return case()


def sides() -> Workload:
    """Sides without an order, between two statements."""
    X, Y, Z = tensors("XYZ", 8, 4, 8)

    @workload
    def left() -> None:
        for b in P(3):
            move[b](X[b], Y[b])

    @workload
    def right() -> None:
        move(X[4], Y[4])
        move(X[5], Y[5])

    @workload
    def case() -> None:
        move(X[6], Y[6])
        combine(left(), right())
        move(X[7], Z[7])
    return case()


def ragged() -> Workload:
    """Rows of lengths from data, one of them empty, in a DenseDyn axis, with symbols."""
    X, Y = (Tensor(np.ones((4, 4, 4, 8), np.float32), name=name) for name in "XY")
    lens = Tensor(np.array([1, 4, 0, 2], np.int32), name="lens")
    rows, scale, count = DenseDyn(4), Symbol("scale"), Symbol("count", DType.I64)
    lengths = Ragged(rows, lens)

    @workload
    def case() -> None:
        for b in P(rows):
            for t in P.seq(lengths[b]):
                made = scaled[b, t](X[b, t], scale, lens[b] * 2, Y[b, t])
            for t in P(count):
                scaled[b, t](X[b, t], 0.1, t, Y[b, t], after=made)
    return case()


def overwrite() -> Workload:
    """Reads that later tasks write over: parts, the whole, in place, and in a loop that goes on."""
    X, Y, Z = tensors("XYZ", 8, 4, 8)

    @workload
    def case() -> None:
        for i in P.seq(4):
            for b in P(3):
                move[i, b](X[b + i], Y[b])
            grow[i](X[i + 1])
            move[i](Z[i], X[i + 3])
    return case().task_graph(deps=Deps.infer_bytes_overlap())


def in_place() -> Workload:
    """A state that every turn reads and writes, and a residual that is added behind what read it."""
    X, Y, Z = tensors("XYZ", 8, 4, 8)

    @workload
    def case() -> None:
        for b in P(N):
            move[b](X[b], Y[b])
            move[b](Y[b], X[b])
        for b in P.seq(N):
            grow[b](X[0])
            move[b](X[0], Z[b])
    return case().task_graph(deps=Deps.infer_bytes_overlap())


def split() -> Workload:
    """Kernels that become two tasks each, in order, with handles, and one that writes what they read."""
    A, B, Y = tensors("ABY", 4, 16, 16)

    @workload
    def case() -> None:
        for b in P(4):
            made = mix[b](A[b], B[b], Y[b])
            mix[b](Y[b], B[b], A[b])
        mix(A[0], A[1], B[2], after=made)
        mix(A[2], Y[0], Y[1])
    return case()


def handles() -> Workload:
    """The handles of `nested` where nothing else orders its tasks."""
    return nested().task_graph(deps=Deps.infer_bytes_overlap())


def split_handles() -> Workload:
    """Kernels of two tasks each that share nothing: only the handles order them."""
    A, B, Y = tensors("ABY", 8, 16, 16)

    @workload
    def case() -> None:
        for b in P(2):
            made = mix[b](A[b], B[b], Y[b])
            mix[b](A[b], B[b], Y[b + 2], after=made)
        mix(A[0], A[1], Y[4], after=made)
    return case().task_graph(deps=Deps.infer_bytes_overlap())


def reshapes() -> Workload:
    """Views in other shapes, of parts and of the whole, that are written over."""
    X, Y = (Tensor(np.ones((8, 4, 8), np.float32), name=name) for name in "XY")

    @workload
    def case() -> None:
        for b in P(4):
            move[b](X.reshape(64, 4)[b * 8:(b + 1) * 8].reshape(4, 8), Y[b])
            move[b](Y[b].reshape(2, 16).reshape(4, 8), X[b])
        move(X[0], Y.reshape(32, 8)[4:8])
    return case()


CASES: dict[str, Callable[[], Workload]] = {
    case.__name__: case for case in (loops, barrier, nested, sides, overwrite, in_place, split, handles, split_handles)}


def arrays_of(value: Workload) -> dict[str, Array]:
    """Return ones for each tensor of a workload."""
    return {slot.ref.shown: np.ones(slot.ref.shape, slot.ref.dtype.np) for slot in npu_plan(value).arguments}


def simulated(value: Workload) -> Program:
    """Return the program of a workload for cpu_sim, after its run."""
    program = value.compile()
    program.run()
    return program


@cache
def case(name: str) -> tuple[Workload, Program]:
    """Return a case and its program, which has run."""
    value = CASES[name]()
    return value, simulated(value)


def orders(value: Workload, program: Program, root: Path, change: Callable[[str], str] = lambda text: text) -> Orders:
    """Return what the device's graph and that of a run of cpu_sim order."""
    return compare_orders(value, submit(root, npu_plan(value), arrays_of(value), change=change).graph, program)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_device_orders_what_cpu_sim_orders(name: str, tmp_path: Path) -> None:
    found = orders(*case(name), tmp_path)
    assert found.found == found.wanted
    assert not list(found.graph.unordered_conflicts())


@pytest.mark.slow
def test_a_part_of_a_reshaped_tensor_counts_as_all_of_it(tmp_path: Path) -> None:
    """Where boxes of one shape are not boxes of the other, tasks wait for more than they need, and never for less."""
    value = reshapes()
    found = orders(value, simulated(value), tmp_path)
    assert found.wanted < found.found
    assert not list(found.graph.unordered_conflicts())


RAGGED_SCALARS = {"rows": ctypes.c_int64(3), "scale": ctypes.c_float(0.3), "count": ctypes.c_int64(2)}


def ragged_run(root: Path, **changed: Any) -> tuple[Outcome, Any]:
    """Run the ragged case on the host runtime, and in cpu_sim."""
    program = ragged().compile()
    program.run(rows=3, scale=np.float32(0.3), count=2)
    plan = npu_plan(ragged())
    arrays = arrays_of(ragged()) | {"lens": np.array([1, 4, 0, 2], np.int32)}
    scalars = {symbol.name or "rows": RAGGED_SCALARS[symbol.name or "rows"] for symbol in plan.symbols}
    runtime = changed.pop("runtime", RUNTIMES[0])
    return submit(root, plan, arrays | changed.pop("arrays", {}), scalars | changed, runtime=runtime), program


@pytest.mark.slow
def test_loops_follow_lengths_and_symbols(tmp_path: Path) -> None:
    outcome, program = ragged_run(tmp_path)
    found = compare_orders(ragged(), outcome.graph, program)
    assert found.found == found.wanted
    assert len(outcome.graph.tasks) == 1 + 4 + 0 + 3 * 2


@pytest.mark.slow
def test_scalars_come_behind_tensors_by_their_type(tmp_path: Path) -> None:
    """Floats are the bits of an f32, whatever they were written as; integers have 64 bits."""
    tasks = ragged_run(tmp_path)[0].graph.tasks
    bits = [int(np.float32(value).view(np.uint32)) for value in (0.3, 0.1)]
    assert tasks[0].scalars == (bits[0], 2)           # lens[0] * 2
    assert tasks[2].scalars == (bits[1], 1)           # t


@pytest.mark.slow
def test_a_check_that_fails_is_said_and_nothing_is_submitted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunFault) as fault:
        outcome = ragged_run(tmp_path, arrays={"lens": np.array([1, 9, 0, 2], np.int32)})[0]
        raise RunFault(f"{len(outcome.graph.tasks)} tasks")
    assert str(fault.value) == "0 tasks"


@pytest.mark.slow
def test_elements_that_are_given_are_read_by_the_other_runtime_too(tmp_path: Path) -> None:
    plan = npu_plan(ragged())
    assert emit_orchestration(plan, "host_build_graph") == emit_orchestration(plan)
    outcome, program = ragged_run(tmp_path, runtime="host_build_graph")
    found = compare_orders(ragged(), outcome.graph, program)
    assert found.found == found.wanted


def test_elements_that_tasks_write_are_not() -> None:
    lens, X, Y = Tensor(np.ones((1, 8), np.int32), name="lens"), *tensors("XY", 8, 4, 8)

    @kernel
    def measure(n: InOut[Tile[1, 8, DType.I32]]) -> None:
        """Add one."""
        pto.store(n, n + 1)

    @workload
    def case() -> None:
        measure(lens)
        for b in P(lens[0, 1]):
            move[b](X[b], Y[b])
    with pytest.raises(PtoError, match=r"(?s)N101.*host_build_graph cannot read `lens\[0, 1\]`, which tasks write.*test_orchestration.py"):
        emit_orchestration(npu_plan(case()), "host_build_graph")


@pytest.mark.slow
@pytest.mark.parametrize(("family", "runtime"), [("a5", RUNTIMES[0]), ("a2a3", RUNTIMES[1]), ("a5", RUNTIMES[1])])
def test_the_same_text_serves_other_archs_and_runtimes(family: str, runtime: str, tmp_path: Path) -> None:
    plan = npu_plan(split())
    tasks = submit(tmp_path, plan, arrays_of(split()), family=family, runtime=runtime).graph.tasks
    assert sum(bool(task.kernels) for task in tasks) == 20


@pytest.mark.slow
def test_all_parts_of_a_task_wait_for_all_parts_of_a_handle(tmp_path: Path) -> None:
    graph = submit(tmp_path, npu_plan(split_handles()), arrays_of(split_handles())).graph
    for waiting, awaited in ((2, 0), (3, 0), (2, 1), (3, 1), (8, 1), (9, 0), (9, 4), (8, 5)):
        assert graph.ancestors[waiting] >> awaited & 1


def test_intermediates_are_freed_behind_their_task(tmp_path: Path) -> None:
    plan = npu_plan(split())
    assert submit(tmp_path, plan, arrays_of(split())).graph.most_bytes == 16 * 16 * 4


def test_what_data_orders_is_not_told_again() -> None:
    """A simple program uses nothing beyond tensors, views and submits."""
    X, Y, Z = tensors("XYZ", 8, 4, 8)

    @workload
    def case() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
            move[b](Y[b], Z[b])
    text = emit_orchestration(npu_plan(case()))
    assert "#define PTO_WSP_EDGES" not in text and "wait_for" not in text


NAMES = ("inputs", "task", "after", "behind", "x_view", "int", "class", "readers_X", "made", "PTO2_SCOPE", "IN", "std", "b", "handle_0_0",
         "holds", "id", "é", "a b", "ends", "rt_submit_aiv_task", "u32", "NULL")


@pytest.mark.slow
def test_a_user_may_call_things_as_the_runtime_does(tmp_path: Path) -> None:
    X = [Tensor(np.ones((4, 8), np.float32), name=name) for name in NAMES]

    @workload
    def case() -> None:
        for task in P(2):
            for k in range(len(NAMES) - 1):
                made = scaled[task](X[k], Symbol(NAMES[k].replace(" ", "_") + "_"), 1, X[k + 1])
                scaled[task](X[k], Symbol(NAMES[k + 1].replace(" ", "_")), task, X[k + 1], after=made)
    plan = npu_plan(case())
    scalars: dict[str, Any] = {symbol.name: ctypes.c_float(1.0) for symbol in plan.symbols}
    assert len(submit(tmp_path, plan, arrays_of(case()), scalars).graph.tasks) >= 4 * (len(NAMES) - 1)


# ---- mutants: each takes some edges out of the emitted text ----

def without(pattern: str) -> Callable[[str], str]:
    """Return what takes out all lines that match."""
    def change(text: str) -> str:
        kept = re.sub(rf"^.*{pattern}.*\n", "", text, flags=re.MULTILINE)
        assert kept != text
        return kept
    return change


MUTANTS = [
    ("loops", r"behind\.add\(after\)"), ("loops", r"after = ends;"), ("loops", r"ends\.add\(after_2\)"),
    ("barrier", r"wait_for\(task, after"), ("handles", r"handle_\w+\.add\("), ("sides", r"ends\.add\("), ("overwrite", r"readers_X\.find"),
    ("overwrite", r"readers_X\.add"), ("in_place", r"readers_X\.find"), ("split", r"wait_for\("), ("split_handles", r"handle_\w+\.add\("),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pattern"), MUTANTS)
def test_a_lost_edge_is_noticed(name: str, pattern: str, tmp_path: Path) -> None:
    found = orders(*case(name), tmp_path, without(pattern))
    assert found.found < found.wanted


@pytest.mark.slow
def test_readers_are_forgotten_only_where_all_they_read_was_written(tmp_path: Path) -> None:
    """A mutant that forgets every reader at the first write loses an edge to the second."""
    X, Y, Z = tensors("XYZ", 8, 4, 8)

    @kernel
    def both(x: In[Tile[8, 8, F32]], y: Out[Tile[8, 8, F32]]) -> None:
        """Double two tiles at once."""
        pto.store(y, x * 2)

    @workload
    def case() -> None:
        both(X[0:2].reshape(8, 8), Y[0:2].reshape(8, 8))
        move(Z[0], X[0])
        move(Z[1], X[1])
    value = case().task_graph(deps=Deps.infer_bytes_overlap())
    program = simulated(value)
    whole = orders(value, program, tmp_path / "whole")
    assert whole.found == whole.wanted == {(0, 1), (0, 2)}

    def forgetful(text: str) -> str:
        return re.sub(r"readers_X\.written\(\w+, \w+\)", "readers_X = pto_wsp::Readers<3>()", text)
    assert orders(value, program, tmp_path / "mutant", forgetful).found == {(0, 1)}

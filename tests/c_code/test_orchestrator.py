"""Orchestrators in C: the files of the quick start as goldens, and one fact each for what a body may hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Constexpr,
    Dense,
    DenseDyn,
    Deps,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    Ragged,
    Scalar,
    Sparse,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    WindowMode,
    Workload,
    combine,
    kernel,
    pto,
    slot_set_u64,
    slot_u64,
    workload,
)
from tests.conftest import Golden

F32, I64 = DType.F32, DType.I64


def quick_start() -> Workload:
    """Return the workload of the quick start."""
    batch_size, num_tiles = 1, 2

    @kernel
    def rmsnorm_tile(x: In[Tile[16, 128, F32]], out: Out[Tile[16, 128, F32]]) -> None:
        sq = pto.mul(x, x)
        mean_sq = pto.rowmean(sq)
        inv = pto.rsqrt(mean_sq)
        pto.store(out, pto.mul(x, inv))

    X, Y = (Tensor(np.ones((batch_size, num_tiles, 16, 128), np.float32)) for _ in range(2))
    batch, tiles = Dense[batch_size](), Dense[num_tiles]()

    @workload
    def attention() -> None:
        for b in P(batch):
            for t in P(tiles):
                rmsnorm_tile[b, t](x=X[b][t], out=Y[b][t])

    return (attention().dispatch(DispatchPolicy.round_robin(num_aicpus=4))
            .task_graph(window=TaskWindow(8192, "tasks", WindowMode.STALL)))


@kernel
def one(n: Scalar[I64], f: Scalar[F32], y: Out[Tile[1, 4, F32]]) -> None:
    """Write a row of its numbers."""
    pto.store(y, pto.full((1, 4), n, F32) + pto.full((1, 1), f, F32))


def source(value: Workload, name: str = "orchestrator.c", **options: Any) -> str:
    """Return a generated file."""
    folder = value.compile(**options).artifact_dir
    assert folder is not None
    return (folder / "src" / name).read_text()


def test_quick_start(golden: Golden) -> None:
    folder = quick_start().compile(portable=True).artifact_dir
    assert folder is not None
    for name in ("kernels", "orchestrator"):
        golden((folder / "src" / f"{name}.c").read_text(), name, ".c")


def test_every_part_of_a_body(golden: Golden) -> None:
    Y, lens = Tensor(np.zeros((4, 4, 4), np.float32)), Tensor(np.array([1, 4, 0, 2], np.int64))
    rows, scale = DenseDyn(4), Symbol("scale")
    lengths = Ragged(rows, lens)

    @workload
    def left(b: Any) -> None:
        one[b](n=b, f=scale, y=Y[b, 0])

    @workload
    def right(b: Any) -> None:
        one[b](n=b * 2, f=0.5, y=Y[b, 1])

    @workload
    def everything() -> None:
        for b in P(rows):
            for t in P.seq(lengths[b]):
                made = one[b, t](n=lens[b], f=scale, y=Y[b, t])
            combine(left(b), right(b))
            one[b](n=1, f=2.0, y=Y[b, 3], after=[made])

    text = source(everything().dispatch(DispatchPolicy.hash(lambda t: t.b * 3, 2)).task_graph(deps=Deps.hybrid()))
    golden(text, suffix=".c")


def test_branches_walks_and_slots(golden: Golden) -> None:
    Y, lens = Tensor(np.zeros((4, 4, 4), np.float32)), Tensor(np.array([1, 4, 0, 2], np.int32))
    table = Tensor(np.array([3, -1, 2, 0], np.int64))
    routing = Sparse(Dense[4](), np.array([0, 1, 3, 3, 4]), np.array([2, 0, 3, 1]))
    limit = Symbol("limit")

    @workload
    def controlled() -> None:
        slot_set_u64(1, 2)
        for b, e in P(routing):
            with P.when(lens[e] > limit):
                made = one[b, e](n=e.position, f=1.0, y=Y[b, e])
            with P.elif_(table[b] >= 0):
                slot_set_u64(0, table[b] * 2)
                one[b, e](n=slot_u64(0), f=2.0, y=Y[b, e])
            one[b](n=slot_u64(1), f=3.0, y=Y[b, e], after=[made])

    golden(source(controlled().task_graph(deps=Deps.hybrid())), suffix=".c")


@pytest.mark.slow
def test_the_text_does_not_grow_with_the_tasks() -> None:
    def traced(n: int) -> tuple[str, int]:
        Y = Tensor(shape=(n, 4), dtype=F32, name="Y")
        rng = np.random.default_rng(0)
        indptr, turns = np.arange(n + 1), []
        routing, rows = Sparse(Dense[n](), indptr, rng.permutation(n)), DenseDyn(n)

        @workload
        def large() -> None:
            for b in P(rows):
                for e in P(routing[b]):
                    turns.append(e)
                    with P.when(e % 2 == 0):
                        one[b, e](n=e.position, f=1.0, y=Y[e])
                    with P.otherwise():
                        one[b](n=b, f=2.0, y=Y[e])

        return source(large()), len(turns)

    assert traced(4) == traced(200_000)
    assert traced(4)[1] == 1


NAMES = ("int64_t", "args", "bound", "behind", "pto_bind", "memcpy", "i_0", "after_1", "handle_0_1", "INT64_MAX", "PTO_READ", "linux",
         "double", "NULL", "node", "slot_0", "stop_1", "e_position_1")


@pytest.mark.slow
def test_a_user_may_call_tensors_and_kernels_as_c_calls_something_else() -> None:
    def named_like(name: str) -> tuple[Any, Tensor, Tensor]:
        def doubled(x: Any, y: Any) -> None:
            pto.store(y, pto.load(x) * 2)

        doubled.__annotations__ = {"x": In[Tile[1, 4, F32]], "y": Out[Tile[1, 4, F32]]}
        doubled.__name__ = name
        return kernel(doubled), Tensor(np.ones((2, 4), np.float32), name=name), Tensor(np.zeros((2, 4), np.float32))

    made = [named_like(name) for name in NAMES]

    @workload
    def named() -> None:
        for doubled, X, Y in made:
            for i in P(2):
                first = doubled[i](x=X[i], y=Y[i])
            for i in P(2):
                doubled[i](x=X[i], y=Y[i], after=[first])

    program = named().compile().run()
    assert program.stats.task_count == 4 * len(NAMES) and all((Y.data == 2).all() for _, _, Y in made)


def test_a_user_may_call_loop_variables_as_the_orchestrator_calls_something_else() -> None:
    pairs = (("after", "join"), ("join", "after"), ("handle_0", "sink"), ("bound", "node"), ("slot", "stop"), ("step", "e_position"))

    def run(target: str) -> tuple[Any, Any]:
        tensors = [Tensor(np.zeros((3, 4, 4), np.float32)) for _ in pairs]

        @workload
        def named() -> None:
            for (outer, inner), Y in zip(pairs, tensors, strict=True):
                for a in P(3, names=[outer]):
                    for b in P(4, names=[inner]):
                        made = one[a, b](n=a, f=1.0, y=Y[a, b])
                    for b in P.seq(2, names=[inner]):
                        one[a, b](n=b, f=0.5, y=Y[a, b], after=[made])

        program = named().compile(target).run()
        return np.stack([Y.data for Y in tensors]), program.graph.edges

    (found, edges), (expected, expected_edges) = run("cpu_sim"), run("interp")
    assert (found == expected).all() and edges == expected_edges


def test_the_kernel_table_has_one_entry_a_specialisation() -> None:
    @kernel
    def sized(k: Constexpr[int], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, pto.full((1, 4), k, F32))

    Y = Tensor(np.zeros((4, 4), np.float32))

    @workload
    def several() -> None:
        for k in range(3):
            sized[k](k=k, y=Y[k])
        sized[3](k=1, y=Y[3])

    program = several().compile().run()
    assert len(program.plan.kernels) == 3
    assert Y.data[:, 0].tolist() == [0, 1, 2, 1]


def test_the_text_does_not_depend_on_the_data() -> None:
    assert source(quick_start()) == source(quick_start())

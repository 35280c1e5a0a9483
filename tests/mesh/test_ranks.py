"""Workloads over ranks: where tasks run, what copies cost, what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    Arch,
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Mesh,
    Out,
    P,
    PtoError,
    ReadyPolicy,
    Tensor,
    TensorLayout,
    Tile,
    Workload,
    allgather,
    allreduce,
    broadcast,
    builtin_arch,
    copy,
    halo,
    kernel,
    pto,
    reduce_scatter,
    relayout,
    timeline,
    workload,
)
from pto_wsp.errors import (
    ArchError,
    CollectiveError,
    IntermediatesError,
    LayoutError,
    LayoutShapeError,
    MeshError,
    RankError,
    ScheduleConflictError,
)

F32 = DType.F32
MESH = Mesh(x=4)
ROWS, WHOLE, SUM = TensorLayout.sharded(0, 2, "x"), TensorLayout.replicated(2), TensorLayout.partial_of(2, "x")


@kernel
def double(x: In[Tile[2, 8, F32]], y: Out[Tile[2, 8, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def grow(y: InOut[Tile[2, 8, F32]]) -> None:
    pto.store(y, y + 1)


def given(n: int = 8) -> np.ndarray:
    return np.arange(n * 8, dtype=np.float32).reshape(n, 8)


def shift(by: int, **links: object) -> tuple[Workload, np.ndarray]:
    """Return the workload that copies each rank's rows `by` ranks on."""
    out = np.zeros((8, 8), np.float32)
    A, B = Tensor(given(), name="A", layout=ROWS), Tensor(out, name="B", layout=ROWS)

    @workload
    def shifted() -> None:
        for r in P(MESH):
            copy(A.on(r), B.on((r + by) % 4))

    return shifted(), out


# -- where tasks run ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_a_copy_goes_round_the_ranks(target: str) -> None:
    w, out = shift(1)
    program = w.compile(target=target, mesh=MESH)
    program.run()
    assert np.array_equal(out, np.roll(given(), 2, axis=0))
    assert program.bytes_sent.tolist() == [[64 * (q == (r + 1) % 4) for q in range(4)] for r in range(4)]


def test_ranks_run_side_by_side_and_dispatch_acts_within_each() -> None:
    out = np.zeros((8, 8), np.float32)
    A, B = Tensor(given(), layout=ROWS), Tensor(out, layout=ROWS)

    @workload
    def doubled() -> None:
        for r in P(MESH):
            double[r](A.on(r), B.on(r))

    one = doubled().compile(target="interp").run()
    assert one.stats.total_cycles == one.trace.end[0] - one.trace.start[0]
    assert [one.trace.name_of(e) for e in sorted(set(one.trace.executor.tolist()))] == [f"rank {r}" for r in range(4)]
    two = doubled().dispatch(DispatchPolicy.round_robin(2)).compile(target="interp").run()
    names = [two.trace.name_of(executor) for executor in two.trace.executor]
    assert names == ["rank 0 core 0", "rank 1 core 1", "rank 2 core 0", "rank 3 core 1"]
    shared = doubled().dispatch(DispatchPolicy.work_steal(2)).compile(target="interp").run()
    assert {shared.trace.name_of(executor).split(" core")[0] for executor in shared.trace.executor} == {f"rank {r}" for r in range(4)}
    assert np.array_equal(out, 2 * given())


# -- links -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("links, cycles", [({}, 16), ({"latency_cycles": 100}, 116),
                                           ({"bandwidth_bytes_per_cycle": 4.0, "latency_cycles": 7}, 7 + 16),
                                           ({"bandwidth_bytes_per_cycle": 0.5}, 128), ({"bandwidth_bytes_per_cycle": 3.0}, 22),
                                           ({"topology": "ring"}, 16), ({"topology": "torus"}, 16)])
def test_a_copy_holds_its_link_for_its_bytes(links: dict[str, object], cycles: int) -> None:
    w, _ = shift(1)
    program = w.compile(target="interp", arch=builtin_arch("unit").with_links(**links)).run()
    assert program.stats.total_cycles == cycles
    assert all(" link " in program.trace.name_of(executor) for executor in program.trace.executor)


def test_a_link_takes_one_copy_at_a_time() -> None:
    A, B, C = (Tensor(np.zeros((8, 8), np.float32), layout=ROWS) for _ in range(3))

    @workload
    def twice() -> None:
        for r in P(MESH):
            copy(A.on(r), B.on((r + 1) % 4))
            copy(A.on(r), C.on((r + 1) % 4))

    data = twice().task_graph(deps=Deps.infer_bytes_overlap())
    assert data.compile(target="interp").run().stats.total_cycles == 32


def test_an_arch_without_links_asks_for_them() -> None:
    w, _ = shift(1)
    with pytest.raises(ArchError, match="linked"):
        w.compile(target="interp", arch="ascend_910b")
    known = builtin_arch("ascend_910b").with_links(bandwidth_bytes_per_cycle=16.0)
    assert w.compile(target="interp", arch=known).run().stats.total_cycles == 4
    with pytest.raises(ArchError, match="speed"):
        w.compile(target="interp", arch=builtin_arch("ascend_910b").with_links(latency_cycles=1))


def test_computing_and_copying_overlap() -> None:
    A, B, C = (Tensor(np.zeros((8, 8), np.float32), layout=ROWS) for _ in range(3))

    @workload
    def beside() -> None:
        for r in P(MESH):
            copy(A.on(r), B.on((r + 1) % 4))
            double[r](A.on(r), C.on(r))

    slow = builtin_arch("unit").with_links(latency_cycles=1000)
    data = beside().task_graph(deps=Deps.infer_bytes_overlap()).compile(target="interp", arch=slow).run()
    order = beside().compile(target="interp", arch=slow).run()
    assert data.stats.total_cycles == 1016 < order.stats.total_cycles
    assert "rank 3 link to rank 0" in str(timeline(data.trace))


def test_each_rank_has_a_memory_of_its_own() -> None:
    def held() -> None:
        A = Tensor(given(), layout=ROWS)
        Y = Tensor.empty((8, 8), F32, layout=SUM)
        for r in P(MESH):
            copy(A.on(r), Y.on(r)[:2])
            copy(Y.on(r)[:2], A.on(r))

    def arch(size: int) -> Arch:
        return builtin_arch("unit").with_memory("GM", capacity_bytes=size)

    workload(held)().compile(target="interp", arch=arch(256))      # a rank's 8 x 8 numbers; all ranks have four times as many
    with pytest.raises(IntermediatesError):
        workload(held)().compile(target="interp", arch=arch(255))


# -- what is refused ---------------------------------------------------------------------------------------------------
def parts(*layouts: TensorLayout) -> list[Tensor]:
    return [Tensor(np.zeros((8, 8), np.float32), name="ABCD"[k], layout=layout) for k, layout in enumerate(layouts)]


def wrong(body: Callable[[], object]) -> Callable[[], object]:
    """Return what traces and compiles a body."""
    return lambda: workload(body)().compile(target="interp")


def two_ranks() -> None:
    A, B = parts(ROWS, ROWS)
    for r in P(MESH):
        double[r](A.on(r), B.on((r + 1) % 4))


def whole_tensor() -> None:
    A, B = parts(ROWS, ROWS)
    for r in P(MESH):
        double[r](A[:2], B.on(r))


def says_nothing_of_ranks() -> None:
    (B,) = parts(ROWS)
    A = Tensor(np.zeros((2, 8), np.float32))
    for r in P(MESH):
        double[r](A, B.on(r))


def writes_what_is_replicated() -> None:
    A, B = parts(ROWS, WHOLE)
    for r in P(MESH):
        double[r](A.on(r), B.on(r)[:2])


def copies_to_what_is_replicated() -> None:
    A, B = parts(ROWS, WHOLE)
    for r in P(MESH):
        copy(A.on(r), B.on(r)[:2])


def before_the_mesh() -> None:
    A = Tensor(np.zeros((2, 8), np.float32))
    B, C = parts(ROWS, ROWS)
    grow(A)
    for r in P(MESH):
        double[r](B.on(r), C.on(r))


def other_mesh() -> None:
    for _ in P(MESH):
        pass
    for _ in P(Mesh(x=2)):
        pass


def no_mesh() -> None:
    A, _ = parts(ROWS, ROWS)
    A.on(0)


def no_layout() -> None:
    for r in P(MESH):
        Tensor(np.zeros(4, np.float32)).on(r)


def no_rank() -> None:
    A, _ = parts(ROWS, ROWS)
    for _ in P(MESH):
        A.on(4)


def unknown_axis() -> None:
    A = Tensor(np.zeros((8, 8), np.float32), layout=TensorLayout.sharded(0, 2, "z"))
    for r in P(MESH):
        A.on(r)


def other_shapes() -> None:
    A, B = parts(ROWS, ROWS)
    for r in P(MESH):
        copy(A.on(r)[:1], B.on(r))


def copy_of_a_whole() -> None:
    A, B = parts(ROWS, ROWS)
    for r in P(MESH):
        copy(A, B.on(r))


def in_a_loop_over_ranks() -> None:
    Y = Tensor.empty((8, 8), F32, layout=SUM)
    for _ in P(MESH):
        allreduce(Y)


def under_what_a_rank_holds() -> None:
    n = Tensor(np.ones(4, np.int32), name="n", layout=TensorLayout.sharded(0, 1, "x"))
    (A,) = parts(ROWS)
    for _ in P(MESH):
        pass
    with P.when(n.on(1)[0] > 0):
        allgather(A)


def in_a_loop_of_what_a_rank_holds() -> None:
    n = Tensor(np.ones(4, np.int32), name="n", layout=TensorLayout.sharded(0, 1, "x"))
    (A,) = parts(ROWS)
    for _ in P(MESH):
        pass
    for _ in P(n.on(0)[0]):
        allgather(A)


def without_a_mesh() -> None:
    allgather(parts(ROWS)[0])


def not_partial() -> None:
    allreduce(parts(ROWS)[0], mesh=MESH)


def not_cut() -> None:
    allgather(parts(WHOLE)[0], mesh=MESH)


def makes_partial() -> None:
    relayout(parts(WHOLE)[0], SUM, mesh=MESH)


def cut_twice() -> None:
    Y = Tensor.empty((8, 8), F32, layout=TensorLayout(TensorLayout.sharded(0, 2, "y").dist, partial=SUM.partial))
    reduce_scatter(Y, 0, "x", mesh=Mesh(x=2, y=2))


def no_such_algorithm() -> None:
    allgather(parts(ROWS)[0], algorithm="star", mesh=MESH)   # type: ignore[arg-type]


def out_of_another_layout() -> None:
    allgather(parts(ROWS)[0], out=parts(ROWS)[0], mesh=MESH)


def broadcast_of_an_array() -> None:
    broadcast(parts(WHOLE)[0], mesh=MESH)


def broadcast_from_nowhere() -> None:
    broadcast(Tensor.empty((2, 2), F32, layout=WHOLE), root=4, mesh=MESH)


def halo_of_nothing() -> None:
    halo(parts(WHOLE)[0], 1, mesh=MESH)


def halo_too_wide() -> None:
    halo(parts(ROWS)[0], 3, mesh=MESH)


def layout_in_a_body() -> None:
    for _ in P(MESH):
        Tensor.empty((2, 2), F32, layout=WHOLE)


def copies_used_whole() -> None:
    Y = Tensor.empty((2, 8), F32, layout=WHOLE)
    (B,) = parts(ROWS)
    for r in P(MESH):
        double[r](Y.on(r), B.on(r))
        P.when(Y[0, 0] > 0).__enter__()


@pytest.mark.parametrize("body, error", [
    (two_ranks, RankError), (whole_tensor, RankError), (says_nothing_of_ranks, RankError), (writes_what_is_replicated, RankError),
    (copies_to_what_is_replicated, RankError), (before_the_mesh, RankError), (copy_of_a_whole, RankError), (copies_used_whole, RankError),
    (other_mesh, MeshError), (no_mesh, MeshError), (no_rank, MeshError), (unknown_axis, MeshError), (no_layout, LayoutShapeError),
    (layout_in_a_body, LayoutShapeError), (cut_twice, LayoutError), (not_partial, LayoutError), (not_cut, LayoutError),
    (makes_partial, LayoutError), (broadcast_of_an_array, LayoutError), (halo_of_nothing, LayoutError), (other_shapes, CollectiveError),
    (in_a_loop_over_ranks, CollectiveError), (under_what_a_rank_holds, CollectiveError), (in_a_loop_of_what_a_rank_holds, CollectiveError),
    (without_a_mesh, CollectiveError), (no_such_algorithm, CollectiveError), (out_of_another_layout, CollectiveError),
    (broadcast_from_nowhere, CollectiveError), (halo_too_wide, CollectiveError)], ids=lambda value: value.__name__)
def test_wrong_programs_are_refused_at_the_line(body: Callable[[], None], error: type[PtoError]) -> None:
    with pytest.raises(error) as refused:
        wrong(body)()
    assert refused.value.span is not None and "test_ranks.py" in str(refused.value.span), refused.value


def test_directives_that_would_mix_ranks() -> None:
    w, _ = shift(1)
    for scheduled in (w.calendar(lambda t: (0, t.r)), w.dispatch(DispatchPolicy.round_robin(2)).task_graph(ready=ReadyPolicy.work_steal())):
        with pytest.raises(ScheduleConflictError):
            scheduled.compile(target="interp")


def test_a_rank_beyond_the_mesh_ends_the_run() -> None:
    A, B = parts(ROWS, ROWS)

    @workload
    def over() -> None:
        for r in P(MESH):
            copy(A.on(r), B.on(r + 1))

    with pytest.raises(PtoError, match=r"rank|outside"):
        over().compile(target="interp").run()


def test_the_mesh_of_compile_is_the_workloads() -> None:
    w, _ = shift(1)
    assert w.mesh == MESH
    with pytest.raises(MeshError):
        w.compile(mesh=Mesh(x=2))


@pytest.mark.parametrize("target", ["ascend_npu", "pto"])
def test_packages_are_for_one_chip(target: str) -> None:
    w, _ = shift(1)
    with pytest.raises(MeshError, match="does not take a mesh"):
        w.compile(target=target)


def test_a_workload_over_ranks_goes_through_json_and_text() -> None:
    w, out = shift(1)
    again = Workload.from_json(w.to_json())
    assert again.node == w.node and again.mesh == MESH
    again.compile(target="interp").run(A=given(), B=out)
    assert np.array_equal(out, np.roll(given(), 2, axis=0))
    assert "# rank r to rank (r + 1) % 4" in str(w)

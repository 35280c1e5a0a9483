"""Shards cover a tensor once, and what is read of a rank is written there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    DType,
    In,
    Mesh,
    Out,
    P,
    PtoError,
    Symbol,
    Tensor,
    TensorLayout,
    Tile,
    allgather,
    allreduce,
    broadcast,
    builtin_arch,
    kernel,
    pto,
    workload,
)
from pto_wsp.ir.tensor_layout import shard_bounds, shard_size

F32 = DType.F32


@kernel
def double(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]):
    pto.store(y, x * 2)


@pytest.mark.parametrize("p", range(1, 10))
def test_shards_cover_a_dimension_once(p: int) -> None:
    for n in range(1, 40):
        rows = [tuple(map(int, shard_bounds(n, p, at))) for at in range(p)]
        assert [row for start, stop in rows for row in range(start, stop)] == list(range(n))
        assert [stop - start for start, stop in rows] == [shard_size(n, p, at) for at in range(p)]


def program(mesh: Mesh, condition: Any, collective: Any = allreduce, partial: bool = True) -> Any:
    X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.replicated(2))
    Z = Tensor(np.zeros((4, 8), np.float32), name="Z", layout=TensorLayout.replicated(2))

    @workload
    def made():
        layout = TensorLayout.partial_of(2, "x") if partial else TensorLayout.replicated(2)
        Y = Tensor.empty((4, 8), F32, name="Y", layout=layout)
        for r in P(mesh):
            with P.when(condition(r)):
                double[r](X.on(r), Y.on(r))
        collective(Y, out=Z) if partial else collective(Y)

    return made()


@pytest.mark.parametrize("condition", [lambda r: r < 3, lambda r: r != 0, lambda r: r % 2 == 0])
def test_a_term_that_a_rank_does_not_write_is_refused(condition: Any) -> None:
    with pytest.raises(PtoError) as caught:
        program(Mesh(x=4), condition).compile("interp")
    assert caught.value.code == "W102" and "`Y` is read of rank" in str(caught.value)
    assert "test_parts.py" in str(caught.value)


def test_terms_that_all_ranks_write_are_proved() -> None:
    compiled = program(Mesh(x=4), lambda r: r >= 0).compile("interp")
    assert any("parts of `Y_ranks` on each rank" in line for line in compiled.checks)


def test_what_a_run_decides_is_left_to_it() -> None:
    n = Symbol("n", DType.I64)
    made = program(Mesh(x=4), lambda r: r < n).compile("interp").run(n=4)
    assert made is not None


def test_a_broadcast_writes_the_other_copies() -> None:
    program(Mesh(x=4), lambda r: r == 1, lambda Y: broadcast(Y, 1), partial=False).compile("interp").run()
    with pytest.raises(PtoError) as caught:
        program(Mesh(x=4), lambda r: r == 1, lambda Y: broadcast(Y, 2), partial=False).compile("interp")
    assert caught.value.code == "W102"


def test_ranks_without_rows_write_nothing_and_nothing_is_read_of_them() -> None:
    given = Tensor(np.arange(16, dtype=np.float32).reshape(2, 8), layout=TensorLayout.sharded(0, 2, "x"))

    @workload
    def gathered():
        for _ in P(Mesh(x=4)):
            pass
        shown = allgather(given)
        allgather(given, out=Tensor(np.zeros((2, 8), np.float32), layout=TensorLayout.replicated(2)))
        assert shown.layout == TensorLayout.replicated(2)

    gathered().compile("interp").run()


def test_results_between_tasks_fit_the_memory_of_each_rank() -> None:
    """Each of 4 ranks has a term of 128 bytes, and the ring's room for its chunks: far above what one rank has is refused."""
    unit = builtin_arch("unit")
    memory = next(one for one in builtin_arch("ascend_910b").memories if one.name == "GM")

    def small(size_bytes: int) -> Any:
        return unit.model_copy(update={"memories": (memory.model_copy(update={"capacity_bytes": size_bytes, "reserved_bytes": 0}),)})

    made = program(Mesh(x=4), lambda r: r >= 0)
    compiled = made.compile("interp", arch=small(1 << 10))
    assert any("shared by 4 ranks" in line for line in compiled.checks)
    with pytest.raises(PtoError, match="results between tasks take"):
        made.compile("interp", arch=small(64))

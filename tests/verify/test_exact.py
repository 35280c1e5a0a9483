"""Deps.infer_tensor_map_exact(): pieces of one grid are proved, and what may overlap in part is refused with both places."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import Deps, DType, In, InOut, Out, P, Tensor, Workload, kernel, pto, workload
from pto_wsp.errors import UnprovedOrderError

F32 = DType.F32
X, Y = Tensor(np.ones((64, 8), np.float32), name="X"), Tensor(np.zeros((64, 8), np.float32), name="Y")


@kernel
def write(y: Out[Tensor]) -> None:
    pto.store(y, pto.full((1, 1), 1, F32), (0, 0))


@kernel
def change(y: InOut[Tensor]) -> None:
    pto.store(y, pto.load(y, (0, 0), shape=(1, 1)) + 1, (0, 0))


@kernel
def add(x: In[Tensor], y: Out[Tensor]) -> None:
    pto.store(y, pto.load(x, (0, 0), shape=(1, 1)), (0, 0))


@workload
def blocks() -> None:
    for i in P(4):
        write[i](Y[i * 16:(i + 1) * 16])
    for j in P(4):
        change[j](Y[j * 16:(j + 1) * 16])
    change(Y[16:32])


@workload
def short_tails() -> None:
    for i in P(4):
        write[i](Y[i * 16:60].clip(16, 8))
    for j in P(4):
        change[j](Y[j * 16:60].clip(16, 8))


@workload
def halves() -> None:
    write(Y[0:10])
    write(Y[10:64])
    change(Y[0:10])


@workload
def shifted() -> None:
    write(Y[0:16])
    change(Y[8:24])


@workload
def overlapping() -> None:
    for i in P.seq(4):
        write[i](Y[i * 8:i * 8 + 16])


@workload
def other_tails() -> None:
    for i in P(4):
        write[i](Y[i * 16:60].clip(16, 8))
    for j in P(4):
        change[j](Y[j * 16:62].clip(16, 8))


@workload
def read_anyhow() -> None:
    for i in P(4):
        add[i](X[i * 3:i * 3 + 5], Y[i * 16:(i + 1) * 16])


@workload
def offset() -> None:
    write(Y[4:20])
    for i in P(3):
        change[i](Y[i * 16 + 4:i * 16 + 20])
    for i in P(3):
        change[i](Y[i * 16:i * 16 + 16])


@workload
def two_sizes() -> None:
    for i in P(4):
        write[i](Y[i * 16:(i + 1) * 16])
    for j in P(2):
        change[j](Y[j * 32:(j + 1) * 32])


def edges(w: Workload) -> int:
    """Return the number of edges of a run."""
    return len(w.compile(target="interp").run().graph.edges)


@pytest.mark.parametrize("make, count", [(blocks, 5), (short_tails, 4), (halves, 1), (read_anyhow, 0)], ids=str)
def test_pieces_of_one_grid_have_the_edges_of_overlap(make: type, count: int) -> None:
    exact = make().task_graph(deps=Deps.infer_tensor_map_exact())
    assert edges(exact) == edges(make().task_graph(deps=Deps.infer_bytes_overlap())) == count
    assert any(line.startswith("proved: exact regions of `Y`") for line in exact.compile(target="interp").checks)


@pytest.mark.parametrize("make, found", [
    (shifted, "Y[:16] and Y[8:24] overlap in part"), (overlapping, "Y[i * 8:i * 8 + 16] of two tasks are not proved to be equal or apart"),
    (other_tails, "are not proved"), (two_sizes, "are not proved"), (offset, "are not proved"),
], ids=["shifted", "overlapping", "other tails", "two sizes", "offset"])
def test_what_may_overlap_in_part_is_refused_with_both_places(make: type, found: str) -> None:
    with pytest.raises(UnprovedOrderError) as caught:
        make().task_graph(deps=Deps.infer_tensor_map_exact()).compile(target="interp")
    assert found in str(caught.value) and "test_exact.py" in str(caught.value)
    make().task_graph(deps=Deps.infer_bytes_overlap()).compile(target="interp")

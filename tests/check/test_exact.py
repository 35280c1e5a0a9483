"""Deps.infer_tensor_map_exact(): pieces of one grid are proved, and what may overlap in part is refused with both places."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import Deps, DType, In, Injective, InOut, Out, P, Symbol, Tensor, Tile, Workload, kernel, pto, workload
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


SIZE = Symbol("size")
PAGES = Injective(Tensor(np.array([3, 0, 2], np.int32), name="PAGES"))
ANY = Tensor(np.array([3, 0, 3], np.int32), name="ANY")
LENS = Tensor(np.array([2, 3, 1], np.int32), name="LENS")


@workload
def sizes_of_a_symbol() -> None:
    for i in P.seq(4):
        write[i](Y[i * SIZE:(i + 1) * SIZE])
    for i in P.seq(range(1, 3)):
        change[i](Y[SIZE * i:][:SIZE])


@workload
def pages() -> None:
    for i in P.seq(3):
        write[i](Y[PAGES[i] * 16:(PAGES[i] + 1) * 16])      # as long as they are: where they lie does not matter
        change[i](Y[ANY[i] * 16:(ANY[i] + 1) * 16])


@workload
def columns() -> None:
    for i in P.seq(4):
        write[i](Y[i:64:4])
    for j in P.seq(2):
        change[j](Y[j + 1:64:4])
        change[j](Y[1:64:4])


@workload
def layers() -> None:
    for layer in range(40):
        for i in P.seq(4):
            change[i](Y[i * 16:(i + 1) * 16])
            with P.when(i > layer % 3):
                add[i](X[i * 16:], Y[i * 16:(i + 1) * 16])


@workload
def other_rows_of_other_tensors() -> None:
    for i in P.seq(3):
        tmp = Tensor.empty((4, 8), F32, name="tmp")
        write[i](tmp[0:LENS[i]])                # one length a turn, and one tensor a turn
        change[i](tmp[0:LENS[i]])


@workload
def rows_of_one_tensor() -> None:
    for i in P.seq(3):
        write[i](Y[0:LENS[i]])


@workload
def pages_of_two_sizes() -> None:
    for i in P.seq(3):
        write[i](Y[PAGES[i] * 8:(PAGES[i] + 1) * 8 + i])


@workload
def sometimes_shifted() -> None:
    for i in P.seq(3):
        write[i](Y[i * 16:i * 16 + 16])
        with P.when(i == 2):
            change[i](Y[i * 16 + 4:i * 16 + 20])


N = Tensor(np.array([[2], [2]], np.int64), name="N")


@kernel
def twos(n: Out[Tile[2, 1, DType.I64]]) -> None:
    pto.store(n, pto.full((2, 1), 2, DType.I64))


@workload
def row_and_rows() -> None:
    write(Y[3:5])
    change(Y[3])


@workload
def other_steps() -> None:
    write(Y[0:8:2])
    change(Y[0:4])


@workload
def inside_of_a_turn() -> None:
    for i in P.seq(3):
        tmp = Tensor.empty((16, 8), F32, name="tmp")
        for j in P.seq(2):
            change[i, j](tmp[j * 4:j * 4 + 8])


@workload
def only_the_first() -> None:
    for i in P.seq(4):
        with P.when(i < 1):
            write[i](Y[i * 8:i * 8 + 16])
    for i in P.seq(1):
        write[i](Y[i * 8:i * 8 + 16])
    for i in P.seq(4):
        change[i](Y[i * 8:i * 8 + 16])


@workload
def under_other_conditions() -> None:
    for i in P.seq(4):
        with P.when(i < 1):
            write[i](Y[i * 8:i * 8 + 16])
    for i in P.seq(4):
        with P.when(i < 2):
            change[i](Y[i * 8:i * 8 + 16])


@workload
def as_often_as_is_computed() -> None:
    for i in P.seq(N[0, 0]):
        add[i](X[i * 16 + 1:16], Y[i * 8:i * 8 + 16])       # once at most: else that of X would end before it starts
    twos(N)
    for i in P.seq(N[0, 0]):
        write[i](Y[i * 8:i * 8 + 16])


@workload
def read_by_the_workload() -> None:
    twos(N)
    for i in P.seq(N[0, 0]):
        write[i](Y[i * 16:(i + 1) * 16])


def edges(w: Workload) -> int:
    """Return the number of edges of a run."""
    return len(w.compile(target="interp").run(**({"size": 16} if "sizes" in w.name else {})).graph.edges)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make, count", [
    (blocks, 5), (short_tails, 4), (halves, 1), (read_anyhow, 0), (sizes_of_a_symbol, 2), (pages, 3), (columns, 4), (layers, 237),
    (other_rows_of_other_tensors, 3), (read_by_the_workload, 2),
], ids=lambda value: getattr(value, "name", str(value)))
def test_pieces_of_one_grid_have_the_edges_of_overlap(make: type, count: int) -> None:
    exact = make().task_graph(deps=Deps.infer_tensor_map_exact())
    assert edges(exact) == edges(make().task_graph(deps=Deps.infer_bytes_overlap())) == count
    assert any(line.startswith("proved: exact regions of `") for line in exact.compile(target="interp").checks)


def refused(make: type) -> UnprovedOrderError:
    """Return what exact regions of a workload are refused with; overlap takes it."""
    with pytest.raises(UnprovedOrderError) as caught:
        make().task_graph(deps=Deps.infer_tensor_map_exact()).compile(target="interp")
    make().task_graph(deps=Deps.infer_bytes_overlap()).compile(target="interp")
    return caught.value


@pytest.mark.parametrize("make, found", [
    (shifted, "Y[:16] and Y[8:24] overlap in part: they share Y[8:16, 0:8]"),
    (overlapping, "Y[i * 8:i * 8 + 16] where i = 0 and Y[i * 8:i * 8 + 16] where i = 1 overlap in part: they share Y[8:16, 0:8]"),
    (other_tails, "Y[i * 16:60].clip(16, 8) where i = 3 and "
                  "Y[j * 16:62].clip(16, 8) where j = 3 overlap in part: they share Y[48:60, 0:8]"),
    (two_sizes, "Y[i * 16:(i + 1) * 16] where i = 0 and Y[j * 32:(j + 1) * 32] where j = 0 overlap in part: they share Y[0:16, 0:8]"),
    (row_and_rows, "Y[3:5] and Y[3] overlap in part: they share Y[3, 0:8]"),
    (other_steps, "Y[:8:2] and Y[:4] overlap in part: they share Y[0:3:2, 0:8]"),
    (inside_of_a_turn, "tmp[j * 4:j * 4 + 8] where i = 0, j = 0 and tmp[j * 4:j * 4 + 8] where i = 0, j = 1 overlap in part: "
                       "they share tmp[4:8, 0:8]"),
    (under_other_conditions, "Y[i * 8:i * 8 + 16] where i = 0 and Y[i * 8:i * 8 + 16] where i = 1 overlap in part: "
                             "they share Y[8:16, 0:8]"),
    (only_the_first, "Y[i * 8:i * 8 + 16] where i = 0 and Y[i * 8:i * 8 + 16] where i = 1 overlap in part: they share Y[8:16, 0:8]"),
    (sometimes_shifted, "Y[i * 16:i * 16 + 16] where i = 2 and "
                        "Y[i * 16 + 4:i * 16 + 20] where i = 2 overlap in part: they share Y[36:48, 0:8]"),
], ids=lambda value: getattr(value, "name", ""))
def test_what_overlaps_in_part_is_refused_with_two_iterations(make: type, found: str) -> None:
    error = refused(make)
    assert error.found == found
    assert error.span is not None and "test_exact.py" in str(error.span)


def test_each_pair_of_places_is_named() -> None:
    error = refused(offset)
    assert "offset" not in str(error.found) and len((error, *error.others)) == 2
    assert all("overlap in part" in str(one.found) and one.also for one in (error, *error.others))


@pytest.mark.parametrize("make, found", [
    (rows_of_one_tensor, "Y[:LENS[i]] of two tasks, which are not proved to be: it depends on what is in `LENS`"),
    (as_often_as_is_computed, "Y[i * 8:i * 8 + 16] and Y[i * 8:i * 8 + 16], which are not proved to be: it depends on `N[0, 0]`"),
    (pages_of_two_sizes, "Y[PAGES[i] * 8:PAGES[i] * 8 + i + 8] of two tasks, which are not proved to be: it depends on what is in `PAGES`"),
], ids=lambda value: getattr(value, "name", ""))
def test_what_data_decides_is_left_open(make: type, found: str) -> None:
    assert refused(make).found == found

"""Layouts: what they become in operations, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, Mesh, Partial, Replicate, Shard, Tensor, TensorLayout
from pto_wsp.errors import LayoutError, LayoutShapeError, MeshError
from pto_wsp.ir.tensor_layout import shard_size

R, X, Y = Replicate(), Shard("x"), Shard("y")
ROWS, COLS, WHOLE = (TensorLayout(dist) for dist in ((X, R), (R, X), (R, R)))
SUM = TensorLayout((R, R), partial=(Partial("x"),))


def test_joins() -> None:
    assert WHOLE.join(WHOLE) == WHOLE and ROWS.join(WHOLE) == WHOLE.join(ROWS) == ROWS.join(ROWS) == ROWS
    assert ROWS.join(TensorLayout((R, Y))) == TensorLayout((X, Y))
    assert TensorLayout((X,)).join(WHOLE) == COLS        # the dimensions of fewer are the last ones


@pytest.mark.parametrize("other", [TensorLayout((Y, R)), COLS, SUM])
def test_joins_that_do_not_fit(other: TensorLayout) -> None:
    with pytest.raises(LayoutError) as refused:
        ROWS.join(other)
    assert refused.value.code == "M101" and refused.value.help and refused.value.also


def test_a_join_names_the_relayout_that_mends_it() -> None:
    with pytest.raises(LayoutError) as refused:
        ROWS.join(TensorLayout((Y, R)))
    assert refused.value.help == f"relayout the second operand to {ROWS!r}"
    assert [text for text, _ in refused.value.also] == ["the first was made here", "the second was made here"]


def test_products() -> None:
    assert ROWS.matmul(WHOLE) == ROWS and WHOLE.matmul(COLS) == COLS
    assert COLS.matmul(ROWS) == SUM
    assert TensorLayout((Y, X)).matmul(ROWS) == TensorLayout((Y, R), partial=(Partial("x"),))
    assert SUM.matmul(WHOLE) == SUM
    for one, two in ((COLS, WHOLE), (WHOLE, ROWS), (ROWS, COLS), (SUM, COLS), (SUM, SUM)):
        with pytest.raises(LayoutError):
            one.matmul(two)


def test_reductions() -> None:
    assert ROWS.reduced(0) == TensorLayout((R,), partial=(Partial("x"),))
    assert ROWS.reduced(0, "max", keeps=True) == TensorLayout((R, R), partial=(Partial("x", "max"),))
    assert ROWS.reduced(1) == TensorLayout((X,)) and SUM.reduced(0) == TensorLayout((R,), partial=(Partial("x"),))
    for dim, op in ((0, "prod"), (2, "sum")):
        with pytest.raises(LayoutError):
            ROWS.reduced(dim, op)   # type: ignore[arg-type]
    with pytest.raises(LayoutError):
        SUM.reduced(0, "max")
    with pytest.raises(LayoutError):
        ROWS.along(0, "softmax")
    assert ROWS.along(1, "softmax") == ROWS


def test_partial_sums_pass_sums_and_replicated_factors() -> None:
    assert SUM.add(SUM) == SUM and SUM.scale(WHOLE) == WHOLE.scale(SUM) == SUM
    largest = TensorLayout((R, R), partial=(Partial("x", "max"),))
    for wrong in (lambda: SUM.add(WHOLE), lambda: SUM.scale(SUM), lambda: SUM.scale(ROWS), lambda: SUM.other("a cast"),
                  lambda: largest.add(largest), lambda: largest.scale(WHOLE), lambda: SUM.join(WHOLE)):
        with pytest.raises(LayoutError):
            wrong()


def test_views() -> None:
    mesh = Mesh(x=4)
    assert ROWS.indexed(1) == TensorLayout((X,)) and ROWS.permuted((1, 0)) == COLS
    assert ROWS.sliced(1, 2, 3, 8, mesh) == ROWS and ROWS.sliced(0, 0, 8, 8, mesh) == ROWS and ROWS.sliced(0, 0, 7, 8, mesh) == ROWS
    for wrong in (lambda: ROWS.indexed(0), lambda: ROWS.sliced(0, 0, 4, 8, mesh), lambda: ROWS.sliced(0, 1, 8, 8, mesh),
                  lambda: ROWS.permuted((0, 0))):
        with pytest.raises(LayoutError):
            wrong()


def test_an_axis_is_used_once() -> None:
    for wrong in (lambda: TensorLayout((X, X)), lambda: TensorLayout((X,), partial=(Partial("x"),)),
                  lambda: TensorLayout((Shard(0), Y)).named_on(Mesh(y=2))):
        with pytest.raises(LayoutShapeError):
            wrong()


@pytest.mark.parametrize("wrong", [
    lambda: TensorLayout("RS"), lambda: TensorLayout((1,)), lambda: TensorLayout.sharded(2, 2), lambda: TensorLayout.sharded(0, 2, 1.5),
    lambda: TensorLayout.replicated(-1), lambda: TensorLayout((R,), partial=("x",)), lambda: TensorLayout.partial_of(1, "x", "mean"),
    lambda: Tensor(np.zeros((2, 2)), layout=TensorLayout.replicated(1)), lambda: Tensor(np.zeros(2), layout="S"),
    lambda: Tensor(np.zeros((2, 2)), layout=SUM)])
def test_layouts_that_are_none(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(LayoutShapeError):
        wrong()


@pytest.mark.parametrize("wrong", [lambda: Mesh(), lambda: Mesh(x=0), lambda: Mesh(x=1.5), lambda: Mesh(x=True), lambda: Mesh(x=1 << 13),
                                   lambda: Mesh(x=2).axis("y"), lambda: Mesh(x=2).axis(1), lambda: Mesh(x=2).coordinates(2)])
def test_meshes_that_are_none(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(MeshError):
        wrong()


@pytest.mark.parametrize("n", range(1, 20))
@pytest.mark.parametrize("p", range(1, 8))
def test_shards_cover_a_dimension_once(n: int, p: int) -> None:
    rows = -(-n // p)
    covered = [row for c in range(p) for row in range(c * rows, c * rows + shard_size(n, p, c))]
    assert covered == list(range(n))


def test_ranks_count_row_major() -> None:
    mesh = Mesh(x=2, y=3)
    assert [mesh.coordinates(rank) for rank in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert [mesh.rank(mesh.coordinates(rank)).value for rank in range(6)] == list(range(6))   # type: ignore[union-attr]
    assert TensorLayout((Shard(1), R)).named_on(mesh) == TensorLayout((Y, R))


def test_an_intermediate_with_a_layout_has_parts_only() -> None:
    held = Tensor.empty((4, 4), DType.F32, layout=ROWS)
    assert held.layout == ROWS
    with pytest.raises(MeshError):
        held.on(0)

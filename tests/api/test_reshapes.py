"""A reshape leaves the dimensions that its shape repeats as they are: a run may bind other extents and strides of these."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import DenseDyn, DType, In, Out, P, PtoError, Symbol, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.ir import scalar as s
from pto_wsp.ir.view import place_of
from tests.npu.dynamic.cases import move, run_package, whole_numbers

F32 = DType.F32
TARGETS = ["interp", "cpu_sim"]


@kernel
def heads(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2)


def by_heads(rows: Any, x: Any, y: Any) -> Workload:
    @workload
    def program() -> None:
        for r in P(rows):
            heads[r](x[r], y[r])
    return program()


def strided(rows: int) -> np.ndarray[Any, Any]:
    """Return rows with gaps between them, the gaps poisoned."""
    whole = np.full((rows, 40), np.nan, np.float32)
    whole[:, :32] = np.arange(rows * 32, dtype=np.float32).reshape(rows, 32)
    return whole[:, :32]


N = Symbol("n")
SHAPES: dict[str, Callable[[Tensor, Any], Any]] = {
    "numbers": lambda x, n: x.reshape(6, 4, 8),
    "a list": lambda x, n: x.reshape([6, 4, 8]),
    "the rest": lambda x, n: x.reshape(6, 4, -1),
    "inner rest": lambda x, n: x.reshape(-1, 4, 8),
    "cut to a symbol": lambda x, n: x[:n].reshape(n, 4, 8),
    "cut, rest": lambda x, n: x[:n].reshape(-1, 4, 8),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_follow_what_a_run_binds(shape: str, target: str) -> None:
    x, y = Tensor(strided(6).copy(), name="x"), Tensor(np.zeros((6, 32), np.float32), name="y")
    program = by_heads(N, SHAPES[shape](x, N), SHAPES[shape](y, N)).compile(target=target)
    for rows, n in ((6, 6), (9, 9), (9, 4), (2, 1), (3, 0)):
        given_x, room = strided(rows), np.full((rows, 48), np.nan, np.float32)
        program.run(n=n, x=given_x, y=room[:, 8:40])
        np.testing.assert_array_equal(room[:n, 8:40], 2 * given_x[:n])
        assert np.isnan(room[n:]).all() and np.isnan(room[:, :8]).all() and np.isnan(room[:, 40:]).all()
    with pytest.raises(PtoError, match="not contiguous as it is bound") as caught:
        program.run(n=2, x=np.zeros((2, 16), np.float32), y=np.zeros((2, 16), np.float32))
    assert caught.value.code == "R104"


@pytest.mark.parametrize("target", TARGETS)
def test_a_tensor_of_symbols_is_reshaped_with_them(target: str) -> None:
    rows = DenseDyn(6)
    x, y = Tensor(shape=(rows, 32), dtype=F32, name="x"), Tensor(shape=(rows, 32), dtype=F32, name="y")
    program = by_heads(rows, x.reshape(rows, 4, 8), y.reshape(-1, 4, 8)).compile(target=target)
    for n in (6, 0, 1, 3):
        room = np.full((7, 32), np.nan, np.float32)
        program.run(rows=n, x=strided(7), y=room)
        np.testing.assert_array_equal(room[:n], 2 * strided(7)[:n])
        assert np.isnan(room[n:]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_extents_of_1_stand_in_front_of_a_symbol(target: str) -> None:
    rows = DenseDyn(6)
    x, y = Tensor(shape=(1, rows, 32), dtype=F32, name="x"), Tensor(shape=(rows, 1, 32), dtype=F32, name="y")
    program = by_heads(rows, x.reshape(rows, 4, 8), y.reshape(1, rows, 4, 8)[0]).compile(target=target)
    for n in (6, 0, 3):
        made = np.full((n, 1, 32), np.nan, np.float32)
        program.run(rows=n, x=strided(n)[None], y=made)
        np.testing.assert_array_equal(made[:, 0], 2 * strided(n))


@pytest.mark.parametrize("target", TARGETS)
def test_middle_dimensions_merge_between_others(target: str) -> None:
    """[2, 3, 4, 8] as [2, 12, 8]: outer and inner dimensions may be strided, those between may not."""
    x, y = Tensor(np.zeros((2, 3, 4, 8), np.float32), name="x"), Tensor(np.zeros((2, 12, 8), np.float32), name="y")
    outer = Symbol("outer")

    @workload
    def program() -> None:
        for b in P(outer):
            for i in P(3):
                heads[b, i](x.reshape(2, 12, 8)[b, i * 4:i * 4 + 4], y[b, i * 4:i * 4 + 4])
    compiled = program().compile(target=target)
    assert [line for line in map(str, compiled.checks) if line.startswith("proved: races on `y`")]
    whole = np.arange(5 * 3 * 4 * 16, dtype=np.float32).reshape(5, 3, 4, 16)
    for given_x in (whole[::2, :, :, :8], whole[:, :, :, 8:], whole[1:2, :, :, :8]):
        made = np.zeros((len(given_x), 12, 8), np.float32)
        compiled.run(outer=len(given_x), x=given_x, y=made)
        np.testing.assert_array_equal(made, 2 * given_x.reshape(len(given_x), 12, 8))
    with pytest.raises(PtoError, match="not contiguous as it is bound"):
        compiled.run(outer=1, x=np.zeros((1, 3, 6, 8), np.float32)[:, :, :4], y=np.zeros((1, 12, 8), np.float32))


@settings(max_examples=75, deadline=None)
@given(st.data())
def test_reshapes_are_numpys(data: st.DataObject) -> None:
    """Draw shapes of equal size: extents, strides and bounds are NumPy's, for the array declared and for another one."""
    def drawn(count: int) -> list[int]:
        shape = []
        while count > 1 and len(shape) < 6 and data.draw(st.booleans()):
            shape.append(data.draw(st.sampled_from([k for k in range(1, count + 1) if count % k == 0])))
            count //= shape[-1]
        return [*shape, count]
    count = data.draw(st.sampled_from([1, 2, 6, 8, 12, 24]))
    old, new = drawn(count), drawn(count)
    if data.draw(st.booleans()):
        extra = data.draw(st.integers(0, 4))
        old, new = [extra, *old], [extra, *new]
    declared = Tensor(np.zeros(old, np.float32))
    asked = list(new)
    if 0 not in new and data.draw(st.booleans()):
        asked[data.draw(st.integers(0, len(new) - 1))] = -1
    view = declared.reshape(*asked)
    assert view.shape == tuple(new)
    base = np.arange(math.prod(old)).reshape(old)
    places = view.dims
    offsets = sum((np.arange(extent).reshape([-1 if k == dim else 1 for k in range(len(new))]) * _number(place.stride, base)
                   for dim, (extent, place) in enumerate(zip(new, places, strict=True))), np.zeros(new, np.int64))
    np.testing.assert_array_equal(offsets, base.reshape(new))
    assert place_of(view.view).offset == s.Const(0)


def _number(node: s.Scalar, array: np.ndarray[Any, Any]) -> int:
    def leaf(at: s.Scalar) -> int:
        assert isinstance(at, s.StrideOf)
        return array.strides[at.dim] // array.itemsize
    return int(s.evaluate(node, leaf))


@pytest.mark.parametrize("shape", [(7, 4, 8), (Symbol("m"), 4, 8), (N, 5, 8), (-1, -1, 8), (N, N, 4, 8), (N + 1, 4, 8), ("n", 32),
                                   (N, -2, 4, -4), (1.5, 32)], ids=str)
def test_other_shapes_are_refused(shape: tuple[Any, ...]) -> None:
    with pytest.raises(PtoError) as caught:
        Tensor(np.zeros((6, 32), np.float32))[:N].reshape(*shape)
    assert caught.value.code == "T302"


def test_a_reshape_shows_and_survives() -> None:
    x, y = Tensor(np.zeros((6, 32), np.float32), name="x"), Tensor(np.zeros((6, 32), np.float32), name="y")
    made = by_heads(N, x[:N].reshape(N, 4, 8), y.reshape(6, 4, 8))
    assert "x[:n].reshape(n, 4, 8)[r]" in str(made) and "y.reshape(6, 4, 8)[r]" in str(made)
    assert Workload.from_json(made.to_json()).to_json() == made.to_json()


@pytest.mark.slow
def test_packages_keep_the_extents_that_they_state() -> None:
    """The device reshapes whole tensors, so a package compares the extents with those declared; of a symbol it is refused."""
    def moved(reshaped: Callable[[Tensor], Any], rows: Any) -> Workload:
        x, y = Tensor(whole_numbers(3, 128), name="X"), Tensor(whole_numbers(3, 128) - 50, name="Y")

        @workload
        def program() -> None:
            for r in P(rows):
                move[r](reshaped(x)[r], reshaped(y)[r])
        return program()
    run_package(moved(lambda x: x.reshape(3, 8, 16), 3))
    run_package(moved(lambda x: x.reshape(3, 8, 16), N), n=2)
    with pytest.raises(PtoError, match="reshapes a view whose size only a run knows") as caught:
        moved(lambda x: x[:N].reshape(N, 8, 16), N).compile(target="ascend_npu")
    assert caught.value.code == "N101"


def test_rows_that_no_size_of_the_run_reaches_are_told() -> None:
    x, y = Tensor(strided(6).copy(), name="x"), Tensor(np.zeros((6, 32), np.float32), name="y")
    program = by_heads(6, x.reshape(6, 4, 8), y.reshape(6, 4, 8)).compile(target="interp")
    with pytest.warns(UserWarning, match=r"tasks reach 6 of 9 positions of `x` in dimension 0"):
        program.run(x=strided(9))
    np.testing.assert_array_equal(y.data, 2 * strided(6))

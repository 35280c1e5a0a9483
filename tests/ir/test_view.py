"""Views: offset, extents and strides are those of NumPy's view of the same indexing; what lies outside is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto_wsp.errors import ArgumentKindError, PtoError, ViewBoundsError, ViewIndexError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Element, Scalar, Var, evaluate, print_scalar
from pto_wsp.ir.symbolic import Symbol, Symbolic
from pto_wsp.ir.tensor import Tensor, TensorView
from pto_wsp.ir.view import bounds_of, declared, place_of, print_view
from pto_wsp.source import Span

Array: TypeAlias = "np.ndarray[Any, Any]"
I, J = (Symbolic(Var(name, k)) for k, name in enumerate("ij"))  # noqa: E741


def numbers(node: Scalar, **values: int) -> int:
    """Evaluate an expression with the declared dimensions and values for the loop variables."""
    def leaf(inner: Scalar) -> int:
        assert isinstance(inner, Var), inner
        return values[inner.name]
    return int(evaluate(declared(node), leaf))


def assert_same_place(view: TensorView, expected: Array, base: Array, **values: int) -> None:
    """Hold a view of `base` against NumPy's: first element, shape, and the strides of dimensions that have a second one."""
    place = place_of(view.view)
    shape = tuple(numbers(dim.extent, **values) for dim in place.dims)
    assert shape == expected.shape
    if expected.size:
        start = expected.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        assert numbers(place.offset, **values) * base.itemsize == start
    for dim, extent, stride in zip(place.dims, expected.shape, expected.strides, strict=True):
        if extent > 1 and expected.size:
            assert numbers(dim.stride, **values) * base.itemsize == stride


@st.composite
def bases(draw: st.DrawFn) -> Array:
    """An array of one to four dimensions, sometimes with steps or transposed."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    array = np.zeros(tuple(2 * n for n in shape), np.float32)[tuple(slice(0, 2 * n, 2) for n in shape)] if draw(st.booleans()) \
        else np.zeros(shape, np.float32)
    return array.T if draw(st.booleans()) else array


@st.composite
def items(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[object, ...]:
    """An index that NumPy reads without clipping, and that leaves at least one dimension."""
    wanted = draw(st.integers(0, len(shape)))
    found: list[object] = []
    front = draw(st.integers(0, wanted))
    used_dims = [*range(front), *range(len(shape) - (wanted - front), len(shape))]
    for dim in used_dims:
        n = shape[dim]
        if draw(st.booleans()) and n:
            found.append(draw(st.integers(-n, n - 1)))
            continue
        start = draw(st.integers(0, n))
        stop = draw(st.integers(start, n))
        low = None if start == 0 and draw(st.booleans()) else start - n if start < n and draw(st.booleans()) else start
        high = None if stop == n and draw(st.booleans()) else stop - n if stop < n and draw(st.booleans()) else stop
        found.append(slice(low, high, draw(st.sampled_from([None, 1, 2, 3]))))
    if wanted < len(shape) or draw(st.booleans()):
        found.insert(front, ...)
    if all(isinstance(entry, int) for entry in found) and len(found) == len(shape):
        found[0] = slice(None)
    return tuple(found)


@given(st.data())
def test_indexing_is_numpys(data: st.DataObject) -> None:
    base = data.draw(bases())
    view: Any = Tensor(base)
    expected = base
    for _ in range(data.draw(st.integers(1, 3))):
        if expected.ndim == 0:
            break
        if data.draw(st.booleans()):
            view, expected = view.T, expected.T
        index = data.draw(items(expected.shape))
        after = expected[index]
        if after.ndim == 0:
            break
        view, expected = view[index], after
    assert_same_place(view, expected, base)


@given(st.integers(0, 3), st.integers(0, 5), st.integers(1, 4))
def test_symbolic_indices_are_numpys_in_every_iteration(i: int, j: int, width: int) -> None:
    base = np.zeros((4, 24, 7), np.int16)
    view = Tensor(base)[I, J * width:(J + 1) * width, 1:]
    assert_same_place(view, base[i, j * width:(j + 1) * width, 1:], base, i=i, j=j)


def test_a_slice_from_a_variable_to_itself_plus_n_has_a_known_extent() -> None:
    assert Tensor(np.zeros((64, 8)))[I * 16:(I + 1) * 16].shape == (16, 8)


def test_a_second_slice_counts_from_the_first() -> None:
    base = np.zeros((20, 3))
    assert_same_place(Tensor(base)[4:16:2][1:5:3], base[4:16:2][1:5:3], base)


def test_slice_method_cuts_the_first_dimension() -> None:
    base = np.zeros((20, 3))
    assert_same_place(Tensor(base).slice(4, 9), base[4:9], base)


def test_ellipsis_stands_for_the_dimensions_left_out() -> None:
    base = np.zeros((2, 3, 4, 5))
    for index in ((..., 1), (1, ...), (1, ..., 2), (..., slice(1, 3), 2), (...,), (1, 2, ..., 3, slice(None))):
        assert_same_place(Tensor(base)[index], base[index], base)


@pytest.mark.parametrize("shape, rows, new", [
    ((4, 6), slice(None), (24,)), ((4, 6), slice(None), (2, 2, 6)), ((4, 6), slice(1, 3), (3, 4)), ((4, 6), slice(None), (-1, 3)),
    ((1, 6), slice(None), (2, 3)), ((4, 0), slice(None), (0, 7)),
])
def test_reshape_is_numpys(shape: tuple[int, ...], rows: slice, new: tuple[int, ...]) -> None:
    base = np.zeros(shape, np.float32)
    expected = base[rows].reshape(new)
    assert_same_place(Tensor(base)[rows].reshape(*new), expected, base)
    assert_same_place(Tensor(base)[rows].reshape(new), expected, base)


def test_reshape_of_one_row_transposed_is_numpys() -> None:
    base = np.zeros((3, 8), np.float32)
    assert_same_place(Tensor(base)[1:2].T.reshape(2, 4), base[1:2].T.reshape(2, 4), base)


def test_reshape_guards_what_makes_it_contiguous() -> None:
    view = Tensor(np.zeros((4, 6), np.float32), name="X").reshape(24)
    found = {(print_scalar(b.lower), print_scalar(b.value), print_scalar(b.upper)) for b in bounds_of(view.view)}
    assert found == {("4", "X.shape[0]", "4"), ("6", "X.strides[0]", "6"), ("6", "X.shape[1]", "6"), ("1", "X.strides[1]", "1")}


def test_reshape_of_a_tail_guards_its_extent() -> None:
    view = Tensor(np.zeros((6, 1), np.float32), name="X")[2:].reshape(1, 4)
    assert ("X.shape[0] - 2", "4") in {(print_scalar(b.value), print_scalar(b.upper)) for b in bounds_of(view.view)}


@pytest.mark.parametrize("view", [
    Tensor(np.zeros((4, 6))).T, Tensor(np.zeros((4, 6)))[:, 1:3], Tensor(np.zeros((4, 6)))[::2], Tensor(np.zeros((4, 6)))[:I],
    Tensor(np.zeros((4, 6))).clip(2, 4),
], ids=repr)
def test_reshape_needs_a_contiguous_view_of_known_extents(view: TensorView) -> None:
    with pytest.raises(ViewIndexError):
        view.reshape(-1)


@pytest.mark.parametrize("new", [(5,), (-1, 5), (-1, -1), (4, 6, 2), (2.0, 12), (-24,), (1,) * 7 + (4, 6)], ids=str)
def test_reshape_keeps_the_number_of_elements(new: tuple[int, ...]) -> None:
    with pytest.raises(ViewIndexError):
        Tensor(np.zeros((4, 6))).reshape(*new)


# ---- clip ----

@pytest.mark.parametrize("i, rows", [(0, 4), (1, 4), (2, 2)])
def test_clip_keeps_what_is_there(i: int, rows: int) -> None:
    base = np.zeros((10, 3), np.float32)
    assert_same_place(Tensor(base)[I * 4:].clip(4, 8), base[i * 4:][:rows], base, i=i)


def test_clip_says_its_limits() -> None:
    dims = Tensor(np.zeros((10, 3)))[I * 4:].clip(4, 8).dims
    assert [dim.limit for dim in dims] == [4, 8]


@pytest.mark.parametrize("limits", [(4,), (4, 3, 2), (0, 3), (4, 1.5), (-1, 3), (I + 0.5, 3)], ids=repr)
def test_clip_takes_a_number_a_dimension(limits: tuple[int, ...]) -> None:
    with pytest.raises(ViewIndexError):
        Tensor(np.zeros((10, 3))).clip(*limits)


# ---- refusals ----

X = Tensor(np.zeros((4, 16, 8), np.float32), name="X")


@pytest.mark.parametrize("index, found", [
    (4, "4"), (-5, "-1"), (slice(2, 5), "5"), (slice(5, None), "5"), (slice(-5, None), "-1"), (slice(None, 99), "99"),
    ((0, 16), "16"), ((0, slice(0, 17)), "17"), ((..., 8), "8"), (np.int64(9), "9"),
], ids=repr)
def test_a_constant_outside_is_refused(index: object, found: str) -> None:
    with pytest.raises(ViewBoundsError) as caught:
        X[index]
    assert caught.value.code == "T301" and caught.value.found == found


def test_the_error_shows_the_index_as_it_was_written() -> None:
    with pytest.raises(ViewBoundsError) as caught:
        X[-5]
    assert caught.value.message == "index -5 is outside dimension 0 of `X`"
    span = caught.value.span
    assert isinstance(span, Span) and Path(span.file).name == "test_view.py"


def test_a_slice_may_not_end_before_it_starts() -> None:
    with pytest.raises(ViewBoundsError):
        X[3:1]
    with pytest.raises(ViewBoundsError):
        X[I + 3:I + 1]


def test_a_slice_may_be_empty() -> None:
    assert X[2:2].shape == (0, 16, 8) and X[4:].shape == (0, 16, 8)


@pytest.mark.parametrize("index", [
    1.5, True, "a", None, [0, 1], (0, [1]), ((0, 1), 0), np.zeros(2, int), np.float32(1), {}, I < 2, slice(0, 1.5),
    slice(0, 4, 0), slice(0, 4, -1), slice(3, 0, -1), slice(0, 4, True), slice(0, 4, "2"), (0, 0, 0, 0), (..., ...), (0, ..., ...),
], ids=repr)
def test_a_meaningless_index_is_refused(index: object) -> None:
    with pytest.raises(ViewIndexError) as caught:
        X[index]
    assert caught.value.code == "T302"


def test_a_whole_view_is_no_index() -> None:
    with pytest.raises(ArgumentKindError):
        X[X]


def test_a_symbolic_step_is_refused() -> None:
    with pytest.raises(PtoError):
        X[::Symbol("n")]


# ---- elements ----

@pytest.mark.parametrize("step", [0, -1, 1 << 31, 1 << 63])
def test_a_step_is_no_number_that_sizes_overflow_with(step: int) -> None:
    with pytest.raises(ViewIndexError, match=r"1 \.\. 2147483647"):
        _ = Tensor(np.zeros((8, 4)))[2:6:step]
    assert place_of(Tensor(np.zeros((8, 4)))[2:6:(1 << 31) - 1].view).dims[0].extent == Const(1)


def test_picking_every_dimension_reads_an_element() -> None:
    table = Tensor(np.zeros((5, 6), np.int32), name="table")
    found = table[I, J + 1]
    assert isinstance(found, Symbolic) and isinstance(found.node, Element)
    assert print_scalar(found.node) == "table[i, j + 1]"


@pytest.mark.parametrize("read, text", [
    (lambda t: t[2:][1, J], "t[3, j]"), (lambda t: t[1::2][2, 3], "t[5, 3]"), (lambda t: t.T[J, I], "t[i, j]"),
    (lambda t: t[I][J], "t[i, j]"), (lambda t: t.item(I, -1), "t[i, t.shape[1] - 1]"), (lambda t: t[1].item(J), "t[1, j]"),
    (lambda t: t[I].clip(3)[2], "t[i, 2]"), (lambda t: t[2:][1::3][1, 0], "t[6, 0]"),
])
def test_an_element_of_a_view_is_one_of_the_tensor(read: Any, text: str) -> None:
    assert print_scalar(read(Tensor(np.zeros((9, 6), np.int32), name="t")).node) == text


@pytest.mark.parametrize("read", [lambda t: t[2:4][I, 0], lambda t: t[::2][I, 0], lambda t: t[0].clip(3)[J]])
def test_an_element_of_a_slice_is_not_read_past_its_end(read: Any) -> None:
    with pytest.raises(ViewIndexError, match="from the tensor itself"):
        read(Tensor(np.zeros((9, 6), np.int32), name="t"))


def test_a_tensor_without_dimensions_is_a_scalar() -> None:
    n = Tensor(np.array(3), name="n")
    assert print_scalar((I + n).node) == "i + n[]"


def test_item_takes_an_index_a_dimension_and_no_slices() -> None:
    for index in ((1,), (1, 2, 3, 4), (1, 2, slice(None))):
        with pytest.raises(ViewIndexError):
            X.item(*index)


def test_a_reshaped_view_has_no_elements_to_read() -> None:
    with pytest.raises(ViewIndexError):
        Tensor(np.zeros((2, 3), np.int32)).reshape(6)[I]


# ---- text ----

@pytest.mark.parametrize("view, text", [
    (X, "X"), (X[1], "X[1]"), (X[1][2], "X[1, 2]"), (X[1, 2], "X[1, 2]"), (X[:, 2], "X[:, 2]"), (X[..., 2], "X[:, :, 2]"),
    (X[I, J * 2:(J + 1) * 2], "X[i, j * 2:(j + 1) * 2]"), (X[1:, ::2], "X[1:, ::2]"), (X[:3], "X[:3]"), (X[1:][1:], "X[1:][1:]"),
    (X[0].T, "X[0].T"), (X[0].T[1], "X[0].T[1]"), (X[I, 4:].clip(2, 8), "X[i, 4:].clip(2, 8)"),
    (X[0].reshape(128)[3:5], "X[0].reshape(128)[3:5]"), (X[-1], "X[X.shape[0] - 1]"),
], ids=str)
def test_views_print_as_they_are_written(view: TensorView, text: str) -> None:
    assert print_view(view.view) == text


def test_bounds_of_a_view_are_those_of_its_steps() -> None:
    found = [(print_scalar(b.lower), print_scalar(b.value), print_scalar(b.upper)) for b in bounds_of(X[I, J:J + 2].view)]
    assert found == [("0", "i", "X.shape[0] - 1"), ("0", "j", "X.shape[1]"), ("j", "j + 2", "X.shape[1]")]


def test_a_view_of_a_constant_extent_keeps_it_when_the_tensor_is_bound_anew() -> None:
    assert place_of(X[1:3].view).dims[0].extent == Const(2)
    assert print_scalar(place_of(X[1:].view).dims[0].extent) == "X.shape[0] - 1"


def test_views_know_their_dtype() -> None:
    assert X[0, 1:3].dtype is DType.F32

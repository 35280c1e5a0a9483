"""Views as windows in a tensor's own dimensions, held to the view's offset, extents and strides on a device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto_wsp import DType, Tensor
from pto_wsp.errors import DeviceLimitError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.tensor import TensorView
from pto_wsp.ir.view import declared
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.npu.plan.descriptors import ViewSteps, describe
from pto_wsp.npu.plan.model import Reshaped, Window
from pto_wsp.source import UNKNOWN


def described(view: TensorView) -> ViewSteps:
    return describe(view.view, UNKNOWN)


def number(node: s.Scalar) -> int:
    known = declared(node)
    assert isinstance(known, s.Const), print_scalar(node)
    return int(known.value)


def seen(whole: np.ndarray, found: ViewSteps) -> np.ndarray:
    """What a kernel sees: the runtime's windows of a contiguous array, then rows and columns by the access."""
    array = whole
    for step in found.steps:
        match step:
            case Window(offset, shape):
                array = array[tuple(slice(number(at), number(at) + number(n)) for at, n in zip(offset, shape, strict=True))]
            case Reshaped(shape):
                array = array.reshape(shape)
    access = found.access
    by = {access.row_dim: access.row_step, access.col_dim: access.col_step}
    array = array[tuple(slice(None, None, by.get(dim, 1)) for dim in range(array.ndim))]
    order = [dim for dim in (access.row_dim, access.col_dim) if dim is not None]
    rest = [dim for dim in range(array.ndim) if dim not in order]
    return array.transpose(*rest, *order).reshape([array.shape[dim] for dim in order])


X = np.arange(3 * 8 * 10, dtype=np.float32).reshape(3, 8, 10)
VIEWS: dict[str, tuple[Callable[[Tensor], TensorView], Callable[[np.ndarray], np.ndarray]]] = {
    "row": (lambda t: t[1, 4], lambda a: a[1, 4]),
    "column": (lambda t: t[1, :, 4], lambda a: a[1, :, 4]),
    "part": (lambda t: t[2, 2:6, 1:4], lambda a: a[2, 2:6, 1:4]),
    "middle": (lambda t: t[:, 3], lambda a: a[:, 3]),
    "turned": (lambda t: t[0].T, lambda a: a[0].T),
    "turned part": (lambda t: t[0].T[2:5, 1:], lambda a: a[0].T[2:5, 1:]),
    "steps": (lambda t: t[1, ::3, 1::2], lambda a: a[1, ::3, 1::2]),
    "steps of steps": (lambda t: t[1, ::2, ::3][1:, ::2], lambda a: a[1, ::2, ::3][1:, ::2]),
    "short of steps": (lambda t: t[1, :, ::3][:, 1:3], lambda a: a[1, :, ::3][:, 1:3]),
    "one of steps": (lambda t: t[1, ::3][1], lambda a: a[1, ::3][1]),
    "clipped": (lambda t: t[1, 5:].clip(4, 10), lambda a: a[1, 5:9]),
    "clipped steps": (lambda t: t[1, ::3].clip(2, 4), lambda a: a[1, ::3][:2, :4]),
    "reshaped": (lambda t: t[1].reshape(20, 4), lambda a: a[1].reshape(20, 4)),
    "part of reshaped": (lambda t: t[1:3].reshape(4, 40)[1:3, 5:], lambda a: a[1:3].reshape(4, 40)[1:3, 5:]),
    "reshaped one of steps": (lambda t: t[0:2:2, 3].reshape(2, 5), lambda a: a[0:2:2, 3].reshape(2, 5)),
    "empty": (lambda t: t[1, 3:3], lambda a: a[1, 3:3]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_kernel_sees_what_the_view_names(name: str) -> None:
    take, expected = VIEWS[name]
    np.testing.assert_array_equal(seen(X, described(take(Tensor(X)))), expected(X))


@given(st.data())
def test_a_kernel_sees_what_numpy_takes(data: st.DataObject) -> None:
    tensor: TensorView = Tensor(X)
    array = X
    for _ in range(data.draw(st.integers(1, 5))):
        kind = data.draw(st.sampled_from(("cut", "cut", "turn", "pick", "clip")))
        dim = data.draw(st.integers(0, array.ndim - 1))
        if kind == "pick" and array.ndim == 3 and array.shape[dim]:
            key = (slice(None),) * dim + (data.draw(st.integers(0, array.shape[dim] - 1)),)
            tensor, array = tensor[key], array[key]
        elif kind == "turn":
            tensor, array = tensor.T, array.T
        elif kind == "clip":
            limits = tuple(data.draw(st.integers(1, 9)) for _ in array.shape)
            tensor, array = tensor.clip(*limits), array[tuple(slice(0, limit) for limit in limits)]
        else:
            start = data.draw(st.integers(0, array.shape[dim]))
            stop = data.draw(st.integers(start, array.shape[dim]))
            part = (slice(None),) * dim + (slice(start, stop, data.draw(st.integers(1, 3))),)
            tensor, array = tensor[part], array[part]
    if array.ndim == 3:
        if not array.shape[0]:
            return   # nothing to pick from
        tensor, array = tensor[0], array[0]
    np.testing.assert_array_equal(seen(X, described(tensor)), array)


def test_a_whole_tensor_needs_no_step() -> None:
    found = described(Tensor(X[0], name="x"))
    assert found.steps == ()
    assert found.access == ParamAccess(0, 1, rows=8, cols=10)


def test_what_lies_side_by_side_follows_from_the_tensor_in_row_major_order() -> None:
    """The array's own strides say nothing: the package has an array of its own."""
    turned = Tensor(np.asfortranarray(X[0]))
    assert described(turned).access == ParamAccess(0, 1, rows=8, cols=10)
    assert described(turned.T).access == ParamAccess(1, 0, rows=10, cols=8, unit_cols=False, unit_rows=True)
    assert described(Tensor(X)[:, :, 0]).access == ParamAccess(0, 1, rows=3, cols=8, unit_cols=False)
    assert described(Tensor(X)[1, 2]).access == ParamAccess(None, 2, rows=1, cols=10, unit_rows=True)


def test_six_dimensions_are_too_many() -> None:
    with pytest.raises(DeviceLimitError, match="too many dimensions"):
        described(Tensor(np.zeros((1, 1, 1, 1, 4, 4), np.float32))[0, 0, 0, 0])


def test_a_reshape_that_is_contiguous_only_in_the_users_array_is_refused() -> None:
    turned = Tensor(np.asfortranarray(X[0]), dtype=DType.F32)
    with pytest.raises(DeviceLimitError, match="does not lie contiguously"):
        described(turned.T.reshape(80).reshape(8, 10))

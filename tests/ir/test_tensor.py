"""Tensors wrap arrays and never copy them; what shape and dtype say must be so."""

from __future__ import annotations

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

from pto_wsp.errors import TensorDataError, ViewIndexError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.layout import Layout
from pto_wsp.ir.tensor import MAX_RANK, Tensor


def test_the_array_is_wrapped_and_not_copied() -> None:
    array = np.zeros((2, 3), np.float32)
    assert Tensor(array).data is array


def test_shape_dtype_and_strides_are_the_arrays() -> None:
    tensor = Tensor(np.zeros((4, 16, 128), ml_dtypes.bfloat16))
    assert (tensor.shape, tensor.dtype, tensor.rank) == ((4, 16, 128), DType.BF16, 3)
    assert tensor.ref.layout == Layout((16 * 128, 128, 1))


@pytest.mark.parametrize("array", [
    np.zeros((6, 8), np.int16)[::2, ::3], np.zeros((6, 8), np.int16).T, np.zeros((6, 8), np.int16)[::-1],
    np.zeros((6, 8), np.int16)[:, 2:5], np.broadcast_to(np.zeros(8, np.int16), (6, 8)),
], ids=["steps", "transposed", "backwards", "columns", "broadcast"])
def test_strides_are_kept_in_elements(array: np.ndarray) -> None:  # type: ignore[type-arg]
    assert Tensor(array).ref.layout.strides == tuple(stride // 2 for stride in array.strides)


def test_the_open_stride_of_a_last_dimension_of_one_is_one() -> None:
    assert Tensor(np.zeros((4, 8), np.int8)[:, 3:4]).ref.layout == Layout((8, 1))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,), (2, 0, 3)])
def test_tensors_may_be_empty(shape: tuple[int, ...]) -> None:
    assert Tensor(np.zeros(shape, np.float32)).shape == shape


def test_a_tensor_without_dimensions_is_one_element() -> None:
    tensor = Tensor(np.array(3, np.int64))
    assert tensor.rank == 0 and tensor.shape == ()


def test_a_declaration_without_data_is_contiguous() -> None:
    tensor = Tensor(shape=(2, 3, 4), dtype=DType.F16, name="X")
    assert (tensor.data, tensor.shape, tensor.ref.layout, tensor.name) == (None, (2, 3, 4), Layout((12, 4, 1)), "X")


def test_shape_may_be_a_list_and_agree() -> None:
    assert Tensor(np.zeros((2, 3)), shape=[2, 3], dtype=DType.F64).shape == (2, 3)


@pytest.mark.parametrize("arguments, found", [
    ({"data": np.zeros((2, 3)), "shape": (3, 2)}, "(2, 3)"),
    ({"data": np.zeros((2, 3)), "shape": (2, 3, 1)}, "(2, 3)"),
    ({"data": np.zeros((2, 3)), "dtype": DType.F32}, "f64 array"),
    ({"data": np.zeros((2, 3)), "dtype": "nope"}, "'nope'"),
    ({"data": [[1.0, 2.0]]}, "list"),
    ({"data": 3.0}, "float"),
    ({"shape": (2, 3)}, None),
    ({"dtype": DType.F32}, None),
    ({"shape": (2, -3), "dtype": DType.F32}, "(2, -3)"),
    ({"shape": (2, 1.5), "dtype": DType.F32}, "(2, 1.5)"),
    ({"shape": 4, "dtype": DType.F32}, "4"),
    ({"data": np.zeros((1,) * (MAX_RANK + 1))}, "(1, 1, 1, 1, 1, 1, 1, 1, 1)"),
    ({"data": np.zeros(2, [("a", "i2"), ("b", "i4")])["b"]}, "strides (6,) bytes"),
], ids=str)
def test_what_does_not_fit_is_refused(arguments: dict[str, object], found: str | None) -> None:
    with pytest.raises(TensorDataError) as caught:
        Tensor(**arguments)  # type: ignore[arg-type]
    assert caught.value.code == "D101" and caught.value.found == found


def test_the_error_says_how_to_make_the_dtypes_agree() -> None:
    with pytest.raises(TensorDataError) as caught:
        Tensor(np.zeros(2), dtype=DType.F32)
    assert caught.value.help == "array.astype(np.float32), or dtype=DType.F64"


def test_empty_makes_memory_of_its_own() -> None:
    tensor = Tensor.empty((4, 8), DType.BF16, "tmp")
    assert tensor.data is not None and tensor.data.shape == (4, 8) and tensor.data.dtype == DType.BF16.np
    assert tensor.intermediate and tensor.name == "tmp"


class Exporter:
    """An object of another library, which knows DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:  # type: ignore[type-arg]
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_from_dlpack_shares_memory() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = Tensor.from_dlpack(Exporter(array))
    assert tensor.data is not None and np.shares_memory(tensor.data, array) and tensor.shape == (2, 3)


def test_from_dlpack_refuses_what_has_none() -> None:
    with pytest.raises(TensorDataError) as caught:
        Tensor.from_dlpack([1, 2])
    assert caught.value.found == "list"


@pytest.mark.slow
def test_a_tensor_is_let_go_with_its_last_user() -> None:
    tensor = Tensor(np.zeros(3))
    gone = weakref.ref(tensor)
    del tensor
    gc.collect()
    assert gone() is None


def test_views_have_no_iteration_but_a_length() -> None:
    tensor = Tensor(np.zeros((5, 2)), name="X")
    assert len(tensor) == 5
    with pytest.raises(ViewIndexError):
        iter(tensor)


def test_repr_shows_name_shape_and_dtype() -> None:
    tensor = Tensor(np.zeros((4, 16), np.float32), name="X")
    assert repr(tensor) == "Tensor(X, shape=(4, 16), f32)"
    assert repr(tensor[1, 0:8]) == "TensorView(X[1, :8], shape=(8,), f32)"

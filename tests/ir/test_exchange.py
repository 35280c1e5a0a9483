"""Arrays of other libraries come in and go out without a copy, whatever protocol they speak; what cannot be shared is refused, and why."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import ClassVar

import numpy as np
import pytest

from pto_wsp import DType, Injective, PtoError, Ragged, Tensor
from pto_wsp.ir.axes import Dense
from pto_wsp.ir.exchange import Array, NotTaken, array_of, empty_array, is_array, tensor_in_capsule

F32 = np.float32
CPU, CUDA, PINNED = (1, 0), (2, 1), (3, 0)


class ByDlpack:
    """An array that speaks DLPack alone, on some device; an `old` one knows no options and no versions."""

    def __init__(self, array: Array, device: tuple[int, int] = CPU, old: bool = False) -> None:
        self.array, self.device, self.old = array, device, old

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: object) -> object:
        if self.old and options:
            raise TypeError("no options")
        return self.array.__dlpack__(**options)  # type: ignore[arg-type]


class ByInterface:
    """An array that speaks the array interface alone, as memory of image libraries does."""

    def __init__(self, array: Array, **more: object) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, **more}


class ByArray:
    """An array that speaks `__array__` alone, as of NumPy 2; `copies`: its memory is of another form, so it is copied."""

    def __init__(self, array: Array, copies: bool = False) -> None:
        self.array, self.copies = array, copies

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        if self.copies and copy is False:
            raise ValueError("a copy is needed")
        return self.array.copy() if self.copies else self.array


class ByOldArray(ByArray):
    """The same as of NumPy 1, which knows no `copy`."""

    def __array__(self, dtype: object = None) -> Array:  # type: ignore[override]
        return self.array.copy() if self.copies else self.array[...]


class Torch(ByDlpack):
    """A stand-in for a tensor of PyTorch, with the questions that it answers."""

    __module__ = "torch"
    requires_grad = is_quantized = False
    layout = "torch.strided"
    bits: tuple[str, ...] = ()

    def is_conj(self) -> bool:
        return "conj" in self.bits

    def is_neg(self) -> bool:
        return "neg" in self.bits


class Jax(ByDlpack):
    """A stand-in for an array of JAX, which may not be written, whatever its capsule says."""

    __module__ = "jaxlib._jax"


class OnCuda:
    """An array that speaks CUDA's protocol alone."""

    __module__ = "cupy"
    __cuda_array_interface__: ClassVar[dict[str, object]] = {"data": (8, False)}


class Foreign:
    """An array of another library, of a dtype that NumPy does not know: a capsule says `code` and `bits` for its elements."""

    def __init__(self, bits: np.ndarray, code: int, versioned: bool = True) -> None:  # type: ignore[type-arg]
        self.held, self.code, self.versioned = bits, code, versioned
        self.offered = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: object) -> object:
        self.offered += 1
        if not self.versioned and options:
            raise TypeError("__dlpack__ takes no options")     # as libraries of before 2023 say
        capsule = self.held.__dlpack__(**options)  # type: ignore[arg-type]
        tensor = tensor_in_capsule(capsule)
        assert tensor is not None
        tensor.dtype.code = self.code
        return capsule


# bf16 1, -2, 0.5, 3; fp8e4m3 1, -2, 0.5, 3; fp8e5m2 the same: by hand from the formats
CASES = [(DType.BF16, 4, np.uint16, [0x3F80, 0xC000, 0x3F00, 0x4040]), (DType.FP8E4M3, 10, np.uint8, [0x38, 0xC0, 0x30, 0x44]),
         (DType.FP8E5M2, 12, np.uint8, [0x3C, 0xC0, 0x38, 0x42])]


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("dtype, code, kind, bits", CASES, ids=[str(case[0]) for case in CASES])
def test_a_dtype_that_numpy_lacks_comes_in_without_a_copy(dtype: DType, code: int, kind: type, bits: list[int], versioned: bool) -> None:
    held = np.array(bits * 2, kind).reshape(2, 4)
    foreign = Foreign(held, code, versioned)
    tensor = Tensor.from_dlpack(foreign, name="W")
    assert tensor.dtype is dtype and tensor.shape == (2, 4) and tensor.name == "W" and tensor.data is not None
    assert tensor.data.astype(np.float32).tolist() == [[1.0, -2.0, 0.5, 3.0]] * 2
    held[1, 2] = bits[1]
    assert float(tensor.data[1, 2]) == -2.0


def test_the_array_lives_as_long_as_its_tensor() -> None:
    class Held(np.ndarray):  # type: ignore[type-arg]
        pass

    held = np.zeros((2, 2), np.uint16).view(Held)
    gone = weakref.ref(held)
    tensor = Tensor.from_dlpack(Foreign(held, 4))
    del held
    gc.collect()
    assert gone() is not None or tensor.data is not None
    assert tensor.data is not None and float(tensor.data[0, 0]) == 0.0


def test_what_numpy_knows_comes_in_as_before() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = Tensor.from_dlpack(array)
    assert tensor.dtype is DType.F32 and tensor.data is not None and np.shares_memory(tensor.data, array)


@pytest.mark.parametrize("code, kind", [(2, np.uint8), (7, np.uint8), (4, np.uint8), (5, np.uint16)])
def test_a_dtype_that_nobody_has_is_refused(code: int, kind: type) -> None:
    with pytest.raises(PtoError) as caught:
        Tensor.from_dlpack(Foreign(np.zeros((2, 2), kind), code))
    assert caught.value.code == "D101"


@pytest.mark.parametrize("value, found", [([1, 2], "list"), (None, "nothing"), (ctypes.c_int(3), "ctypes.c_int")])
def test_what_offers_no_memory_is_named(value: object, found: str) -> None:
    with pytest.raises(PtoError) as caught:
        Tensor.from_dlpack(value)
    assert caught.value.code == "D101" and caught.value.found == found


WAYS = [ByDlpack, lambda a: ByDlpack(a, PINNED), lambda a: ByDlpack(a, old=True), ByInterface, ByArray, ByOldArray, Torch, Jax, Tensor]


@pytest.mark.parametrize("way", WAYS, ids=["dlpack", "pinned", "old dlpack", "interface", "array", "old array", "torch", "jax", "tensor"])
@pytest.mark.parametrize("piece", [np.s_[:], np.s_[1:, ::2], np.s_[::-1], np.s_[2, 1], np.s_[:0]], ids=str)
def test_an_array_comes_in_as_it_lies(way: object, piece: object) -> None:
    whole = np.arange(24, dtype=F32).reshape(4, 6)
    part = np.asarray(whole[piece])  # type: ignore[index]
    given = way(part)  # type: ignore[operator]
    assert is_array(given)
    taken = array_of(given)
    assert isinstance(taken, np.ndarray)
    assert taken.shape == part.shape and taken.dtype == F32 and (taken == part).all()
    part += 100
    assert (taken == part).all()      # no copy


@pytest.mark.parametrize("way", [ByDlpack, ByInterface, ByArray, ByOldArray, Torch, lambda a: Torch(a, old=True)],
                         ids=["dlpack", "interface", "array", "old array", "torch", "old torch"])
def test_what_is_written_is_the_given_memory(way: object) -> None:
    held = np.zeros((2, 3), F32)
    tensor = Tensor(way(held))  # type: ignore[operator]
    assert tensor.data is not None
    tensor.data[1, 2] = 7
    assert held[1, 2] == 7


@pytest.mark.parametrize("old", [False, True])
def test_bf16_of_torch_is_written_in_place(old: bool) -> None:
    class Bf16(Foreign, Torch):
        __module__ = "torch"

    held = np.zeros((2, 4), np.uint16)
    tensor = Tensor(Bf16(held, 4, not old))
    assert tensor.dtype is DType.BF16 and tensor.data is not None
    tensor.data[1, 2] = -2
    assert held[1, 2] == 0xC000


def test_arrays_of_jax_are_never_written() -> None:
    tensor = Tensor(Jax(np.zeros(4, F32)))
    assert tensor.data is not None and not tensor.data.flags.writeable


def _torch(**answers: object) -> Torch:
    made = Torch(np.zeros((2, 2), F32))
    for name, answer in answers.items():
        setattr(made, name, answer)
    return made


def _without_memory() -> object:
    class Fake(ByDlpack):
        def __dlpack__(self, **options: object) -> object:
            capsule = super().__dlpack__(**options)
            tensor = tensor_in_capsule(capsule)
            assert tensor is not None
            tensor.data = None
            return capsule
    return Fake(np.zeros((2, 2), F32))


def _raising(problem: Exception) -> object:
    class Broken(ByDlpack):
        def __dlpack__(self, **options: object) -> object:
            raise problem
    return Broken(np.zeros(2, F32))


def _on_no_device() -> object:
    class Meta(Torch):
        __module__ = "torch"

        def __dlpack_device__(self) -> tuple[int, int]:
            raise ValueError("Unknown device type meta")
    made = Meta(np.zeros(2, F32))
    made.device = "meta"  # type: ignore[assignment]
    return made


class Parameter(Torch):
    """A stand-in for a module's parameter where PyTorch records no gradients: `numpy()` gives its memory."""

    __module__ = "torch.nn.parameter"
    requires_grad = True
    dtype = np.dtype(F32)

    def numpy(self) -> Array:
        return self.array


def test_a_parameter_is_taken_where_pytorch_itself_gives_its_memory() -> None:
    given = Parameter(np.zeros(2, F32))
    assert array_of(given) is given.array


REFUSED = {
    "cuda": (ByDlpack(np.zeros(2, F32), CUDA), "another device", "cuda:1", "copy it to host memory first"),
    "torch on cuda": (Torch(np.zeros(2, F32), CUDA), "another device", "torch.Torch on cuda:1", "copy it to the host first: x.cpu()"),
    "jax on an extension": (Jax(np.zeros(2, F32), (12, 3)), "another device", "an extension device:3", "jax.device_get(x)"),
    "a device of later": (ByDlpack(np.zeros(2, F32), (99, 0)), "another device", "device type 99:0", "host memory"),
    "meta": (_on_no_device(), "another device", "on meta", "x.cpu()"),
    "cupy": (OnCuda(), "another device", "cupy.OnCuda on a CUDA device", "cupy.asnumpy(x)"),
    "gradients": (_torch(requires_grad=True), "requires gradients", "torch.Torch", "x.detach(), or torch.no_grad() around the call"),
    "sparse": (_torch(layout="torch.sparse_csr"), "without strides", "torch.sparse_csr", "x.to_dense()"),
    "quantized": (_torch(is_quantized=True), "quantized", "torch.Torch", "x.int_repr()"),
    "conj": (_torch(bits=("conj",)), "other numbers", "torch.Torch", "x.resolve_conj()"),
    "neg": (_torch(bits=("neg",)), "other numbers", "torch.Torch", "x.resolve_neg()"),
    "without memory": (_without_memory(), "no host memory", "Fake", "None"),
    "that raises": (_raising(KeyError("nobody at home")), "no host memory", "Broken", "None"),
    "that raises as torch does": (_raising(RuntimeError("an internal error")), "no host memory", "Broken", "None"),
    "of another dtype": (Foreign(np.zeros(2, np.uint8), 11), "a dtype that NumPy", "Foreign", "cast it first"),
    "copied": (ByArray(np.zeros(2, F32), copies=True), "copied whenever", "ByArray", "np.asarray(x)"),
    "copied, old": (ByOldArray(np.zeros(2, F32), copies=True), "copied whenever", "ByOldArray", "np.asarray(x)"),
    "masked": (np.ma.masked_array(np.zeros(2, F32), [0, 1]), "mask", "numpy.ma.MaskedArray", "x.filled(0)"),
    "with a mask": (ByInterface(np.zeros(2, F32), mask=np.zeros(2, bool)), "mask", "ByInterface", "x.filled(0)"),
    "list": ([1.0, 2.0], "no array", "list", "np.asarray(x)"),
    "memory": (memoryview(b"ab"), "no array", "memoryview", "np.asarray(x)"),
    "number": (np.float32(2), "no array", "numpy.float32", "np.asarray(x)"),
    "class": (np.ndarray, "no array", "type", "None"),
    "text": ("array", "no array", "str", "None"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_shared_is_refused_with_the_way_out(name: str) -> None:
    given, what, found, help = REFUSED[name]
    refused = array_of(given)
    assert isinstance(refused, NotTaken)
    assert what in refused.what and found in refused.found and help in str(refused.help)
    with pytest.raises(PtoError) as caught:
        Tensor(given)
    assert caught.value.code == "D101" and caught.value.message == f"a Tensor cannot wrap {refused.what}"
    assert (caught.value.found, caught.value.help) == (refused.found, refused.help)


@pytest.mark.parametrize("given, code, words", [
    (ByDlpack(np.zeros(2, np.complex64)), "D102", "complex64"),
    (ByInterface(np.zeros(2, ">f4")), "D102", "byte order"),
    (np.frombuffer(bytearray(17), F32, 4, 1), "D101", "multiples of their size"),
    (ByArray(np.zeros(2, "M8[s]")), "D102", "datetime64"),
])
def test_what_has_no_dtype_or_alignment_is_refused(given: object, code: str, words: str) -> None:
    with pytest.raises(PtoError, match=words) as caught:
        Tensor(given)
    assert caught.value.code == code


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize("versioned", [True, False])
def test_a_tensor_goes_out_and_comes_back_as_the_same_memory(dtype: DType, versioned: bool) -> None:
    tensor = Tensor(np.arange(6).reshape(2, 3).astype(dtype.np))
    capsule = tensor.__dlpack__(**({"max_version": (1, 0), "copy": None} if versioned else {}))
    inside = tensor_in_capsule(capsule)
    kinds = {"F": 2, "I": 0, "U": 1, "B": 6}
    codes = {DType.BF16: 4, DType.FP8E4M3: 10, DType.FP8E5M2: 12}      # by hand, from dlpack.h
    assert inside is not None and tensor.data is not None
    assert (inside.dtype.code, inside.dtype.bits) == (codes.get(dtype, kinds[dtype.name[0]]), 8 * dtype.nbytes)
    assert inside.data == tensor.data.__array_interface__["data"][0] and tensor.__dlpack_device__() == CPU
    again = Tensor(tensor)
    assert again.dtype is dtype and again.data is not None and np.shares_memory(again.data, tensor.data)


def test_numpy_reads_a_tensor_without_a_copy() -> None:
    tensor = Tensor(np.arange(4, dtype=F32), name="X")
    assert tensor.data is not None
    assert np.asarray(tensor) is tensor.data
    assert np.asarray(tensor, np.float64).tolist() == [0, 1, 2, 3] and np.asarray(tensor, np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(tensor), tensor.data) and (np.array(tensor) == tensor.data).all()
    with pytest.raises(ValueError, match="copied"):
        tensor.__array__(np.float64, copy=False)


def test_a_tensor_without_an_array_has_none_to_hand_out() -> None:
    tensor = Tensor(shape=(2, 3), dtype=DType.F32, name="later")
    for ask in (lambda: np.asarray(tensor), tensor.__dlpack__, tensor.__dlpack_device__):
        with pytest.raises(PtoError, match="`later` has no array") as caught:
            ask()
        assert caught.value.code == "D101"


def test_axes_and_contracts_take_arrays_of_any_library() -> None:
    lens = ByDlpack(np.array([1, 2]))
    first, second = Ragged(Dense[2](), lens), Ragged(Dense[2](), lens)  # type: ignore[arg-type]
    assert first.lengths is second.lengths and first.lengths.dtype is DType.I64
    assert Injective(ByInterface(np.array([1, 0]))).shape == (2,)


def test_a_large_empty_array_begins_at_a_cache_line():
    for shape, dtype in (((300, 70), F32), ((1 << 14,), np.uint8), ((9, 1001), DType.BF16.np), ((5, 5), F32), ((0, 4), F32), ((), F32)):
        for _ in range(8):
            array = empty_array(shape, dtype)
            assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
            assert array.flags.c_contiguous and array.flags.writeable
            assert array.nbytes < 1 << 14 or array.__array_interface__["data"][0] % 64 == 0
    with pytest.raises(ValueError, match="big"):
        empty_array((1 << 40, 1 << 40), F32)

"""Exchange arrays with other libraries, without a copy: PyTorch, JAX, CuPy, pandas, memory maps.

`array_of` reads an array of any library as NumPy's, by `__dlpack__`, `__array_interface__` or `__array__`. `capsule_of` offers an array
to other libraries. Both keep bf16 and fp8, which NumPy cannot exchange: between NumPy and a capsule they are unsigned integers of their
width.

>>> array_of(torch_tensor)
array([[0., 1.], [2., 3.]], dtype=float32)
>>> array_of([1, 2])
NotTaken(what='something that is no array', found='list', …)

Source: DLPack 1.1, dlpack.h: DLTensor, DLManagedTensor, DLManagedTensorVersioned; Python array API 2024.12, data interchange.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pto_wsp.errors import PtoError
from pto_wsp.ir.dtype import DType
from pto_wsp.values import dataclass

Array: TypeAlias = npt.NDArray[Any]
_LINE = 64              # bytes, of a cache
_LARGE = 1 << 14        # bytes


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Why an object's memory cannot be used where it is. `what`: the end of a sentence, "tensor `X` is bound to …"."""

    what: str
    found: str
    expected: str = "an array in host memory"
    help: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Library:
    """A library of arrays: the call that copies an array `x` to host memory, and whether its arrays may be written."""

    to_host: str
    writable: bool


_TORCH_CLASSES = frozenset({("torch", "Tensor"), ("torch.nn.parameter", "Parameter")})
_JAX = _Library("jax.device_get(x)", writable=False)
_LIBRARIES: Mapping[str, _Library] = MappingProxyType({
    "torch": _Library("x.cpu()", writable=True), "jax": _JAX, "jaxlib": _JAX, "cupy": _Library("cupy.asnumpy(x)", writable=True),
})


def array_of(value: object) -> Array | NotTaken:
    """Return the memory of an array of any library as a NumPy array, or the reason why it cannot be used.

    The result is never a copy, and keeps the memory alive. Arrays of JAX are read-only.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ndarray):
        return _unmasked(value, value)
    if is_plain_torch(value):
        try:
            return _of_torch(value)
        except (RuntimeError, TypeError, AttributeError):
            pass      # what follows tells why
    if not is_array(value):
        is_sequence = isinstance(value, list | tuple | memoryview | np.generic)
        return NotTaken("something that is no array", kind_of(value), "an array: of NumPy, PyTorch, JAX, or any with __dlpack__, "
                        "__array_interface__ or __array__", "np.asarray(x) makes an array of it" if is_sequence else None)
    if _library_of(value) is _JAX and type(value).__name__.endswith("Tracer"):
        return NotTaken("a value of a function that JAX traces", kind_of(value), help="jax.pure_callback(f, "
                        "jax.ShapeDtypeStruct(shape, dtype), x) calls f when the program runs")
    try:
        if _offers(value, "__dlpack__"):
            return _by_dlpack(value)
        if _offers(value, "__array_interface__"):
            return _unmasked(np.asarray(value), value)
        return _by_conversion(value)
    except PtoError:
        raise      # an object of ours, with an error of its own
    except Exception as problem:     # the code of another library may raise anything
        return NotTaken("an array that offers no host memory", kind_of(value), notes=(_first_line(problem),))


def empty_array(shape: Sequence[int], dtype: npt.DTypeLike) -> Array:
    """Return an array of undefined elements. A large array begins at a cache line, so that no vector of elements lies in two lines."""
    of = np.dtype(dtype)
    n_bytes = math.prod(shape) * of.itemsize
    if not _LARGE <= n_bytes <= sys.maxsize - _LINE:
        return np.empty(shape, of)
    memory = np.empty(n_bytes + _LINE, np.uint8)
    start = -_address(memory) % _LINE
    return memory[start:start + n_bytes].view(of).reshape(shape)


def is_array(value: object) -> bool:
    """Tell whether an object is an array of some library; a NumPy scalar and a class are none."""
    if isinstance(value, np.generic | type):
        return False
    return any(_offers(value, name) for name in ("__dlpack__", "__array_interface__", "__array__", "__cuda_array_interface__"))


def kind_of(value: object) -> str:
    """Return the name of a value's class, with its module unless it is a builtin; "nothing" for None."""
    kind = type(value)
    return "nothing" if value is None else kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def capsule_of(array: Array, dtype: DType, options: Mapping[str, object]) -> object:
    """Return a DLPack capsule of an array's memory. `options`: the keywords of `__dlpack__`.

    Raises: BufferError, as the protocol says, where the memory does not fit the options.
    """
    if dtype.dlpack_code is None:
        return array.__dlpack__(**options)  # type: ignore[arg-type]
    capsule = array.view(f"u{dtype.nbytes}").__dlpack__(**options)  # type: ignore[arg-type]
    tensor = tensor_in_capsule(capsule)
    if tensor is not None:
        tensor.dtype.code = dtype.dlpack_code      # the capsule is new: nobody else has read it
    return capsule


def is_plain_torch(value: object) -> bool:
    """Tell whether a value is a tensor of PyTorch's own class, or a parameter of a module: other classes may mean something else."""
    kind = type(value)
    return (kind.__module__, kind.__qualname__) in _TORCH_CLASSES


def _of_torch(tensor: Any) -> Array:
    """Return a tensor's memory: a tenth of the time that DLPack takes.

    Raises: RuntimeError, TypeError where `numpy()` refuses: gradients, another device, other numbers than the memory's, no strides; a
    dtype that NumPy does not have and no DType is.
    """
    foreign = _foreign_of_torch(tensor.dtype)
    if foreign is not None and tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise RuntimeError("the view as integers would hide the graph of gradients from numpy()")
    array: Array = tensor.numpy() if foreign is None else tensor.view(foreign[0]).numpy().view(foreign[1])
    return array


@lru_cache(maxsize=32)
def _foreign_of_torch(dtype: Any) -> tuple[Any, np.dtype[Any]] | None:
    """Return PyTorch's integers of a dtype's width, and NumPy's dtype of the elements, for a dtype that NumPy has from elsewhere."""
    known = DType.of(dtype)
    if known is None or not known.is_foreign:
        return None
    return getattr(sys.modules["torch"], "uint16" if known.nbytes == 2 else "uint8"), known.np


def torch_of(array: Array) -> Any:
    """Return an array's memory as a tensor of PyTorch, which is loaded: of bf16 and fp8 as well."""
    torch, foreign = sys.modules["torch"], _torch_of_foreign(array.dtype)
    return torch.from_numpy(array) if foreign is None else torch.from_numpy(array.view(foreign[0])).view(foreign[1])


@lru_cache(maxsize=32)
def _torch_of_foreign(dtype: np.dtype[Any]) -> tuple[str, Any] | None:
    """Return NumPy's integers of a dtype's width, and PyTorch's dtype, for a dtype that NumPy has from elsewhere."""
    known, torch = DType.from_numpy(dtype), sys.modules["torch"]
    if not known.is_foreign:
        return None
    named = (getattr(torch, name) for name in sorted(vars(torch)))
    return f"u{known.nbytes}", next(found for found in named if isinstance(found, torch.dtype) and DType.of(found) is known)


def _offers(value: object, name: str) -> bool:
    return getattr(value, name, None) is not None


def _library_of(value: object) -> _Library | None:
    """Return the library of a value's class, or of the nearest class that it is derived from."""
    roots = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((_LIBRARIES[root] for root in roots if root in _LIBRARIES), None)


def _unmasked(array: Array, given: object) -> Array | NotTaken:
    interface = getattr(given, "__array_interface__", None)
    masked = isinstance(interface, Mapping) and interface.get("mask") is not None
    if masked or (type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray)):      # np.ma loads when it is first named
        return NotTaken("a masked array, whose mask would be lost", kind_of(given), "an array without a mask",
                        "x.filled(0) gives the masked elements a number; x.mask is an array of its own, of bools")
    return array


def _by_conversion(value: Any) -> Array | NotTaken:
    """Return the array behind `__array__`, if two calls give the same memory: what is copied at each call cannot be written to."""
    if not _offers(value, "__array__"):
        return _elsewhere(value, "a CUDA device")
    try:
        options: Mapping[str, bool] = {"copy": False}
        first = value.__array__(**options)
    except TypeError:      # a method from before NumPy 2 takes no `copy`
        options = {}
        first = value.__array__()
    except ValueError:     # as NumPy says where a copy is needed
        return _copied(value)
    second = value.__array__(**options)      # `first` is alive, so a copy has another address
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return NotTaken("an array that offers no host memory", kind_of(value))
    if first.size and _address(first) != _address(second):
        return _copied(value)
    return _unmasked(first, first)


def _copied(value: object) -> NotTaken:
    return NotTaken("an array that is copied whenever it is read", kind_of(value), "memory that can be shared",
                    "np.asarray(x) makes the copy, once")


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _elsewhere(value: object, device: str) -> NotTaken:
    library = _library_of(value)
    return NotTaken("an array on another device", f"{kind_of(value)} on {device}", "host memory",
                    f"copy it to the host first: {library.to_host}" if library else "copy it to host memory first")


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


# -- DLPack ------------------------------------------------------------------------------------------------------------
_UNSIGNED = 1
_FOREIGN: Mapping[tuple[int, int], DType] = MappingProxyType({
    (dtype.dlpack_code, 8 * dtype.nbytes): dtype for dtype in DType if dtype.dlpack_code is not None
})
_IS_COPIED = 2
_HOST = frozenset({1, 3, 11, 13})      # host memory, also where CUDA or ROCm pins or manages it
_DEVICES: Mapping[int, str] = MappingProxyType({
    2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm", 12: "an extension device", 14: "oneapi", 15: "webgpu",
    16: "hexagon", 17: "maia",
})


class _DlpackDType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DlpackTensor(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", _DlpackDType), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64))


class _Versioned(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _DlpackTensor))


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


def tensor_in_capsule(capsule: object) -> _DlpackTensor | None:
    """Return the tensor in a capsule that nobody has taken, None for another one."""
    versioned = _versioned_in(capsule)
    if versioned is not None:
        return _DlpackTensor.from_address(ctypes.addressof(versioned) + _Versioned.tensor.offset)
    if _is_valid(capsule, b"dltensor"):
        return _DlpackTensor.from_address(_pointer(capsule, b"dltensor"))
    return None


def _versioned_in(capsule: object) -> _Versioned | None:
    return _Versioned.from_address(_pointer(capsule, b"dltensor_versioned")) if _is_valid(capsule, b"dltensor_versioned") else None


class _AsIntegers:
    """Offers an array's memory to NumPy, with bf16 and fp8 elements as unsigned integers.

    After the offer, `dtype` is the real dtype of such elements, `made` tells whether there is a capsule, and `versioned` whether the
    capsule says what may be written.
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self.dtype: DType | None = None
        self.made = self.versioned = False

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: object) -> Any:
        if "copy" in options:
            options["copy"] = False
        capsule = self._array.__dlpack__(**options)
        tensor, versioned = tensor_in_capsule(capsule), _versioned_in(capsule)
        self.made, self.versioned = True, versioned is not None
        if versioned is not None and versioned.flags & _IS_COPIED:
            raise BufferError("its capsule holds a copy")
        if tensor is not None:
            if tensor.data is None and math.prod(tensor.shape[:tensor.ndim]):
                raise BufferError("it has a shape and no memory")
            self.dtype = _FOREIGN.get((tensor.dtype.code, tensor.dtype.bits)) if tensor.dtype.lanes == 1 else None
            if self.dtype is not None:
                tensor.dtype.code = _UNSIGNED      # the capsule is ours: each call makes a new one
        return capsule


def _by_dlpack(value: Any) -> Array | NotTaken:
    library = _library_of(value)
    if library is _LIBRARIES["torch"]:
        problem = _torch_problem(value)
        if problem is not None:
            return problem
    try:
        device, number = value.__dlpack_device__()
    except ValueError:     # PyTorch's meta device, which DLPack does not know
        return _elsewhere(value, str(getattr(value, "device", "a device that DLPack does not know")))
    if device not in _HOST:
        return _elsewhere(value, f"{_DEVICES.get(int(device), f'device type {int(device)}')}:{int(number)}")
    offered = _AsIntegers(value)
    try:
        array: Array = np.from_dlpack(offered)
    except RuntimeError as problem:      # as NumPy says of a capsule's dtype
        if not offered.made:
            raise
        return NotTaken("an array of a dtype that NumPy and ml_dtypes do not have", f"{kind_of(value)} of {getattr(value, 'dtype', '?')}",
                        "a dtype of DType", "cast it first, to f32 or bf16", notes=(_first_line(problem),))
    if library is not None and not library.writable:
        array.flags.writeable = False
    elif library is not None and not offered.versioned and not array.flags.writeable:
        array = np.asarray(_Writable(array))
    return array if offered.dtype is None else array.view(offered.dtype.np)


class _Writable:
    """Memory of a library whose arrays may be written, from a capsule that cannot say so: NumPy takes such a capsule as read-only."""

    def __init__(self, array: Array) -> None:
        self._array = array      # keeps the memory alive
        self.__array_interface__ = {**array.__array_interface__, "data": (_address(array), False)}


def _torch_problem(tensor: Any) -> NotTaken | None:
    """Return what a tensor of PyTorch needs before its memory can be used: `__dlpack__` refuses some of these in words of its own.

    A tensor with the negative bit is handed out as if the bit were not set, so its numbers would have the wrong sign.
    """
    if getattr(tensor, "requires_grad", False) is True:
        return NotTaken("a tensor that requires gradients", kind_of(tensor), "a tensor outside of any graph of gradients",
                        "x.detach(), or torch.no_grad() around the call")
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        return NotTaken("a tensor without strides", f"{kind_of(tensor)} of {layout}", "a dense tensor: torch.strided", "x.to_dense()")
    if getattr(tensor, "is_quantized", False) is True:
        return NotTaken("a quantized tensor", kind_of(tensor), "a tensor of plain numbers", "x.int_repr(), and x.q_scale() as a number")
    for question, answer in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        asked = getattr(tensor, question, None)
        if asked is not None and asked() is True:
            return NotTaken(f"a tensor whose memory holds other numbers, as {question}() says", kind_of(tensor), "the numbers themselves",
                            f"x.{answer}()")
    return None

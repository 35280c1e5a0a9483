"""Define tensors in global memory and views of them, as the user handles them.

A `Tensor` wraps an array and never copies it. Indexing gives a `TensorView`: an index picks a position, a slice cuts a dimension. Picking
every dimension gives a scalar that is read when the workload's tasks are made.

>>> X = Tensor(np.zeros((4, 16, 128), np.float32), name="X")
>>> X[1, 0:8]
TensorView(X[1, :8], shape=(8, 128), f32)

`Injective` and `Monotone` declare contracts of index tensors, on which checks rely; every bound array is checked against them.
`Tensor.from_dlpack` wraps arrays of other libraries. NumPy cannot read bf16 and fp8 capsules, so these are presented as unsigned integers
of their width and viewed as their dtype afterwards. Source: DLPack 1.1, dlpack.h: DLTensor, DLManagedTensor, DLManagedTensorVersioned.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn, Protocol, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from pto_wsp.calls import user_call, user_calls
from pto_wsp.errors import ArgumentKindError, TensorDataError, UnknownNameError, ValueUseError, ViewBoundsError, ViewIndexError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType, DTypeLike
from pto_wsp.ir.layout import Contract, Layout, TensorRef
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Extent, Shape, Symbolic, as_scalar, has_scalar, tensors_read
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, Step, View, ViewDim, declared, place_of, print_view
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest


# -- indexing ----------------------------------------------------------------------------------------------------------
def pick(view: View, dim: int, entry: object) -> View:
    """Return the view at one position of a dimension, which the result no longer has.

    Raises: T301 for a constant out of range, T302 for a value that is not an index.
    """
    extent = place_of(view).dims[dim].extent
    index = _from_end(_index(entry), extent)
    _check_constant(view, dim, index, extent, entry, below=True)
    return View(view.tensor, (*view.steps, Pick(dim, index)))


def cut(view: View, dim: int, entry: slice) -> View:
    """Return the view of a slice of a dimension.

    Raises: T301 for a constant out of range or a slice that ends before it starts, T302 for a value that is not an index or step.
    """
    extent = place_of(view).dims[dim].extent
    step = 1 if entry.step is None else entry.step
    if not isinstance(step, int) or isinstance(step, bool) or step < 1:
        raise ViewIndexError("a slice's step is a whole number >= 1", here(), found=repr(step))
    start = s.Const(0) if entry.start is None else _from_end(_index(entry.start), extent)
    stop = extent if entry.stop is None else _from_end(_index(entry.stop), extent)
    if start == s.Const(0) and stop == extent and step == 1:
        return view
    _check_constant(view, dim, start, extent, entry.start, below=False)
    _check_constant(view, dim, stop, extent, entry.stop, below=False)
    span = declared(s.sub(stop, start))
    if isinstance(span, s.Const) and int(span.value) < 0:
        raise ViewBoundsError(f"the slice of `{print_view(view)}` ends before it starts", here(),
                              found=f"{print_scalar(start)}:{print_scalar(stop)}")
    return View(view.tensor, (*view.steps, Cut(dim, start, stop, step)))


def element(view: View) -> s.Scalar:
    """Return the scalar that reads the only element of a rank-0 view.

    Raises: T302 for an element of a slice or of a reshaped view.
    """
    tensor = view.tensor
    axes: list[tuple[int, s.Scalar, int]] = [(k, s.Const(0), 1) for k in range(tensor.rank)]
    index: list[s.Scalar] = [s.Const(0)] * tensor.rank
    cut: set[int] = set()
    for step in view.steps:
        match step:
            case Pick(dim, position):
                axis, start, by = axes.pop(dim)
                if axis in cut and not isinstance(position, s.Const):
                    raise ViewIndexError("an element is read from the tensor itself, not from a slice of it", here(),
                                         found=f"`{print_view(view)}`", help="index the tensor, adding where the slice starts")
                index[axis] = s.add(start, s.mul(position, s.Const(by)))
            case Cut(dim, start_at, _, by_now):
                axis, start, by = axes[dim]
                cut.add(axis)
                axes[dim] = (axis, s.add(start, s.mul(start_at, s.Const(by))), by * by_now)
            case Permute(order):
                axes = [axes[k] for k in order]
            case Clip():
                cut.update(axis for axis, _, _ in axes)
            case Reshape():
                raise ViewIndexError("an element is read from the tensor itself, not from a reshaped view", here(),
                                     help="index the tensor before reshape()")
    return s.Element(tensor, tuple(index))


def _from_end(index: s.Scalar, extent: s.Scalar) -> s.Scalar:
    return s.add(extent, index) if isinstance(index, s.Const) and int(index.value) < 0 else index


def _index(entry: object) -> s.Scalar:
    try:
        node = as_scalar(entry)
    except ArgumentKindError:
        if has_scalar(entry):
            raise   # a view raises its own error
        node = None
    if node is None or not s.scalar_dtype(node).is_integer:
        raise ViewIndexError("this is not an index", here(), found=f"{type(entry).__name__}: {entry!r:.60}",
                             expected="an int, a loop variable, an integer scalar expression, a slice or ...")
    return node


def _check_constant(view: View, dim: int, index: s.Scalar, extent: s.Scalar, written: object, *, below: bool) -> None:
    known, limit = declared(index), declared(extent)
    if not isinstance(known, s.Const) or not isinstance(limit, s.Const):
        return
    top = int(limit.value) - below
    if not 0 <= int(known.value) <= top:
        raise ViewBoundsError(f"index {print_scalar(as_scalar(written))} is outside dimension {dim} of `{print_view(view)}`", here(),
                              expected=f"0 .. {top}" if top >= 0 else "nothing: the dimension is empty",
                              found=str(known.value), help="slices never clip in silence; .clip(...) keeps what is there"
                              if not below else None)


# -- DLPack ------------------------------------------------------------------------------------------------------------
_UNSIGNED = 1
_CODES: Mapping[tuple[int, int], DType] = MappingProxyType({(4, 16): DType.BF16, (10, 8): DType.FP8E4M3, (12, 8): DType.FP8E5M2})


class _DlpackDType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DlpackTensor(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", _DlpackDType))


class _Versioned(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _DlpackTensor))


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


class _AsIntegers:
    """Offers an array's memory to NumPy, with bf16 and fp8 elements as unsigned integers; `dtype`: their real dtype."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.dtype: DType | None = None

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options: object) -> Any:
        capsule = self._array.__dlpack__(**options)
        tensor = tensor_in_capsule(capsule)
        if tensor is not None and tensor.dtype.lanes == 1:
            self.dtype = _CODES.get((tensor.dtype.code, tensor.dtype.bits))
            if self.dtype is not None:
                tensor.dtype.code = _UNSIGNED      # the capsule is ours: each call makes a new one
        return capsule


def tensor_in_capsule(capsule: object) -> _DlpackTensor | None:
    """Return the tensor in a capsule that nobody has taken, None for another one."""
    if _is_valid(capsule, b"dltensor_versioned"):
        whole = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        return _DlpackTensor.from_address(ctypes.addressof(whole) + _Versioned.tensor.offset)
    if _is_valid(capsule, b"dltensor"):
        return _DlpackTensor.from_address(_pointer(capsule, b"dltensor"))
    return None


def from_dlpack(array: Any) -> npt.NDArray[Any]:
    """Return an array in host memory as a NumPy array, without a copy.

    Raises: AttributeError, TypeError, BufferError or RuntimeError for an object that offers no host memory.
    """
    offered = _AsIntegers(array)
    elements: npt.NDArray[Any] = np.from_dlpack(offered)
    return elements if offered.dtype is None else elements.view(offered.dtype.np)


# -- tensors and views -------------------------------------------------------------------------------------------------
MAX_RANK = 8
_ids = itertools.count()
_watcher: ContextVar[Watcher | None] = ContextVar("pto_wsp_tensors_watcher", default=None)
_live: WeakValueDictionary[int, Tensor] = WeakValueDictionary()   # an element's scalar refers to its tensor by id

Item: TypeAlias = object   # an int, a symbolic scalar, a slice, `...`, or a tuple of these


class Body(Protocol):
    """A body that a tensor may belong to, until the body is closed."""

    closed: bool


@dataclass(frozen=True, slots=True)
class Watcher:
    """The callbacks of a trace: each Tensor.empty made, and each dimension whose extent is used as a number."""

    made: Callable[[Tensor], None]
    read: Callable[[TensorRef, int], None]


@contextmanager
def watch_tensors(made: Callable[[Tensor], None], read: Callable[[TensorRef, int], None]) -> Iterator[None]:
    """Install the callbacks for the duration of a `with` block; `made` may set `made_in`."""
    token = _watcher.set(Watcher(made, read))
    try:
        yield
    finally:
        _watcher.reset(token)


@user_calls(leave_out=("__init__",))
class TensorView:
    """A part of a tensor: shape, dtype, and further indexing. Slices never clip silently; `clip` clips explicitly."""

    __slots__ = ("holds", "owner", "view")
    __array_ufunc__ = None

    def __init__(self, owner: Tensor, view: View, holds: tuple[object, ...] = ()) -> None:
        self.owner = owner
        self.view = view
        self.holds = holds   # the tensors that the indices read, kept alive

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.view.tensor.dtype

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def dims(self) -> tuple[ViewDim, ...]:
        """Extent, stride and limit of each dimension, as scalar expressions."""
        return place_of(self.view).dims

    @property
    def shape(self) -> tuple[int | Symbolic, ...]:
        """The extents: numbers if the declared shape determines them, otherwise scalars known at run time."""
        extents = [dim.extent for dim in self.dims]
        values = tuple(int(e.value) if isinstance(e, s.Const) else Symbolic(e) for e in map(declared, extents))
        watcher = _watcher.get()
        if watcher is None:
            return values
        return Shape(Extent.of(n, partial(_heard, watcher, extent)) if isinstance(n, int) else n
                     for n, extent in zip(values, extents, strict=True))

    @property
    def T(self) -> TensorView:
        """The view with its dimensions reversed."""
        return self._with(Permute(tuple(reversed(range(self.rank)))))

    def __getitem__(self, item: Item) -> Any:
        """Index with ints, loop variables, scalar expressions, slices and `...`.

        Returns a `TensorView`, or a scalar (`Symbolic`) if no dimension is left.
        Raises: T301 for a constant out of range, T302 for too many or invalid indices.
        """
        items = item if isinstance(item, tuple) else (item,)
        rank = self.rank
        n_indices = sum(1 for entry in items if entry is not Ellipsis)
        if n_indices > rank or sum(1 for entry in items if entry is Ellipsis) > 1:
            raise ViewIndexError(f"`{print_view(self.view)}` has {rank} dimension{'s' * (rank != 1)}", here(),
                                 expected=f"at most {rank} indices and one ...", found=f"{n_indices} indices")
        view, dim = self.view, 0
        for entry in items:
            if entry is Ellipsis:
                dim += rank - n_indices
            elif isinstance(entry, slice):
                view, dim = cut(view, dim, entry), dim + 1
            else:
                view = pick(view, dim, entry)
        parts = (part for entry in items for part in ((entry.start, entry.stop) if isinstance(entry, slice) else (entry,)))
        result = TensorView(self.owner, view, (*self.holds, *tensors_read(*parts)))
        return result if result.rank or n_indices == 0 else Symbolic(element(view), (self.owner, *result.holds))

    def item(self, *index: object) -> Symbolic:
        """Return one element as a scalar, read when the workload's tasks are made; takes one index per dimension."""
        if len(index) != self.rank:
            raise ViewIndexError(f"item() of `{print_view(self.view)}` takes one index a dimension", here(),
                                 expected=f"{self.rank} indices", found=f"{len(index)}")
        picked = self[tuple(index)]
        if not isinstance(picked, Symbolic):
            raise ViewIndexError("item() takes indices, not slices", here(), found=repr(index))
        return picked

    def slice(self, start: object, stop: object) -> TensorView:
        """Return positions start .. stop-1 of the first dimension."""
        part: TensorView = self[start:stop]
        return part

    def clip(self, *limits: int) -> TensorView:
        """Return at most `limits` positions of each dimension from its start; the valid extents are min(limit, extent).

        The result binds to a Tile of exactly these limits; a shorter last block is the tile's valid part.
        """
        whole = tuple(_whole(n) for n in limits)
        if len(limits) != self.rank or not all(n is not None and n >= 1 for n in whole):
            raise ViewIndexError("clip takes one whole number >= 1 a dimension", here(), expected=f"{self.rank} numbers",
                                 found=repr(limits))
        return self._with(Clip(tuple(n for n in whole if n is not None)))

    def reshape(self, *shape: int | Sequence[int]) -> TensorView:
        """Return the elements in another shape; one extent may be -1, for the rest. The view must be contiguous with known extents."""
        new_shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        extents = [declared(dim.extent) for dim in self.dims]
        strides = [declared(dim.stride) for dim in self.dims]
        sizes = [int(e.value) for e in extents if isinstance(e, s.Const)]
        steps = [int(e.value) for e in strides if isinstance(e, s.Const)]
        count = math.prod(sizes)
        if len(sizes) != self.rank or len(steps) != self.rank or tuple(steps) != _like_contiguous(sizes, steps):
            raise ViewIndexError(f"`{print_view(self.view)}` is not contiguous with known extents, so it has no other shape", here(),
                                 help="reshape the tensor first and slice then, or copy the array")
        whole = [n for entry in new_shape if (n := _whole(entry)) is not None]
        if len(whole) != len(new_shape):
            raise ViewIndexError("reshape takes whole numbers", here(), found=repr(new_shape))
        if whole.count(-1) == 1:
            rest = math.prod(n for n in whole if n != -1)
            whole[whole.index(-1)] = count // rest if rest and count % rest == 0 else -1
        if any(n < 0 for n in whole) or math.prod(whole) != count or len(whole) > MAX_RANK:
            raise ViewIndexError(f"{count} elements do not fit the shape", here(), expected=f"a product of {count}",
                                 found=str(new_shape))
        return self._with(Reshape(tuple(whole)))

    def __scalar__(self) -> s.Scalar:
        if self.rank == 0:
            return element(self.view)
        raise ValueUseError(f"`{print_view(self.view)}` is a view with {self.rank} dimensions, not a scalar", here(),
                            help="pick one element: one index a dimension")

    def _with(self, step: Step) -> TensorView:
        return TensorView(self.owner, View(self.view.tensor, (*self.view.steps, step)), self.holds)

    def __setitem__(self, item: object, value: object) -> NoReturn:
        raise ViewIndexError("a tensor is written by kernels, not by assignment", here(),
                             help="pto.store(out, value) in a kernel; or change the array that it wraps")

    def __bool__(self) -> NoReturn:
        raise ValueUseError(f"`{print_view(self.view)}` is neither true nor false", here(),
                            help="pick one element for a scalar, or compare in a kernel")

    def _no_arithmetic(self, other: object) -> NoReturn:
        raise ValueUseError("tensors are computed on in kernels, tile by tile", here(),
                            found=f"an operator on `{print_view(self.view)}`",
                            help="bind the tensor to a kernel's parameter; for arrays at once use NumPy")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_arithmetic
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __matmul__ = __rmatmul__ = __pow__ = __rpow__ = _no_arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = _no_arithmetic

    def __iter__(self) -> NoReturn:
        raise ViewIndexError(f"`{print_view(self.view)}` cannot be looped over", here(),
                             help="loop over an axis, `for b in P(batch)`, and index with its variable")

    def __len__(self) -> int:
        first = self.shape[0] if self.rank else 0
        if isinstance(first, Symbolic):
            raise ViewIndexError("the length is known only at run time", here(), help="use .shape[0]")
        return first

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        near = nearest(name, [known for known in dir(type(self)) if not known.startswith("_")])
        raise UnknownNameError(f"a {type(self).__name__} has no `{name}`", here(), expected="shape, dtype, indices and slices",
                               help=f"did you mean .{near}?" if near else "a kernel computes on its elements; Tensor.data is the array")

    def __repr__(self) -> str:
        extents = ", ".join(print_scalar(n.node) if isinstance(n, Symbolic) else str(n) for n in self.shape)
        comma = "," * (self.rank == 1)
        return f"{type(self).__name__}({print_view(self.view)}, shape=({extents}{comma}), {self.dtype})"


@user_calls()
class Tensor(TensorView):
    """An array in global memory, wrapped and not copied: results are written to the given array."""

    __slots__ = ("__weakref__", "data", "intermediate", "made_in")

    def __init__(self, data: npt.NDArray[Any] | None = None, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None,
                 name: str | None = None) -> None:
        """Wrap `data`. If given, `shape` and `dtype` must match the array; without data they declare what a run binds.

        Raises: D101 for a mismatch, or for data that is not an array.
        """
        given, dtype = dtype, DType.of(dtype)
        if given is not None and dtype is None:
            raise TensorDataError("a Tensor's dtype is a DType", here(), expected="a member of DType", found=repr(given))
        check_name(name)
        if data is None:
            if shape is None or dtype is None:
                raise TensorDataError("a Tensor needs data, or a shape and a dtype to bind later", here(),
                                      help="Tensor(array), or Tensor(shape=(4, 16), dtype=DType.F32)")
            extents = _extents(shape)
            found, layout = dtype, Layout.contiguous(extents)
        else:
            extents, found, layout = _describe(data, shape, dtype)
        if len(extents) > MAX_RANK:
            raise TensorDataError(f"a Tensor has at most {MAX_RANK} dimensions", here(), found=str(extents))
        self.data = data
        self.intermediate = False
        self.made_in: Body | None = None     # for a Tensor.empty: the body that allocates it in each iteration
        super().__init__(self, View(TensorRef(next(_ids), extents, found, name or "", layout)))
        _live[self.ref.id] = self

    def __class_getitem__(cls, item: object) -> NoReturn:
        raise ArgumentKindError("Tensor takes no type in brackets", here(), found=f"Tensor[{item!r:.60}]",
                                expected="Tensor(array), or In[Tensor] as the annotation of a kernel's parameter",
                                help="a Tensor parameter takes the dtype and the shape of the view that is bound")

    def __copy__(self) -> Tensor:
        return self._again(self.data)

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        return self._again(None if self.data is None else self.data.copy())

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (self.data, self.ref.shape, self.dtype, self.ref.name, self.intermediate, self.ref.contracts)

    def _again(self, data: npt.NDArray[Any] | None) -> Tensor:
        """Return a new tensor with this one's attributes; a copy needs an id of its own."""
        return _unpickle(data, self.ref.shape, self.dtype, self.ref.name, self.intermediate, self.ref.contracts)

    @property
    def ref(self) -> TensorRef:
        """The value of this tensor in the IR."""
        return self.view.tensor

    @property
    def name(self) -> str:
        """The given name, or an empty string."""
        return self.ref.name

    def promise(self, contract: Contract) -> None:
        """Declare a contract of the elements; it is checked when an array is bound."""
        if not isinstance(contract, Contract):
            raise TensorDataError("a Tensor keeps no such contract", here(), expected="Contract.INJECTIVE or Contract.MONOTONE",
                                  found=repr(contract), help="Injective(table) and Monotone(offsets) declare them")
        if contract not in self.ref.contracts:
            self.view = View(replace(self.ref, contracts=(*self.ref.contracts, contract)))

    @staticmethod
    def empty(shape: Sequence[int], dtype: DTypeLike, name: str | None = None) -> Tensor:
        """Return a tensor for intermediate results: memory of the program, undefined before the first write.

        In a loop's body, a branch or a process of a workload, a new tensor is allocated in each iteration.
        """
        tensor = Tensor(None, shape, dtype, name)
        tensor.intermediate = True
        watcher = _watcher.get()
        if watcher is not None:
            watcher.made(tensor)
        if tensor.made_in is None:
            tensor.data = np.empty(tensor.ref.shape, tensor.dtype.np)
        return tensor

    def rename(self, name: str) -> None:
        """Name a tensor that has no name."""
        check_name(name)
        self.view = View(replace(self.ref, name=self.ref.name or name))

    @staticmethod
    def from_dlpack(array: Any, name: str | None = None) -> Tensor:
        """Wrap an array of another library (PyTorch, JAX, …) in host memory, without a copy."""
        try:
            wrapped = from_dlpack(array)
        except (AttributeError, TypeError, BufferError, RuntimeError) as problem:
            raise TensorDataError("this object offers no host memory through DLPack", here(), found=kind_of(array),
                                  notes=(str(problem),)) from None
        return Tensor(wrapped, name=name)


def _unpickle(data: npt.NDArray[Any] | None, shape: tuple[int, ...], dtype: DType, name: str, intermediate: bool,
              contracts: tuple[Contract, ...] = ()) -> Tensor:
    tensor = Tensor(data, shape, dtype, name or None)
    tensor.intermediate = intermediate
    for contract in contracts:
        tensor.promise(contract)
    return tensor


def kind_of(value: object) -> str:
    """Return the name of a value's class, with its module unless it is a builtin; "nothing" for None."""
    kind = type(value)
    return "nothing" if value is None else kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def array_advice(value: object, place: str) -> str | None:
    """Return how to pass another library's array; None for a value that is not an array. `place`: text with {} for the value."""
    if isinstance(value, np.ma.MaskedArray):
        return f"its mask would be lost: {place.format('x.filled(0)')} gives the masked elements a number"
    if hasattr(type(value), "__dlpack__"):
        return f"wrap it without a copy: {place.format('Tensor.from_dlpack(x)')}"
    if hasattr(type(value), "__array__") or isinstance(value, list | tuple | memoryview):
        return f"make an array of it: {place.format('np.asarray(x)')}"
    return None


def live_tensor(tensor_id: int) -> Tensor | None:
    """Return the tensor of that id; None if it no longer exists."""
    return _live.get(tensor_id)


def _describe(data: object, shape: Sequence[int] | None, dtype: DType | None) -> tuple[tuple[int, ...], DType, Layout]:
    if not isinstance(data, np.ndarray):
        raise TensorDataError("a Tensor wraps a NumPy array", here(), expected="numpy.ndarray", found=kind_of(data),
                              help="np.asarray(...) makes one; Tensor.from_dlpack(...) wraps PyTorch and JAX arrays")
    if isinstance(data, np.ma.MaskedArray):
        raise TensorDataError("a Tensor has no mask, so that of the array would be lost", here(), expected="numpy.ndarray",
                              found=kind_of(data), help="array.filled(0) gives the masked elements a number; array.mask is a Tensor of its "
                              "own, of bools")
    found = DType.from_numpy(data.dtype)
    if dtype is not None and found is not dtype:
        raise TensorDataError("the array's dtype is not what the Tensor says", here(), expected=f"{dtype}, as dtype= says",
                              found=f"{found} array", help=f"array.astype(np.{dtype.np.name}), or dtype=DType.{found.name}")
    if shape is not None and _extents(shape) != data.shape:
        raise TensorDataError("the array's shape is not what the Tensor says", here(), expected=f"{_extents(shape)}, as shape= says",
                              found=f"{data.shape}")
    if any(stride % data.itemsize for stride in data.strides):
        raise TensorDataError("the array's strides are not whole elements", here(), found=f"strides {data.strides} bytes",
                              help="np.ascontiguousarray(...) makes a copy that fits")
    strides = tuple(stride // data.itemsize for stride in data.strides)
    if data.size and math.prod(data.shape[-1:]) == 1 and data.ndim:
        strides = (*strides[:-1], 1)   # NumPy does not define the stride of a dimension of extent 1
    return data.shape, found, Layout(strides)


def _heard(watcher: Watcher, extent: s.Scalar) -> None:
    """Report to a running trace the dimensions of tensors on which an extent depends."""
    if _watcher.get() is watcher:
        for leaf in s.leaves(extent):
            if isinstance(leaf, s.DimOf):
                watcher.read(leaf.tensor, leaf.dim)


def _whole(value: object) -> int | None:
    """Return a Python or NumPy integer as an int; None for any other value, including bools."""
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def _extents(shape: object) -> tuple[int, ...]:
    entries = tuple(shape) if isinstance(shape, Iterable) else None
    extents = tuple(n for entry in entries or () if (n := _whole(entry)) is not None)
    if entries is None or len(extents) != len(entries):
        raise TensorDataError("a shape is a sequence of whole numbers", here(), found=repr(shape))
    if any(n < 0 for n in extents):
        raise TensorDataError("a shape has no negative extents", here(), found=str(extents))
    if math.prod(extents) >= 1 << 62:
        raise TensorDataError("a tensor of this shape does not fit any memory", here(), found=str(extents))
    return extents


def _like_contiguous(sizes: Sequence[int], steps: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous view, with those of dimensions of extent 1 unchanged."""
    if 0 in sizes:
        return tuple(steps)   # an empty view accepts any strides
    dense = Layout.contiguous(tuple(sizes)).strides
    return tuple(step if size == 1 else want for size, step, want in zip(sizes, steps, dense, strict=True))


def check_name(name: object) -> None:
    """Check that a Tensor may have this name, or none.

    Raises: D101.
    """
    if name is not None and (not isinstance(name, str) or not name.isprintable()):
        raise TensorDataError("a Tensor's name is printable text", here(), expected='text, e.g. name="X"', found=ascii(name))


# -- contracts ---------------------------------------------------------------------------------------------------------
@user_call()
def Injective(table: Tensor | np.ndarray) -> Tensor:
    """Declare that no two nonnegative elements of `table` are equal, and return it as a Tensor; negative elements are padding.

    Raises: T205 for a value that is not a whole tensor of integers. A run that binds an array with two equal elements ends with R110.
    """
    return _promised("Injective", table, Contract.INJECTIVE)


@user_call()
def Monotone(offsets: Tensor | np.ndarray) -> Tensor:
    """Declare that the elements of `offsets` never decrease along the last dimension, and return it as a Tensor.

    Raises: T205 for a value that is not a whole tensor of integers. A run that binds a decreasing array ends with R110.
    """
    return _promised("Monotone", offsets, Contract.MONOTONE)


def _promised(name: str, given: object, contract: Contract) -> Tensor:
    tensor = Tensor(given) if isinstance(given, np.ndarray) else given
    if not isinstance(tensor, Tensor) or not tensor.dtype.is_integer or tensor.rank == 0:
        description = f"{tensor!r}" if isinstance(tensor, TensorView) else f"{type(given).__name__}: {given!r:.60}"
        raise ArgumentKindError(f"{name} takes a whole tensor of indices", here(), found=description,
                                expected="a Tensor (or array) of integers with one dimension or more")
    tensor.promise(contract)
    return tensor

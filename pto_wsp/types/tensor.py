"""Tensors in global memory and views of them, as the user handles them.

A `Tensor` wraps an array and never copies it. Indexing gives a `TensorView`; picking every dimension gives a scalar that is read
when the workload's tasks are made.

>>> X = Tensor(np.zeros((4, 16, 128), np.float32), name="X")
>>> X[1, 0:8]
TensorView(X[1, :8], shape=(8, 128), f32)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, Protocol, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from pto_wsp.errors import ArgumentKindError, TensorDataError, ViewIndexError
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.brackets import cut, element, pick
from pto_wsp.types.dlpack import from_dlpack
from pto_wsp.types.dtype import DType
from pto_wsp.types.extent import Extent, Shape
from pto_wsp.types.layout import Contract, Layout, TensorRef
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import Symbolic, held_by
from pto_wsp.types.view import Clip, Permute, Reshape, Step, View, ViewDim, declared, place_of, print_view
from pto_wsp.values import dataclass

MAX_RANK = 8
_ids = itertools.count()
_watcher: ContextVar[Watcher | None] = ContextVar("pto_wsp_tensors_watcher", default=None)
_live: WeakValueDictionary[int, Tensor] = WeakValueDictionary()   # an element's scalar knows its tensor by id alone

Item: TypeAlias = object   # an int, a symbolic scalar, a slice, ... or a tuple of them


class Body(Protocol):
    """What a tensor may belong to, until it is closed."""

    closed: bool


@dataclass(frozen=True, slots=True)
class Watcher:
    """What a trace hears of tensors: each Tensor.empty that is made, and each dimension whose extent is computed with."""

    made: Callable[[Tensor], None]
    read: Callable[[TensorRef, int], None]


@contextmanager
def watch_tensors(made: Callable[[Tensor], None], read: Callable[[TensorRef, int], None]) -> Iterator[None]:
    """Tell of tensors for the length of a `with`; `made` may set `made_in`."""
    token = _watcher.set(Watcher(made, read))
    try:
        yield
    finally:
        _watcher.reset(token)


class TensorView:
    """A part of a tensor: shape, dtype, and further indexing. Slices never clip in silence; `clip` says so."""

    __slots__ = ("holds", "owner", "view")
    __array_ufunc__ = None

    def __init__(self, owner: Tensor, view: View, holds: tuple[object, ...] = ()) -> None:
        self.owner = owner
        self.view = view
        self.holds = holds   # the tensors that its indices read

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
        """The extents: numbers where the declared shape tells, else scalars known at run time."""
        extents = [dim.extent for dim in self.dims]
        known = tuple(int(e.value) if isinstance(e, s.Const) else Symbolic(e) for e in map(declared, extents))
        watcher = _watcher.get()
        if watcher is None:
            return known
        return Shape(Extent.of(n, partial(_heard, watcher, extent)) if isinstance(n, int) else n
                     for n, extent in zip(known, extents, strict=True))

    @property
    def T(self) -> TensorView:
        """The view with its dimensions reversed."""
        return self._with(Permute(tuple(reversed(range(self.rank)))))

    def __getitem__(self, item: Item) -> Any:
        """Index with ints, loop variables, scalar expressions, slices and `...`.

        Returns a `TensorView`, or a scalar (`Symbolic`) when no dimension is left.
        Raises: T301 where a constant lies outside, T302 for too many or meaningless indices.
        """
        items = item if isinstance(item, tuple) else (item,)
        rank = self.rank
        given = sum(1 for entry in items if entry is not Ellipsis)
        if given > rank or sum(1 for entry in items if entry is Ellipsis) > 1:
            raise ViewIndexError(f"`{print_view(self.view)}` has {rank} dimension{'s' * (rank != 1)}", here(),
                                 expected=f"at most {rank} indices and one ...", found=f"{given} indices")
        view, dim = self.view, 0
        for entry in items:
            if entry is Ellipsis:
                dim += rank - given
            elif isinstance(entry, slice):
                view, dim = cut(view, dim, entry), dim + 1
            else:
                view = pick(view, dim, entry)
        parts = (part for entry in items for part in ((entry.start, entry.stop) if isinstance(entry, slice) else (entry,)))
        result = TensorView(self.owner, view, (*self.holds, *held_by(*parts)))
        return result if result.rank or given == 0 else Symbolic(element(view), (self.owner, *result.holds))

    def item(self, *index: object) -> Symbolic:
        """Return one element as a scalar, read when the workload's tasks are made; one index a dimension."""
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
        """Return at most `limits` of each dimension, from its start: the valid part is min(limit, what is there).

        The result binds to a Tile of exactly the limits; a shorter last block is its valid part.
        """
        whole = tuple(_whole(n) for n in limits)
        if len(limits) != self.rank or not all(n is not None and n >= 1 for n in whole):
            raise ViewIndexError("clip takes one whole number >= 1 a dimension", here(), expected=f"{self.rank} numbers",
                                 found=repr(limits))
        return self._with(Clip(tuple(n for n in whole if n is not None)))

    def reshape(self, *shape: int | Sequence[int]) -> TensorView:
        """Return the elements in another shape; -1 once is what is left. The view must be contiguous, of known extents."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        extents = [declared(dim.extent) for dim in self.dims]
        strides = [declared(dim.stride) for dim in self.dims]
        sizes = [int(e.value) for e in extents if isinstance(e, s.Const)]
        steps = [int(e.value) for e in strides if isinstance(e, s.Const)]
        count = math.prod(sizes)
        if len(sizes) != self.rank or len(steps) != self.rank or tuple(steps) != _like_contiguous(sizes, steps):
            raise ViewIndexError(f"`{print_view(self.view)}` is not contiguous with known extents, so it has no other shape", here(),
                                 help="reshape the tensor first and slice then, or copy the array")
        whole = [n for entry in wanted if (n := _whole(entry)) is not None]
        if len(whole) != len(wanted):
            raise ViewIndexError("reshape takes whole numbers", here(), found=repr(wanted))
        if whole.count(-1) == 1:
            rest = math.prod(n for n in whole if n != -1)
            whole[whole.index(-1)] = count // rest if rest and count % rest == 0 else -1
        if any(n < 0 for n in whole) or math.prod(whole) != count or len(whole) > MAX_RANK:
            raise ViewIndexError(f"{count} elements do not fit the shape", here(), expected=f"a product of {count}",
                                 found=str(wanted))
        return self._with(Reshape(tuple(whole)))

    def __scalar__(self) -> s.Scalar:
        if self.rank == 0:
            return element(self.view)
        raise ArgumentKindError(f"`{print_view(self.view)}` is a view with {self.rank} dimensions, not a scalar", here(),
                                help="pick one element: one index a dimension")

    def _with(self, step: Step) -> TensorView:
        return TensorView(self.owner, View(self.view.tensor, (*self.view.steps, step)), self.holds)

    def __setitem__(self, item: object, value: object) -> NoReturn:
        raise ViewIndexError("a tensor is written by kernels, not by assignment", here(),
                             help="pto.store(out, value) in a kernel; or change the array that it wraps")

    def __bool__(self) -> NoReturn:
        raise ArgumentKindError(f"`{print_view(self.view)}` is neither true nor false", here(),
                                help="pick one element for a scalar, or compare in a kernel")

    def _no_arithmetic(self, other: object) -> NoReturn:
        raise ArgumentKindError("tensors are computed on in kernels, tile by tile", here(),
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

    def __repr__(self) -> str:
        extents = ", ".join(print_scalar(n.node) if isinstance(n, Symbolic) else str(n) for n in self.shape)
        comma = "," * (self.rank == 1)
        return f"{type(self).__name__}({print_view(self.view)}, shape=({extents}{comma}), {self.dtype})"


class Tensor(TensorView):
    """An array in global memory, wrapped and not copied: results land in the array given."""

    __slots__ = ("__weakref__", "data", "intermediate", "made_in")

    def __init__(self, data: npt.NDArray[Any] | None = None, shape: Sequence[int] | None = None, dtype: DType | None = None,
                 name: str | None = None) -> None:
        """Wrap `data`. `shape` and `dtype`, where given, must be those of the array; without data they declare what a run binds.

        Raises: D101 when the array is not what shape and dtype say, or is no array.
        """
        if dtype is not None and not isinstance(dtype, DType):
            raise TensorDataError("a Tensor's dtype is a DType", here(), expected="a member of DType", found=repr(dtype))
        if name is not None and (not isinstance(name, str) or not name.isprintable()):
            raise TensorDataError("a Tensor's name is printable text", here(), expected='text, e.g. name="X"', found=ascii(name))
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
        self.made_in: Body | None = None     # of a Tensor.empty: the body that makes it, each time another one
        super().__init__(self, View(TensorRef(next(_ids), extents, found, name or "", layout)))
        _live[self.ref.id] = self

    def __copy__(self) -> Tensor:
        return self._again(self.data)

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        return self._again(None if self.data is None else self.data.copy())

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (self.data, self.ref.shape, self.dtype, self.ref.name, self.intermediate, self.ref.contracts)

    def _again(self, data: npt.NDArray[Any] | None) -> Tensor:
        """A tensor of its own: ids tell tensors apart, so a copy may not keep one."""
        return _unpickle(data, self.ref.shape, self.dtype, self.ref.name, self.intermediate, self.ref.contracts)

    @property
    def ref(self) -> TensorRef:
        """The value that stands for this tensor in the IR."""
        return self.view.tensor

    @property
    def name(self) -> str:
        """The name given, or an empty string."""
        return self.ref.name

    def promise(self, contract: Contract) -> None:
        """Note what the user promises of the elements; it is checked when an array is bound."""
        if contract not in self.ref.contracts:
            self.view = View(replace(self.ref, contracts=(*self.ref.contracts, contract)))

    @staticmethod
    def empty(shape: Sequence[int], dtype: DType, name: str | None = None) -> Tensor:
        """Return a tensor for intermediate results: memory of the program's own, undefined before the first write.

        Made in a loop's body, a branch or a process of a workload, it is another tensor each time control comes there.
        """
        tensor = Tensor(None, shape, dtype, name)
        tensor.intermediate = True
        watcher = _watcher.get()
        if watcher is not None:
            watcher.made(tensor)
        if tensor.made_in is None:
            tensor.data = np.empty(tensor.ref.shape, dtype.np)
        return tensor

    def rename(self, name: str) -> None:
        """Give a tensor without a name one."""
        self.view = View(replace(self.ref, name=self.ref.name or name))

    @staticmethod
    def from_dlpack(array: Any, name: str | None = None) -> Tensor:
        """Wrap an array of another library (PyTorch, JAX, …) that lies in host memory, without a copy."""
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
    """Return what a value is, with the module of its class where it is none of Python's own; "nothing" for None."""
    kind = type(value)
    return "nothing" if value is None else kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def array_advice(value: object, place: str) -> str | None:
    """Return how another library's array is given at a place, None for what is no array. `place`: with {} for the value."""
    if isinstance(value, np.ma.MaskedArray):
        return f"its mask would be lost: {place.format('x.filled(0)')} gives the masked elements a number"
    if hasattr(type(value), "__dlpack__"):
        return f"wrap it without a copy: {place.format('Tensor.from_dlpack(x)')}"
    if hasattr(type(value), "__array__") or isinstance(value, list | tuple | memoryview):
        return f"make an array of it: {place.format('np.asarray(x)')}"
    return None


def live_tensor(tensor_id: int) -> Tensor | None:
    """Return the tensor of that id while somebody holds it."""
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
        strides = (*strides[:-1], 1)   # NumPy leaves the stride of a dimension of extent 1 open
    return data.shape, found, Layout(strides)


def _heard(watcher: Watcher, extent: s.Scalar) -> None:
    """Tell a trace that is still there which dimensions of tensors an extent depends on."""
    if _watcher.get() is watcher:
        for leaf in s.leaves(extent):
            if isinstance(leaf, s.DimOf):
                watcher.read(leaf.tensor, leaf.dim)


def _whole(value: object) -> int | None:
    """Return a Python or NumPy integer as an int, None for anything else, True and False included."""
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
    """The strides of a contiguous view, keeping those of dimensions of extent 1 as they are."""
    if 0 in sizes:
        return tuple(steps)   # no element has a place, so any strides will do
    dense = Layout.contiguous(tuple(sizes)).strides
    return tuple(step if size == 1 else want for size, step, want in zip(sizes, steps, dense, strict=True))

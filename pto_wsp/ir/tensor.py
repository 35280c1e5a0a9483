"""Define tensors in global memory and views of them, as the user handles them.

A `Tensor` wraps an array and never copies it. Indexing gives a `TensorView`: an index picks a position, a slice cuts a dimension. Picking
every dimension gives a scalar that is read when the workload's tasks are made.

>>> X = Tensor(np.zeros((4, 16, 128), np.float32), name="X")
>>> X[1, 0:8]
TensorView(X[1, :8], shape=(8, 128), f32)

`Injective` and `Monotone` declare contracts of index tensors, on which checks rely; every bound array is checked against them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from inspect import Parameter, Signature
from typing import Any, NoReturn, Protocol, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from pto_wsp.calls import bind, user_calls
from pto_wsp.doors import Displayed
from pto_wsp.errors import (
    ArgumentKindError,
    LayoutShapeError,
    TensorDataError,
    TensorSignatureError,
    UnknownNameError,
    ValueUseError,
    ViewIndexError,
)
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType, DTypeLike
from pto_wsp.ir.exchange import NotTaken, array_of, capsule_of, empty_array, is_array, kind_of
from pto_wsp.ir.indexing import MAX_RANK, at_most, clip, cut, element, pick, reshape, whole_number
from pto_wsp.ir.layout import Contract, Layout, TensorRef
from pto_wsp.ir.mesh import Mesh, known_mesh, mesh_in_use
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Counted, Extent, Shape, Symbolic, as_scalar, tensors_read
from pto_wsp.ir.tensor_layout import Shard, TensorLayout, shard_bounds, shard_rows
from pto_wsp.ir.tensor_type import TensorType, tensor_type
from pto_wsp.ir.view import Cut, Permute, View, ViewDim, as_declared, declared, place_of, print_view
from pto_wsp.source import Span, here
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest

# -- tensors and views -------------------------------------------------------------------------------------------------
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

    body: Callable[[], Body | None]
    made: Callable[[Tensor], None]
    read: Callable[[TensorRef, int], None]


@contextmanager
def watch_tensors(body: Callable[[], Body | None], made: Callable[[Tensor], None],
                  read: Callable[[TensorRef, int], None]) -> Iterator[None]:
    """Install the callbacks for the duration of a `with` block. `body`: returns the body that a new Tensor.empty belongs to, if any."""
    token = _watcher.set(Watcher(body, made, read))
    try:
        yield
    finally:
        _watcher.reset(token)


@dataclass(frozen=True, slots=True)
class RankPart:
    """Whose part a view is: a rank of a mesh."""

    mesh: Mesh
    rank: s.Scalar


@user_calls(leave_out=("__init__",))
class TensorView(Displayed):
    """A part of a tensor: shape, dtype, and further indexing. Slices never clip silently; `clip` clips explicitly."""

    __slots__ = ("at", "holds", "owner", "view")

    def __init__(self, owner: Tensor, view: View, holds: tuple[object, ...] = (), at: RankPart | None = None) -> None:
        self.owner = owner
        self.view = view
        self.holds = holds   # the tensors that the indices read, kept alive
        self.at = at         # for a part that a rank of a mesh holds: which

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
        order = Permute(tuple(reversed(range(self.rank))))
        return self._with(View(self.view.tensor, (*self.view.steps, order)))

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
        result = TensorView(self.owner, view, (*self.holds, *tensors_read(*parts)), self.at)
        if result.rank or n_indices == 0:
            return result
        of_tensor = View(view.tensor, view.steps[len(self.owner.view.steps):])    # a tensor of symbolic shape begins where its array does
        return Symbolic(element(of_tensor), (self.owner, *result.holds))

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

    def clip(self, *limits: object) -> TensorView:
        """Return at most `limits` positions of each dimension from its start; the valid extents are min(limit, extent).

        A limit is a whole number >= 1, None for a dimension as it is, or a Symbol, the size of an axis or another scalar of the run:
        below 0 it counts as 0. The result binds to a Tile of exactly the numbers, those in `minimum(64, n - i * 64)` included; a shorter
        last block is the tile's valid part. A dimension whose limit has no number in it binds to any Tile that it fits in.

        Raises: T302 for anything else.
        """
        return self._with(clip(self.view, limits), limits)

    def reshape(self, *shape: int | Sequence[int]) -> TensorView:
        """Return the elements in another shape; one extent may be -1, for the rest.

        Dimensions whose extents the shape repeats stay as they are: of a size of the run, with any strides. The others must lie
        contiguously, with known extents.

        Raises: T302 for other dimensions, and for a shape of another number of elements.
        """
        entries = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return self._with(reshape(self.view, entries), entries)

    def __scalar__(self) -> s.Scalar:
        if self.rank == 0:
            return element(self.view)
        raise ValueUseError(f"`{print_view(self.view)}` is a view with {self.rank} dimensions, not a scalar", here(),
                            help="pick one element: one index a dimension")

    def _with(self, view: View, operands: Iterable[object] = ()) -> TensorView:
        return TensorView(self.owner, view, (*self.holds, *tensors_read(*operands)), self.at)

    def __setitem__(self, item: object, value: object) -> NoReturn:
        raise ViewIndexError("a tensor is written by kernels, not by assignment", here(),
                             help="pto.store(out, value) in a kernel; or change the array that it wraps")

    def __bool__(self) -> NoReturn:
        raise ValueUseError(f"`{print_view(self.view)}` is neither true nor false", here(),
                            help="pick one element for a scalar, or compare in a kernel")

    def _no_arithmetic(self, other: object, found: str = "an operator") -> NoReturn:
        raise ValueUseError("tensors are computed on in kernels, tile by tile", here(),
                            found=f"{found} on `{print_view(self.view)}`",
                            help="bind the tensor to a kernel's parameter; for arrays at once use NumPy on np.asarray(tensor)")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> NoReturn:
        self._no_arithmetic(inputs, f"np.{ufunc.__name__}")

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
    """An array in global memory, wrapped and not copied: results are written to the given array.

    `data` is its memory as a NumPy array. Other libraries read the memory without a copy, too: `torch.from_dlpack(tensor)`,
    `np.asarray(tensor)`.
    """

    __slots__ = ("__weakref__", "copied", "copies", "data", "given", "intermediate", "layout", "made_at", "made_in")

    def __init__(self, data: object = None, shape: Sequence[object] | None = None, dtype: DTypeLike | None = None,
                 name: str | None = None, layout: TensorLayout | None = None) -> None:
        """Wrap `data`, an array of NumPy, PyTorch, JAX or any library with `__dlpack__`, `__array_interface__` or `__array__`.

        If given, `shape` and `dtype` must match the array; without data they declare what a run binds. An extent may be a Symbol, the
        size of an axis, or arithmetic on them: the tensor is then the first rows of its array, as many as the extent is in the run.

        `layout`: which part of it each rank of a mesh holds; `on(rank)` is a rank's part, in place in the array.

        Raises: D101 for a mismatch, or for data that is not an array in host memory; D102 for a dtype that DType does not have; M105 for a
        layout of another number of dimensions, and for a partial one of an array.
        """
        given, dtype = dtype, DType.of(dtype)
        if given is not None and dtype is None:
            raise TensorDataError("a Tensor's dtype is a DType", here(), expected="a member of DType", found=repr(given))
        check_name(name)
        if data is None:
            if shape is None or dtype is None:
                raise TensorDataError("a Tensor needs data, or a shape and a dtype to bind later", here(),
                                      help="Tensor(array), or Tensor(shape=(4, 16), dtype=DType.F32)")
            array = None
            extents, cuts = _sizes(shape)
            found, strides = dtype, Layout.contiguous(extents)
        else:
            array = _array(data)
            _, cuts = ((), ()) if shape is None else _sizes(shape)
            extents, found, strides = _describe(array, shape, dtype)
        if len(extents) > MAX_RANK:
            raise TensorDataError(f"a Tensor has at most {MAX_RANK} dimensions", here(), found=str(extents))
        self.data: npt.NDArray[Any] | None = array
        self.given = data                    # the object that was wrapped, for callers that look for its tensor
        self.intermediate = False
        self.made_in: Body | None = None     # for a Tensor.empty: the body that allocates it in each iteration
        self.made_at: Span | None = None     # for a Tensor.empty of a workload's body, outside of its loops: the line
        self.layout = layout if layout is None else _check_layout(layout, len(extents), has_data=array is not None)
        self.copies: tuple[Mesh, Tensor] | None = None    # of a Tensor.empty that ranks hold copies of: all of them, by mesh
        self.copied: TensorLayout | None = None           # of memory for copies, one a rank: the layout of each
        super().__init__(self, View(TensorRef(next(_ids), extents, found, name or "", strides), cuts))
        _live[self.ref.id] = self

    def __class_getitem__(cls, item: object) -> TensorType:
        return tensor_type(item)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the array, for `np.asarray(tensor)`: its own memory, unless a copy or another dtype is asked for."""
        array = self._memory()
        if dtype is not None and array.dtype != np.dtype(dtype):
            if copy is False:
                raise ValueError(f"{self.dtype} is copied to be read as {np.dtype(dtype)}")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: object) -> object:
        """Return a DLPack capsule of the array, for `torch.from_dlpack(tensor)`: its own memory, of bf16 and fp8 as well."""
        return capsule_of(self._memory(), self.dtype, options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's number of the host."""
        return self._memory().__dlpack_device__()

    def _memory(self) -> npt.NDArray[Any]:
        if self.data is None:
            raise TensorDataError(f"`{self.ref.shown}` has no array to read", here(), found=repr(self),
                                  help="its array is bound by a run, execute(name=array): read that array")
        return self.data

    def __copy__(self) -> Tensor:
        return self._again(self.data)

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        return self._again(None if self.data is None else self.data.copy())

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (self.data, self.sizes, self.dtype, self.ref.name, self.intermediate, self.ref.contracts, self.layout,
                           self.made_in is not None)

    def _again(self, data: npt.NDArray[Any] | None) -> Tensor:
        """Return a new tensor with this one's attributes; a copy needs an id of its own."""
        return _unpickle(data, self.sizes, self.dtype, self.ref.name, self.intermediate, self.ref.contracts, self.layout)

    @property
    def ref(self) -> TensorRef:
        """The value of this tensor in the IR."""
        return self.view.tensor

    @property
    def name(self) -> str:
        """The given name, or an empty string."""
        return self.ref.name

    @property
    def sizes(self) -> tuple[s.Scalar, ...]:
        """The extents as declared: constants, and scalars of symbols."""
        stops = {cut.dim: cut.stop for cut in self.view.steps if isinstance(cut, Cut)}
        return tuple(stops.get(dim, s.Const(extent)) for dim, extent in enumerate(self.ref.shape))

    @property
    def sized_by_runs(self) -> bool:
        """Tell whether each run makes or binds an array of its own size: the shape has symbols, and there is no data."""
        return self.data is None and self.made_in is None and bool(self.view.steps)

    @property
    def unsized(self) -> bool:
        """Tell whether only a run knows the shape: there is no data, and a symbol of the shape has no initial value."""
        return self.sized_by_runs and not all(isinstance(as_declared(size), s.Const) for size in self.sizes)

    def promise(self, contract: Contract) -> None:
        """Declare a contract of the elements; it is checked when an array is bound."""
        if not isinstance(contract, Contract):
            raise TensorDataError("a Tensor keeps no such contract", here(), expected="Contract.INJECTIVE or Contract.MONOTONE",
                                  found=repr(contract), help="Injective(table) and Monotone(offsets) declare them")
        if contract not in self.ref.contracts:
            self.view = View(replace(self.ref, contracts=(*self.ref.contracts, contract)), self.view.steps)

    def on(self, rank: object) -> TensorView:
        """Return the part of a tensor with a layout that a rank of the mesh holds: `A.on(r)` in `for r in P(mesh)`, or `A.on(0)`.

        The last shards may have fewer rows than the others, or none: such a view is clipped to the rows of a full shard.
        Raises: M105 for a tensor without a layout; M102 where no mesh is known, and for a rank that there is not.
        """
        mesh, _ = known_mesh(f"`{self.ref.shown}.on(...)`")
        node = as_scalar(rank)
        part = self.part(mesh, mesh.coordinates(rank))
        part.at = RankPart(mesh, node)
        return TensorView(part.owner, part.view, (*part.holds, *tensors_read(rank)), part.at)

    def part(self, mesh: Mesh, at: Sequence[int | Symbolic]) -> TensorView:
        """Return the part that the rank at a position along each axis of a mesh holds.

        Raises: M105 for a tensor without a layout, and for a shard of a partial tensor's array.
        """
        if self.layout is None:
            raise LayoutShapeError(f"`{self.ref.shown}` says nothing of ranks", here(), found=repr(self),
                              expected="a tensor with a layout",
                              help="Tensor(array, layout=TensorLayout.replicated(rank)), or a sharded one")
        layout = self.layout.named_on(mesh)
        cut_by = {axis: dim for dim, one in enumerate(layout.dist) for axis in ([one.axis] if isinstance(one, Shard) else [])}
        free = [k for k, (name, size) in enumerate(mesh.axes) if name not in cut_by and size > 1]
        part: TensorView = self
        whole = self._copies(mesh, [mesh.shape[k] for k in free], is_partial=bool(layout.partial))
        if whole is not self:
            number: int | Symbolic = 0
            for k in free:
                number = number * mesh.shape[k] + at[k]
            part = TensorView(whole, pick(whole.view, 0, number), tensors_read(number))     # also of a number, which indexing would read
        limits: list[object] = [None] * part.rank
        for axis, dim in cut_by.items():
            k = mesh.axis(axis)
            n, size = mesh.shape[k], _as_number(self.shape[dim])
            start, stop = shard_bounds(size, n, at[k])
            if n == 1:
                continue
            part = part[(slice(None),) * dim + (slice(start, stop),)]
            if not isinstance(size, int) or size % n:
                limits[dim] = shard_rows(size, n)
        if any(isinstance(limit, int) and limit == 0 for limit in limits):
            raise LayoutShapeError(f"`{self.ref.shown}` has no rows to cut", here(), found=repr(self))
        return part if limits == [None] * part.rank else part.clip(*limits)

    def _copies(self, mesh: Mesh, sizes: Sequence[int], *, is_partial: bool) -> Tensor:
        """Return the tensor that has a rank's copies along its first dimension; this one if there is one copy."""
        n = math.prod(sizes)
        if n == 1:
            return self
        if not self.intermediate:
            found = mesh_in_use()
            kept = None if found is None else found.copies.get(self.ref.id)
            return kept if isinstance(kept, Tensor) else self
        if self.copies is None or self.copies[0] != mesh:
            self.copies = mesh, self.copies_for(n)
        return self.copies[1]

    def copies_for(self, n: int) -> Tensor:
        """Return memory of the program for `n` copies of this tensor, along a first dimension."""
        made = Tensor(None, (n, *(int(e.value) if isinstance(e, s.Const) else Symbolic(e) for e in self.sizes)), self.dtype,
                      f"{self.ref.name}_ranks" if self.ref.name else None)
        made.intermediate, made.made_at = True, self.made_at
        made.copied = self.layout
        found = mesh_in_use()
        if found is not None:
            found.of_ranks.add(made.ref.id)
        if not made.view.steps:
            made.data = empty_array(made.ref.shape, made.dtype.np)
        return made

    @staticmethod
    def empty(shape: Sequence[object], dtype: DTypeLike, name: str | None = None, layout: TensorLayout | None = None) -> Tensor:
        """Return a tensor for intermediate results: memory of the program, undefined before the first write.

        In a loop's body, a branch or a process of a workload, a new tensor is allocated in each iteration. An extent may be a Symbol, the
        size of an axis, or arithmetic on them: each run then has as much memory as the extent says. In a body it may depend on loop
        variables and on elements of tensors, too; `minimum(64, n)` allocates 64.

        `layout`: which part of it each rank of a mesh holds; such a tensor is made at the top of a workload, or outside of it.

        Raises: D101 for a shape that is none, and for an extent that depends on anything else; M105 for a layout that does not fit, and
        for a layout of a tensor that a body makes.
        """
        watcher = _watcher.get()
        body = None if watcher is None else watcher.body()
        if body is None:
            tensor = Tensor(None, shape, dtype, name, layout)
        elif layout is not None:
            raise LayoutShapeError("a tensor with a layout is made in a body", here(), found=repr(layout),
                              help="make it in front of the loops; a tensor without a layout belongs to the rank whose body makes it")
        else:
            extents, cuts = _sizes(shape, in_body=True)
            tensor = Tensor(None, extents, dtype, name)
            tensor.view, tensor.made_in = View(tensor.ref, cuts), body
        tensor.intermediate = True
        if watcher is not None:
            tensor.made_at = here() if body is None else None
            watcher.made(tensor)
        if tensor.made_in is None and not tensor.view.steps:
            tensor.data = empty_array(tensor.ref.shape, tensor.dtype.np)
        return tensor

    def rename(self, name: str) -> None:
        """Name a tensor that has no name."""
        check_name(name)
        self.view = View(replace(self.ref, name=self.ref.name or name), self.view.steps)

    @staticmethod
    def from_dlpack(array: object, name: str | None = None) -> Tensor:
        """Wrap an array of another library (PyTorch, JAX, …) in host memory, without a copy, by its `__dlpack__`.

        Raises: D101 for an object without one.
        """
        if not hasattr(type(array), "__dlpack__"):
            raise TensorDataError("this object offers no host memory through DLPack", here(), found=kind_of(array))
        return Tensor(array, name=name)


class _ClosedBody:
    """The body of a tensor that was made in one and comes from a file: nothing can be traced in it any more."""

    closed = True


def _unpickle(data: npt.NDArray[Any] | None, sizes: tuple[s.Scalar, ...], dtype: DType, name: str, intermediate: bool,
              contracts: tuple[Contract, ...] = (), layout: TensorLayout | None = None, in_body: bool = False) -> Tensor:
    shape = tuple(int(n.value) if isinstance(n, s.Const) else Symbolic(n) for n in sizes)
    if in_body:
        extents, cuts = _sizes(shape, in_body=True)
        tensor = Tensor(None, extents, dtype, name or None, layout)
        tensor.view, tensor.made_in = View(tensor.ref, cuts), _ClosedBody()
    else:
        tensor = Tensor(data, shape, dtype, name or None, layout)
    tensor.intermediate = intermediate
    for contract in contracts:
        tensor.promise(contract)
    return tensor


def live_tensor(tensor_id: int) -> Tensor | None:
    """Return the tensor of that id; None if it no longer exists."""
    return _live.get(tensor_id)


def _array(data: object) -> npt.NDArray[Any]:
    array = array_of(data)
    if isinstance(array, NotTaken):
        raise TensorDataError(f"a Tensor cannot wrap {array.what}", here(), expected=array.expected, found=array.found, help=array.help,
                              notes=array.notes)
    return array


def _describe(data: npt.NDArray[Any], shape: Sequence[object] | None, dtype: DType | None) -> tuple[tuple[int, ...], DType, Layout]:
    found = DType.from_numpy(data.dtype)
    if dtype is not None and found is not dtype:
        raise TensorDataError("the array's dtype is not what the Tensor says", here(), expected=f"{dtype}, as dtype= says",
                              found=f"{found} array", help=f"array.astype(np.{dtype.np.name}), or dtype=DType.{found.name}")
    if shape is not None:
        extents, cuts = _sizes(shape)
        free = {cut.dim for cut in cuts}
        if len(extents) != data.ndim or any(dim not in free and extents[dim] != data.shape[dim] for dim in range(data.ndim)):
            raise TensorDataError("the array's shape is not what the Tensor says", here(), expected=f"{_shown(shape)}, as shape= says",
                                  found=f"{data.shape}")
    if any(stride % data.itemsize for stride in data.strides):
        raise TensorDataError("the array's strides are not whole elements", here(), found=f"strides {data.strides} bytes",
                              help="np.ascontiguousarray(...) makes a copy that fits")
    if not data.flags.aligned:
        raise TensorDataError("the array's elements do not lie at multiples of their size", here(),
                              found=f"address {data.__array_interface__['data'][0]}", help="array.copy() makes a copy that fits")
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


def _extents(shape: tuple[object, ...]) -> tuple[int, ...]:
    extents = tuple(n for entry in shape if (n := whole_number(entry)) is not None)
    if len(extents) != len(shape):
        raise TensorDataError("a shape is a sequence of whole numbers", here(), found=repr(shape))
    if any(n < 0 for n in extents):
        raise TensorDataError("a shape has no negative extents", here(), found=str(extents))
    if math.prod(extents) >= 1 << 62:
        raise TensorDataError("a tensor of this shape does not fit any memory", here(), found=str(extents))
    return extents


_SIZED_BY_RUNS = 1    # the declared extent where only a run knows it: nothing is proved from it, because a run may bind any


def _sizes(shape: Sequence[object], *, in_body: bool = False) -> tuple[tuple[int, ...], tuple[Cut, ...]]:
    """Return the declared extents of a shape, and the cuts that make the tensor as large as its symbols say.

    `in_body`: of a tensor that a body allocates, as large as the upper bound of an extent that has one.
    Raises: D101 for what is no shape, and for an extent that depends on more than symbols, in a body on more than its variables and data.
    """
    kinds = (s.SymbolRef, s.Const, s.Var, s.Element, s.DimOf) if in_body else (s.SymbolRef, s.Const)
    if not isinstance(shape, Iterable) or isinstance(shape, Symbolic):
        raise TensorDataError("a shape is a sequence of whole numbers", here(), found=repr(shape))
    entries: list[object] = list(shape)
    cuts: list[Cut] = []
    for dim, entry in enumerate(entries):
        if not isinstance(entry, Symbolic | Counted):
            continue
        node = as_scalar(entry)
        if not s.scalar_dtype(node).is_integer or not all(isinstance(leaf, kinds) for leaf in s.leaves(node)):
            more = "a loop variable, an element of a tensor, " if in_body else ""
            raise TensorDataError("this is no extent of a tensor", here(), found=repr(entry),
                                  expected=f"a whole number, a Symbol, the size of an axis, {more}or arithmetic on them")
        known, most = as_declared(node), at_most(node) if in_body else None
        if most is not None:
            entries[dim] = most
        else:
            entries[dim] = max(int(known.value), 0) if isinstance(known, s.Const) else _SIZED_BY_RUNS
        if not isinstance(node, s.Const):
            cuts.append(Cut(dim, s.Const(0), node))
    return _extents(tuple(entries)), tuple(cuts)


def _shown(shape: Sequence[object]) -> str:
    extents = ", ".join(print_scalar(as_scalar(entry)) for entry in shape)
    return f"({extents}{',' * (len(shape) == 1)})"


def _as_number(extent: int | Symbolic) -> int | Symbolic:
    """Return an extent; a number is then the tensor's in every run."""
    return extent + 0 if isinstance(extent, int) else extent


def _check_layout(layout: object, rank: int, *, has_data: bool) -> TensorLayout:
    if not isinstance(layout,
                      TensorLayout) or layout.rank != rank:
        raise LayoutShapeError("a layout says of each dimension of its tensor whether it is cut", here(),
                          expected=f"a TensorLayout of rank {rank}",
                          found=f"{layout!r:.100}", help=f"TensorLayout.sharded(dim=0, rank={rank}), TensorLayout.replicated({rank})")
    if has_data and layout.partial:
        raise LayoutShapeError("an array holds a whole tensor, and this layout is partial", here(),
                          found=repr(layout),
                          expected="a sharded or a replicated layout",
                          help="Tensor.empty(shape, dtype, layout=...) has a term for each rank")
    return layout


def check_name(name: object) -> None:
    """Check that a Tensor may have this name, or none.

    Raises: D101.
    """
    if name is not None and (not isinstance(name, str) or not name.isprintable()):
        raise TensorDataError("a Tensor's name is printable text", here(), expected='text, e.g. name="X"', found=ascii(name))


# -- contracts ---------------------------------------------------------------------------------------------------------
class ContractName:
    """A contract by name: `Injective(table)` declares it of a Tensor, `Injective[Tensor["t", DType.I64]]` of a parameter of a `jit`."""

    def __init__(self, name: str, contract: Contract, doc: str) -> None:
        self.__name__ = name
        self.__doc__ = doc
        self.contract = contract

    def __call__(self, *args: object, **kwargs: object) -> Tensor:
        given = bind(self.__name__, _ONE_TABLE[self.contract], args, kwargs)
        return _promised(self.__name__, next(iter(given.values())), self.contract)

    @property
    def __signature__(self) -> Signature:
        return _ONE_TABLE[self.contract]

    def __getitem__(self, item: object) -> TensorType:
        if not isinstance(item, TensorType) or not item.dtype.is_integer:
            raise TensorSignatureError(f"{self.__name__}[...] takes the type of a tensor of whole numbers", here(),
                                       expected=f'{self.__name__}[Tensor["t", DType.I32]]', found=f"{self.__name__}[{item!r:.60}]")
        return item.promising(self.contract)

    def __repr__(self) -> str:
        return self.__name__


_ONE_TABLE = {contract: Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD)])
              for contract, name in ((Contract.INJECTIVE, "table"), (Contract.MONOTONE, "offsets"))}
Injective = ContractName("Injective", Contract.INJECTIVE, """Declare that no two nonnegative elements of a table are equal.

`Injective(table)` returns the table as a Tensor; negative elements are padding. `Injective[Tensor["t", DType.I64]]` is the type of a
parameter of a function on whole tensors.

Raises: T205 for a value that is not a whole tensor of integers. A run that binds an array with two equal elements ends with R110.
""")
Monotone = ContractName("Monotone", Contract.MONOTONE, """Declare that the elements of offsets never decrease along the last dimension.

`Monotone(offsets)` returns them as a Tensor; `Monotone[Tensor["b", DType.I32]]` is the type of a parameter of a function on whole tensors.

Raises: T205 for a value that is not a whole tensor of integers. A run that binds a decreasing array ends with R110.
""")


def _promised(name: str, given: object, contract: Contract) -> Tensor:
    tensor = Tensor(given) if is_array(given) and not isinstance(given, TensorView) else given
    if not isinstance(tensor, Tensor) or not tensor.dtype.is_integer or tensor.rank == 0:
        description = f"{tensor!r}" if isinstance(tensor, TensorView) else f"{type(given).__name__}: {given!r:.60}"
        raise ArgumentKindError(f"{name} takes a whole tensor of indices", here(), found=description,
                                expected="a Tensor (or array) of integers with one dimension or more")
    tensor.promise(contract)
    return tensor

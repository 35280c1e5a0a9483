"""Cards of tensors and views: shape, strides, whose memory, first values, and where a view lies in its tensor.

Nothing is computed that was not: values are read as they stand in memory, at most a million of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tensor import Tensor, TensorView
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, as_declared, place_of, print_view
from pto_wsp.run.task_list import block_of
from pto_wsp.view.card import Card, LabelledValue, MapsPart, TablePart, ValuesPart
from pto_wsp.view.maps import map_of
from pto_wsp.wording import counted

MOST_READ = 1_000_000       # elements that are looked at for NaN, least and greatest
_FEW = 1 << 16              # of an array whose elements lie apart
_ROWS, _COLUMNS = 4, 8

Array = np.ndarray[Any, Any]


def tensor_card(view: TensorView) -> Card:
    """Return the card of a tensor or a view."""
    tensor, is_view = view.owner, not isinstance(view, Tensor)
    elements = _elements(view)
    array = None if tensor.data is None else elements
    values = [LabelledValue(label="shape", value=_shape(view)), LabelledValue(label="dtype", value=str(view.dtype)),
              LabelledValue(label="strides", value=_strides(view, tensor), note="in elements"),
              LabelledValue(label="memory", value=_memory(tensor))]
    values += [LabelledValue(label="declared", value=", ".join(contract.value for contract in tensor.ref.contracts))] \
        if tensor.ref.contracts else []
    values += [] if array is None else _figures(array, view.dtype)
    parts: list[Any] = [ValuesPart(values=tuple(values))]
    if is_view:
        parts += _region(view, tensor, elements)
    if array is not None and array.size and array.ndim:
        parts.append(_first(array))
    name = tensor.ref.shown
    return Card(title=print_view(view.view) if is_view else name, subtitle=f"View of {name}" if is_view else "Tensor", parts=tuple(parts),
                state=_state(view, tensor, is_known=elements is not None),
                foot="" if tensor.data is None else f"{tensor.name or 'tensor'}.data is the array; kernels write it, assignment does not")


# -- words -------------------------------------------------------------------------------------------------------------
def _shape(view: TensorView) -> str:
    """Return the extents as text; an extent that a run decides is a formula, followed by the number of the last run if there is one."""
    if view.rank == 0:
        return "a scalar"
    shown = []
    for extent in view.shape:
        if isinstance(extent, Symbolic):
            now = as_declared(extent.node)
            shown.append(print_scalar(extent.node) + (f" (now {now.value})" if isinstance(now, s.Const) else ""))
        else:
            shown.append(f"{extent:,}")
    return " × ".join(shown)


def _strides(view: TensorView, tensor: Tensor) -> str:
    found = [_number(dim.stride, tensor) for dim in view.dims]
    return ", ".join("decided by the run" if stride is None else f"{stride:,}" for stride in found) or "none"


def _memory(tensor: Tensor) -> str:
    """Return whose memory a tensor has, and how much."""
    if tensor.intermediate:
        if tensor.data is None:
            return "made in each run" if tensor.made_in is None else "made in each iteration"
        return f"its own, {_bytes(tensor.data.nbytes)}; undefined before the first write"
    if tensor.data is None:
        return "none yet: a run binds an array by name" if tensor.name else "none yet: a run binds an array"
    kind = type(tensor.given)
    whose = "your NumPy array" if isinstance(tensor.given, np.ndarray) else f"your {kind.__module__.partition('.')[0]}.{kind.__name__}"
    order = "" if tensor.data.flags.c_contiguous else ", not contiguous"
    return f"{whose}, {_bytes(tensor.data.nbytes)}{order}{'' if tensor.data.flags.writeable else ', read-only'}"


def _bytes(size: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:,.4g} {unit}"
    return counted(size, "byte")


def _state(view: TensorView, tensor: Tensor, *, is_known: bool) -> str:
    if not is_known:
        names = dict.fromkeys(leaf.name for node in (*(dim.extent for dim in view.dims), *_indices(view)) for leaf in s.leaves(node)
                              if isinstance(leaf, s.Var | s.SymbolRef) and leaf.name)
        return f"depends on {', '.join(names)}" if names else "decided by the run"
    return "no values yet" if tensor.data is None else ""


def _indices(view: TensorView) -> tuple[s.Scalar, ...]:
    found: list[s.Scalar] = []
    for step in view.view.steps:
        found += [step.index] if isinstance(step, Pick) else [step.start, step.stop] if isinstance(step, Cut) else []
    return tuple(found)


# -- where -------------------------------------------------------------------------------------------------------------
def _number(node: s.Scalar, tensor: Tensor) -> int | None:
    """Return the value of a scalar with the array that is there; None if a run decides it."""
    def known(leaf: s.Scalar) -> s.Scalar | None:
        match leaf:
            case s.DimOf(ref, dim) if ref == tensor.ref and tensor.data is not None:
                return s.Const(tensor.data.shape[dim])
            case s.StrideOf(ref, dim) if ref == tensor.ref and tensor.data is not None:
                return s.Const(tensor.data.strides[dim] // tensor.data.itemsize)
            case _:
                return None

    found = as_declared(s.substitute(node, known))
    return int(found.value) if isinstance(found, s.Const) else None


def _elements(view: TensorView) -> Array | None:
    """Return the elements of a view without a copy; of a tensor without memory, zeros of its declared shape.

    None if a run decides a step, or if the view leaves the tensor.
    """
    tensor = view.owner
    array: Array = np.broadcast_to(np.zeros((), np.int8), tensor.ref.shape) if tensor.data is None else tensor.data
    for step in view.view.steps:
        match step:
            case Pick(dim, index):
                at = _number(index, tensor)
                if at is None or not 0 <= at < array.shape[dim]:
                    return None
                array = array[(slice(None),) * dim + (at,)]
            case Cut(dim, start, stop, by):
                ends = _number(start, tensor), _number(stop, tensor)
                if ends[0] is None or ends[1] is None or not 0 <= ends[0] <= ends[1] <= array.shape[dim]:
                    return None
                array = array[(slice(None),) * dim + (slice(ends[0], ends[1], by),)]
            case Clip(limits):
                array = array[tuple(slice(limit) for limit in limits)]
            case Permute(order):
                array = array.transpose(order)
            case Reshape(shape):
                begin, end = step.span(array.ndim)
                array = array.reshape((*array.shape[:begin], *shape, *array.shape[end:]))
    return array


def _region(view: TensorView, tensor: Tensor, array: Array | None) -> list[Any]:
    """Return the map of a view's region in its tensor."""
    if array is None:
        return []
    if tensor.data is None:
        numbers = [_number(node, tensor) for place in (place_of(view.view),)
                   for node in (place.offset, *(dim.extent for dim in place.dims), *(dim.stride for dim in place.dims))]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers) or tensor.unsized:
            return []
        rank = array.ndim
        block = block_of(tensor.ref.shape, tensor.ref.layout.strides, known[0], known[1:1 + rank], known[1 + rank:])
        shape = tensor.ref.shape
    else:
        item, shape = tensor.data.itemsize, tensor.data.shape
        offset = (int(array.__array_interface__["data"][0]) - int(tensor.data.__array_interface__["data"][0])) // item
        block = block_of(shape, [stride // item for stride in tensor.data.strides], offset, array.shape,
                         [stride // item for stride in array.strides])
    return [MapsPart(title=f"In {tensor.ref.shown}", maps=(map_of(tensor.ref.shown, str(tensor.dtype), shape, block, "view"),))]


# -- values ------------------------------------------------------------------------------------------------------------
def _figures(array: Array, dtype: DType) -> list[LabelledValue]:
    """Return least, greatest and the number of NaN, of a sample where elements are many."""
    if not array.size:
        return []
    sample, note = _sampled(array)
    numbers = sample if dtype.is_integer or sample.dtype.kind == "b" else sample.astype(np.float32 if dtype.nbytes < 4 else sample.dtype)
    found = []
    if numbers.dtype.kind == "f":
        nan = np.isnan(numbers)
        count = int(nan.sum())
        found.append(LabelledValue(label="NaN", value=f"{count:,}{note if count else ''}" if not note or count else f"none{note}"))
        numbers = numbers[~nan] if count else numbers
    if numbers.size:
        found.insert(0, LabelledValue(label="values", value=f"{_shown(numbers.min())} … {_shown(numbers.max())}{note}"))
    return found


def _sampled(array: Array) -> tuple[Array, str]:
    """Return the elements to look at, all or evenly spaced, and a note on the choice."""
    if array.size <= MOST_READ:
        return array.reshape(-1), ""
    if array.flags.c_contiguous:
        sample = array.reshape(-1)[::-(-array.size // MOST_READ)]
    else:
        at = np.arange(0, array.size, -(-array.size // _FEW), dtype=np.int64)
        sample = array[np.unravel_index(at, array.shape)]
    return sample, f", in a sample of {sample.size:,}"


def _first(array: Array) -> TablePart:
    """Return the first values: the first columns of the first rows along the last two dimensions."""
    rows = array.reshape(1, -1)[:, :_COLUMNS] if array.ndim == 1 else array[(0,) * (array.ndim - 2)][:_ROWS, :_COLUMNS]
    lines = tuple((str(number), *map(_shown, row)) for number, row in enumerate(rows))
    at = f"[{', '.join(['0'] * (array.ndim - 2))}]" if array.ndim > 2 else ""
    return TablePart(title=f"First values{f' of {at}' if at else ''}", head=("", *(str(k) for k in range(rows.shape[1]))), rows=lines,
                     right=tuple(range(rows.shape[1] + 1)))


def _shown(value: Any) -> str:
    if isinstance(value, np.bool_ | np.integer):
        return str(value)
    return f"{float(value):.5g}"

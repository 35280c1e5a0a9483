"""What one run works on: an array for every tensor of the plan, a value for every symbol, checked against what was declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pto_wsp.errors import BindingError, DataDependentError, PtoError, UnboundSymbolError, raise_all
from pto_wsp.expr.rewrite import nodes
from pto_wsp.plan.model import Loop, Submit, TaskPlan, TensorSlot, is_float_symbol
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import SymbolRef
from pto_wsp.types.tensor import array_advice, kind_of
from pto_wsp.values import dataclass

Array: TypeAlias = npt.NDArray[Any]
Number: TypeAlias = int | float


@dataclass(frozen=True, slots=True, eq=False)
class Bindings:
    """Arrays by tensor slot, values by symbol slot, which arrays share memory (equal numbers in `groups`), and how each array lay
    when it was checked: an array's shape can be assigned to."""

    arrays: tuple[Array, ...]
    symbols: tuple[Number, ...]
    groups: tuple[int, ...]
    layouts: tuple[tuple[object, ...], ...]

    def fingerprint(self, plan: TaskPlan) -> tuple[object, ...]:
        """Return everything that an orchestrator reads: equal fingerprints give the same tasks on the same memory."""
        read = tuple(a.tobytes() for a, slot in zip(self.arrays, plan.tensors, strict=True) if slot.scalars)
        return self.layouts, self.symbols, self.groups, read

    def still_fit(self, arrays: Sequence[object], symbols: Sequence[object]) -> bool:
        """Tell whether binding these again would give the same."""
        return (all(a is b or (a is None and b is MADE) for a, b in zip(arrays, self.arrays, strict=True))
                and all(type(a) is type(b) and a == b for a, b in zip(symbols, self.symbols, strict=True))
                and self.layouts == tuple(map(layout_of, self.arrays)))


MADE = np.zeros(0, np.uint8)    # what stands among the arrays for a tensor that bodies make


def layout_of(array: Array) -> tuple[object, ...]:
    """Return how an array lies: its address and whether it is read-only, shape, strides and dtype."""
    return array.__array_interface__["data"], array.shape, array.strides, array.dtype


AT_RUN_TIME = "give it at run time: execute({}={})"      # a name, and what stands for it


def bind(plan: TaskPlan, arrays: Sequence[object], symbols: Sequence[object], advice: str = AT_RUN_TIME) -> Bindings:
    """Return the bindings of one run; None stands for what nobody has bound. `advice`: how a user gives it.

    Raises: R102 for arrays that do not fit, or whose elements share memory where tasks write them; W101 for symbols without a value, W104
    where a scalar's tensor shares memory with one that tasks write; all of them together.
    """
    errors: list[PtoError] = []
    bound: list[Array] = []
    for slot, array in zip(plan.tensors, arrays, strict=True):
        if slot.fresh:
            bound.append(MADE)
            continue
        problem = _tensor_problem(slot, array, advice)
        if problem is not None:
            errors.append(problem)
        elif array is not None:
            bound.append(array)  # type: ignore[arg-type]
    values: list[Number] = []
    for symbol, value in zip(plan.symbols, symbols, strict=True):
        checked = _symbol_value(plan, symbol, symbol.default if value is None else value, advice)
        if isinstance(checked, PtoError):
            errors.append(checked)
        else:
            values.append(checked)
    raise_all(errors)
    groups = alias_groups(bound)
    _refuse_shared_scalars(plan, groups)
    _refuse_folded(plan, bound)
    if not plan.infer:
        _refuse_shared_memory(plan, groups)
    return Bindings(tuple(bound), tuple(values), groups, tuple(map(layout_of, bound)))


def alias_groups(arrays: Sequence[Array]) -> tuple[int, ...]:
    """Return a number for each array, equal for arrays whose memory may overlap: intervals that touch are one group."""
    spans = [byte_bounds(a) if a.size else (0, 0) for a in arrays]
    groups = [0] * len(arrays)
    group, end = -1, -1
    for k in sorted(range(len(arrays)), key=lambda k: spans[k]):
        low, high = spans[k]
        if low >= end or high == low:
            group += 1
            end = high
        groups[k] = group
        end = max(end, high)
    return tuple(groups)


def byte_bounds(array: Array) -> tuple[int, int]:
    """Return the address of an array's lowest byte and the one after its highest."""
    first = int(array.__array_interface__["data"][0])
    reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    return first + sum(min(0, r) for r in reach), first + sum(max(0, r) for r in reach) + array.itemsize


def _tensor_problem(slot: TensorSlot, array: object, advice: str) -> PtoError | None:
    ref = slot.ref
    name = f"tensor `{ref.shown}`"
    if array is None:
        return BindingError(f"{name} has no data", help=advice.format(ref.name or "name", "array"))
    if not isinstance(array, np.ndarray):
        return BindingError(f"{name} is bound to something that is no array", expected="numpy.ndarray or Tensor",
                            found=kind_of(array), help=array_advice(array, f"{ref.name or 'name'}={{}}"))
    if isinstance(array, np.ma.MaskedArray):
        return BindingError(f"{name} is bound to a masked array, whose mask would be lost", expected="numpy.ndarray or Tensor",
                            found=kind_of(array), help=f"{ref.name or 'name'}=array.filled(0) gives the masked elements a number")
    if array.dtype != ref.dtype.np:
        return BindingError(f"{name} is bound to an array of another dtype", expected=str(ref.dtype), found=str(array.dtype))
    if array.ndim != ref.rank:
        return BindingError(f"{name} is bound to an array of another rank", expected=f"{ref.rank} dimensions, as {list(ref.shape)}",
                            found=f"{array.ndim}, {list(array.shape)}")
    for fixed in slot.fixed:
        declared, given = ref.shape[fixed.dim], array.shape[fixed.dim]
        if given != declared:
            read = f"`{ref.shown}.shape[{fixed.dim}]`"
            return BindingError(f"{name} is bound at another size than the workload was made for", expected=f"{read} == {declared}",
                                found=f"{given}: an array of shape {list(array.shape)}",
                                help="let each run say how many there are: a Symbol, or an axis of DenseDyn, in place of the number",
                                also=() if fixed.span == UNKNOWN else ((f"{read} was read as a number here", fixed.span),))
    if any(stride % array.itemsize for stride in array.strides):
        return BindingError(f"{name} is bound to an array whose strides are not whole elements", found=str(array.strides))
    unit = array.ndim == 0 or array.shape[-1] == 1 or array.size == 0 or array.strides[-1] == array.itemsize
    if ref.layout.unit_inner and not unit:
        return BindingError(f"{name} is bound to an array whose last dimension is strided", expected="neighbours side by side",
                            found=f"stride {array.strides[-1]} bytes", help="np.ascontiguousarray(...) makes a copy that fits")
    if slot.writes and not array.flags.writeable:
        return BindingError(f"{name} is written by a task and its array is read-only", help="bind a writable array")
    return None


def _symbol_value(plan: TaskPlan, symbol: SymbolRef, value: object, advice: str) -> Number | PtoError:
    if value is None:
        use = _use_of(plan, symbol)
        return UnboundSymbolError(f"symbol `{symbol.name}` has no value", help=advice.format(symbol.name, "..."),
                                  notes=() if use is None else (f"it is used at {use}",))
    whole = int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None
    if is_float_symbol(symbol):
        if whole is not None or isinstance(value, float | np.floating):
            return float(value)  # type: ignore[arg-type]
    elif symbol.dtype is not None and symbol.dtype.is_bool and isinstance(value, bool | np.bool_):
        return int(value)
    elif whole is not None:
        if symbol.default is not None and whole < 0:
            return BindingError(f"axis `{symbol.name}` has a negative extent", expected=">= 0", found=str(whole))
        held = symbol.dtype or DType.I64
        if not -(1 << 63) <= whole < 1 << 63 or not held.holds(whole):
            return BindingError(f"symbol `{symbol.name}` does not fit {'64 bits' if held is DType.I64 else held}", found=str(whole))
        return whole
    return BindingError(f"symbol `{symbol.name}` is bound to a value of another kind", expected=str(symbol.dtype),
                        found=f"{type(value).__name__}: {value!r:.60}")


def _refuse_shared_scalars(plan: TaskPlan, groups: tuple[int, ...]) -> None:
    """A tensor that tasks write under its own name is waited for; that another one's tasks write it was not known when compiling."""
    written = {group: slot.ref.shown for slot, group in zip(plan.tensors, groups, strict=True) if slot.writes}
    raise_all([
        DataDependentError(f"`{slot.ref.shown}` is read as a scalar and shares memory with `{written[group]}`, which tasks write",
                           help=f"bind arrays that do not overlap, or read the scalar from `{written[group]}`: it is waited for then")
        for slot, group in zip(plan.tensors, groups, strict=True) if slot.scalars and not slot.writes and group in written
    ])


def _refuse_folded(plan: TaskPlan, arrays: Sequence[Array]) -> None:
    """Which element of those at one address is written last depends on the order inside a task, which nobody has said."""
    raise_all([
        BindingError(f"`{slot.ref.shown}`, which tasks write, has elements that share memory",
                     expected="strides of which each steps over what lies inside it", found=f"shape {array.shape}, strides {array.strides}",
                     help="bind an array of its own: array.copy()")
        for slot, array in zip(plan.tensors, arrays, strict=True) if slot.writes and not slot.fresh and _overlaps_itself(array)
    ])


def _refuse_shared_memory(plan: TaskPlan, groups: tuple[int, ...]) -> None:
    """Without edges from data, tasks are apart as far as each tensor is proved to be: another name for its memory is no part of that."""
    errors: list[PtoError] = []
    for k, slot in enumerate(plan.tensors):
        if slot.writes and not slot.allocated and not slot.fresh:
            others = [other.ref.shown for j, other in enumerate(plan.tensors) if j != k and groups[j] == groups[k]]
            if others:
                errors.append(BindingError(f"`{slot.ref.shown}`, which tasks write, may share memory with `{others[0]}`",
                                           expected="tensors apart from each other, as Deps.explicit() takes no order from data",
                                           help="bind arrays that do not overlap, or use Deps.hybrid()"))
    raise_all(errors)


def _overlaps_itself(array: Array) -> bool:
    """Tell whether two elements of an array may lie at one address: a stride does not step over what lies inside it."""
    inside = array.itemsize
    for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1):
        if stride < inside:
            return array.size > 0
        inside = stride * (extent - 1) + inside
    return False


def _use_of(plan: TaskPlan, symbol: SymbolRef) -> Span | None:
    """Return the first line of the workload that a symbol stands in."""
    for node in nodes(plan.body):
        parts = (node.start, node.stop, node.step) if isinstance(node, Loop) else node if isinstance(node, Submit) else ()
        if any(isinstance(inner, SymbolRef) and inner.id == symbol.id for inner in nodes(parts)) and isinstance(node, Loop | Submit):
            return node.span
    return None

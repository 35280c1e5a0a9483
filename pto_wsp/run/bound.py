"""Bind the arrays and symbol values of one run, and check them against their declarations.

`bind` checks shapes, dtypes, strides, aliasing and symbol values. `check_axes` checks the arrays of sparse axes before every run, because
their contents may change in place. `ContractChecks` checks declared contracts, on which proofs rely, whenever the contents have changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pto_wsp.errors import (
    ArrayBindingError,
    AxisDataError,
    BindingError,
    ContractError,
    DataDependentError,
    PtoError,
    UnboundSymbolError,
    raise_all,
)
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.exchange import NotTaken, array_of, empty_array
from pto_wsp.ir.flow import Loop
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.plan import BoundAxis, Submit, TaskPlan, TensorSlot, is_float_symbol
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import Const, SymbolRef
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

Array: TypeAlias = npt.NDArray[Any]
Number: TypeAlias = int | float


@dataclass(frozen=True, slots=True, eq=False)
class Bindings:
    """The arrays of a run by tensor slot, the values by symbol slot, the alias groups, and each array's layout when it was checked.

    Equal numbers in `groups` may share memory. The layouts are stored because an array's shape can be assigned to.
    """

    arrays: tuple[Array, ...]
    symbols: tuple[Number, ...]
    groups: tuple[int, ...]
    layouts: tuple[tuple[object, ...], ...]

    def fingerprint(self, plan: TaskPlan) -> tuple[object, ...]:
        """Return everything that an orchestrator reads: equal fingerprints give the same tasks on the same memory."""
        read = tuple(a.tobytes() for a, slot in zip(self.arrays, plan.tensors, strict=True) if slot.scalars)
        return self.layouts, self.symbols, self.groups, read

    def still_fit(self, arrays: Sequence[object], symbols: Sequence[object]) -> bool:
        """Tell whether binding these arrays and symbols again would give equal bindings."""
        return (all(a is b or (a is None and b is MADE) or _same_memory(a, b) for a, b in zip(arrays, self.arrays, strict=True))
                and all(type(a) is type(b) and a == b for a, b in zip(symbols, self.symbols, strict=True))
                and self.layouts == tuple(map(layout_of, self.arrays)))


MADE = np.zeros(0, np.uint8)    # placeholder among the arrays for a tensor allocated in bodies


class RunMemory(np.ndarray[Any, Any]):
    """Memory that a run allocates for a tensor between tasks; its contents are undefined until a task writes them."""

    @classmethod
    def made(cls, shape: Sequence[int], dtype: np.dtype[Any]) -> RunMemory:
        """Return memory for a tensor."""
        return empty_array(shape, dtype).view(cls)


def layout_of(array: Array) -> tuple[tuple[int, bool], tuple[int, ...], tuple[int, ...], np.dtype[Any]]:
    """Return an array's layout: address and read-only flag, shape, strides, dtype."""
    return array.__array_interface__["data"], array.shape, array.strides, array.dtype


def _same_memory(given: object, bound: Array) -> bool:
    """Tell whether an array of any library is the memory that is bound already, which the old binding keeps alive."""
    array = array_of(given)
    return isinstance(array, np.ndarray) and layout_of(array) == layout_of(bound)


AT_RUN_TIME = "give it at run time: execute({}={})"      # filled with a name and a placeholder value


# -- arrays and symbols ------------------------------------------------------------------------------------------------
def bind(plan: TaskPlan, arrays: Sequence[object], symbols: Sequence[object], advice: str = AT_RUN_TIME) -> Bindings:
    """Return the bindings of one run; None stands for an unbound tensor or symbol. `advice`: the help text on how to bind one.

    Arrays of other libraries are bound as the NumPy array of their memory.
    Raises: R102 for symbols, R113 for arrays that do not fit, or whose elements share memory where tasks write them; W101 for symbols
    without a value, W104 where a scalar's tensor shares memory with one that tasks write; all of them together.
    """
    errors: list[PtoError] = []
    bound: list[Array] = []
    for slot, array in zip(plan.tensors, arrays, strict=True):
        if slot.fresh:
            bound.append(MADE)
            continue
        fitting = _fitting(slot, array, advice)
        if isinstance(fitting, PtoError):
            errors.append(fitting)
        else:
            bound.append(fitting)
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
    """Return a group number for each array; arrays whose address intervals overlap have the same number."""
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
    """Return the address of an array's lowest byte, and one past its highest."""
    first = int(array.__array_interface__["data"][0])
    if array.flags.c_contiguous:
        return first, first + array.nbytes
    reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    return first + sum(min(0, r) for r in reach), first + sum(max(0, r) for r in reach) + array.itemsize


def _fitting(slot: TensorSlot, given: object, advice: str) -> Array | PtoError:
    """Return the array that a run binds, or why it does not fit."""
    ref = slot.ref
    name = f"tensor `{ref.shown}`"
    if given is None:
        return ArrayBindingError(f"{name} has no data", help=advice.format(ref.name or "name", "array"))
    array = array_of(given)
    if isinstance(array, NotTaken):
        return ArrayBindingError(f"{name} is bound to {array.what}", expected=array.expected, found=array.found, help=array.help,
                                 notes=array.notes)
    if not array.dtype.isnative and array.dtype.newbyteorder("=") == ref.dtype.np:
        return ArrayBindingError(f"{name} is bound to an array of the other byte order", expected=str(ref.dtype), found=str(array.dtype),
                                 help=f"array.astype(np.{ref.dtype.np.name}) makes a copy in this machine's order")
    if array.dtype != ref.dtype.np:
        return ArrayBindingError(f"{name} is bound to an array of another dtype", expected=str(ref.dtype), found=str(array.dtype))
    if array.ndim != ref.rank:
        return ArrayBindingError(f"{name} is bound to an array of another rank", expected=f"{ref.rank} dimensions, as {list(ref.shape)}",
                                 found=f"{array.ndim}, {list(array.shape)}")
    for fixed in slot.fixed:
        declared, extent = ref.shape[fixed.dim], array.shape[fixed.dim]
        if extent != declared:
            read = f"`{ref.shown}.shape[{fixed.dim}]`"
            return ArrayBindingError(f"{name} is bound at another size than the workload was made for", expected=f"{read} == {declared}",
                                     found=f"{extent}: an array of shape {list(array.shape)}",
                                     help="let each run say how many there are: a Symbol, or an axis of DenseDyn, in place of the number",
                                     also=() if fixed.span == UNKNOWN else ((f"{read} was read as a number here", fixed.span),))
    if any(stride % array.itemsize for stride in array.strides):
        return ArrayBindingError(f"{name} is bound to an array whose strides are not whole elements", found=str(array.strides))
    if not array.flags.aligned:
        return ArrayBindingError(f"{name} is bound to an array whose elements do not lie at multiples of their size",
                                 found=f"address {layout_of(array)[0][0]}", help="array.copy() makes a copy that fits")
    unit = array.ndim == 0 or array.shape[-1] == 1 or array.size == 0 or array.strides[-1] == array.itemsize
    if ref.layout.unit_inner and not unit:
        return ArrayBindingError(f"{name} is bound to an array whose last dimension is strided", expected="neighbours side by side",
                                 found=f"stride {array.strides[-1]} bytes", help="np.ascontiguousarray(...) makes a copy that fits")
    if slot.writes and not array.flags.writeable:
        return ArrayBindingError(f"{name} is written by a task and its array is read-only", help="bind a writable array")
    return array


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
        dtype = symbol.dtype or DType.I64
        if not -(1 << 63) <= whole < 1 << 63 or not dtype.holds(whole):
            return BindingError(f"symbol `{symbol.name}` does not fit {'64 bits' if dtype is DType.I64 else dtype}", found=str(whole))
        return whole
    return BindingError(f"symbol `{symbol.name}` is bound to a value of another kind", expected=str(symbol.dtype),
                        found=f"{type(value).__name__}: {value!r:.60}")


def _refuse_shared_scalars(plan: TaskPlan, groups: tuple[int, ...]) -> None:
    """Refuse a scalar's tensor that aliases a written tensor: the compiled plan waits for writers of the same tensor only."""
    written = {group: slot.ref.shown for slot, group in zip(plan.tensors, groups, strict=True) if slot.writes}
    raise_all([
        DataDependentError(f"`{slot.ref.shown}` is read as a scalar and shares memory with `{written[group]}`, which tasks write",
                           help=f"bind arrays that do not overlap, or read the scalar from `{written[group]}`: it is waited for then")
        for slot, group in zip(plan.tensors, groups, strict=True) if slot.scalars and not slot.writes and group in written
    ])


def _refuse_folded(plan: TaskPlan, arrays: Sequence[Array]) -> None:
    """Refuse written arrays whose elements share addresses: the result would depend on the order of stores inside a task."""
    raise_all([
        ArrayBindingError(f"`{slot.ref.shown}`, which tasks write, has elements that share memory",
                          expected="strides of which each steps over what lies inside it",
                          found=f"shape {array.shape}, strides {array.strides}", help="bind an array of its own: array.copy()")
        for slot, array in zip(plan.tensors, arrays, strict=True) if slot.writes and not slot.fresh and overlaps_itself(array)
    ])


def _refuse_shared_memory(plan: TaskPlan, groups: tuple[int, ...]) -> None:
    """Refuse aliases of written tensors if no edges come from data: tasks are proved apart for each tensor separately."""
    errors: list[PtoError] = []
    for k, slot in enumerate(plan.tensors):
        if slot.writes and not slot.allocated and not slot.fresh:
            others = [other.ref.shown for j, other in enumerate(plan.tensors) if j != k and groups[j] == groups[k]]
            if others:
                errors.append(ArrayBindingError(f"`{slot.ref.shown}`, which tasks write, may share memory with `{others[0]}`",
                                                expected="tensors apart from each other, as Deps.explicit() takes no order from data",
                                                help="bind arrays that do not overlap, or use Deps.hybrid()"))
    raise_all(errors)


def overlaps_itself(array: Array) -> bool:
    """Tell whether two elements of an array may have the same address.

    Invariant: `inside` is the size in bytes of the block spanned by the smaller strides; each larger stride must step over that block.
    """
    if array.flags.c_contiguous:
        return False
    inside = array.itemsize
    for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1):
        if stride < inside:
            return array.size > 0
        inside = stride * (extent - 1) + inside
    return False


def _use_of(plan: TaskPlan, symbol: SymbolRef) -> Span | None:
    """Return the first line of the workload that uses a symbol; None if there is none."""
    for node in nodes(plan.body):
        parts = (node.start, node.stop, node.step) if isinstance(node, Loop) else node if isinstance(node, Submit) else ()
        if any(isinstance(inner, SymbolRef) and inner.id == symbol.id for inner in nodes(parts)) and isinstance(node, Loop | Submit):
            return node.span
    return None


# -- sparse axes -------------------------------------------------------------------------------------------------------
def check_axes(plan: TaskPlan, bindings: Bindings) -> None:
    """Raise R114 for sparse axes whose arrays are no rows of ascending columns; tensors that tasks write are left to the run's guards."""
    errors: list[PtoError] = []
    for axis in plan.axes:
        if axis.sparse and None not in axis.slots:
            slots = [slot for slot in axis.slots if slot is not None]
            if not any(plan.tensors[slot].writes for slot in slots):
                names = tuple(plan.tensors[slot].ref.shown for slot in slots)
                arrays = tuple(bindings.arrays[slot] for slot in slots)
                errors.extend(_problems(axis, names, arrays, _rows(plan, axis, bindings)))
    raise_all(errors)


def _rows(plan: TaskPlan, axis: BoundAxis, bindings: Bindings) -> int | None:
    match axis.rows:
        case Const(value):
            return int(value)
        case SymbolRef(_, id):
            return next((int(value) for symbol, value in zip(plan.symbols, bindings.symbols, strict=True) if symbol.id == id), None)
        case _:
            return None      # a computed number of rows: the loop's guards check it


def _problems(axis: BoundAxis, names: tuple[str, ...], arrays: tuple[Array, ...], rows: int | None) -> Iterator[PtoError]:
    """Yield the first fault of an axis, if any."""
    (indptr_name, indices_name), (indptr, indices) = names, (arrays[0].astype(np.int64), arrays[1])
    called = f"axis `{axis.name}`" if axis.name else "a sparse axis"
    if rows is not None and len(indptr) != rows + 1:
        yield AxisDataError(f"{called}: `{indptr_name}` has one entry a row and one behind the last", expected=f"{rows + 1} entries",
                            found=str(len(indptr)))
        return
    falls = np.flatnonzero(np.diff(indptr) < 0)
    if len(falls):
        at = int(falls[0])
        yield AxisDataError(f"{called}: `{indptr_name}` falls", expected=f"{indptr_name}[{at + 1}] >= {indptr[at]}",
                            found=str(indptr[at + 1]))
    elif len(indptr) and (indptr[0] < 0 or indptr[-1] > len(indices)):
        yield AxisDataError(f"{called}: `{indptr_name}` points outside `{indices_name}`", expected=f"0 .. {len(indices)}",
                            found=f"{indptr[0]} .. {indptr[-1]}")
    elif len(indptr):
        yield from _columns_problem(called, indices_name, indptr, indices[indptr[0]:indptr[-1]])


def _columns_problem(called: str, name: str, indptr: Array, columns: Array) -> Iterator[PtoError]:
    first = int(indptr[0])
    if len(columns) and columns.min() < 0:
        yield AxisDataError(f"{called}: `{name}` holds a column below 0",
                            found=f"{name}[{first + int(columns.argmin())}] = {columns.min()}")
        return
    rising = columns[1:] > columns[:-1]
    starts = indptr[1:-1] - first
    inner = starts[(starts > 0) & (starts < len(columns))]
    rising[inner - 1] = True             # columns need not rise across rows
    wrong = np.flatnonzero(~rising)
    if len(wrong):
        at = int(wrong[0]) + 1 + first
        row = int(np.searchsorted(indptr, at, "right")) - 1
        before, column = int(columns[wrong[0]]), int(columns[wrong[0] + 1])
        yield AxisDataError(f"{called}: the columns of a row do not ascend" if column != before else f"{called}: a row has a column twice",
                            expected=f"{name}[{at}] > {before}", found=f"{column}, in row {row}",
                            help="sort the columns of each row, and their values with them")


# -- contracts ---------------------------------------------------------------------------------------------------------
class ContractChecks:
    """The contracts of one plan, and the contents that satisfied them. Proofs never rely on contracts of written tensors."""

    def __init__(self, plan: TaskPlan) -> None:
        self._slots = tuple((k, slot.ref) for k, slot in enumerate(plan.tensors) if slot.ref.contracts and not slot.writes)
        self._kept: dict[int, bytes] = {}

    def check(self, bindings: Bindings) -> None:
        """Check the arrays against their contracts.

        Raises: R110 for all broken contracts together.
        """
        errors: list[PtoError] = []
        for slot, ref in self._slots:
            array = bindings.arrays[slot]
            content = repr(array.shape).encode() + array.tobytes()
            if self._kept.get(slot) == content:
                continue
            broken_contracts = [error for contract in ref.contracts if (error := contract_breach(contract, ref.shown, array)) is not None]
            errors += broken_contracts
            if not broken_contracts:
                self._kept[slot] = content
        raise_all(errors)


def contract_breach(contract: Contract, name: str, array: Array) -> ContractError | None:
    """Return the first violation of a contract in an array; None if there is none."""
    match contract:
        case Contract.INJECTIVE:
            return _equal_elements(name, array)
        case Contract.MONOTONE:
            return _fall(name, array)


def _equal_elements(name: str, array: Array) -> ContractError | None:
    values = array.ravel()
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    equal = np.flatnonzero((ranked[1:] == ranked[:-1]) & (ranked[1:] >= 0))
    if not len(equal):
        return None
    at = int(equal[np.argmin(order[equal + 1])])        # the pair whose second element is first in the array
    first, second = (_place(name, array, int(order[k])) for k in (at, at + 1))
    return ContractError(f"`{name}` is declared Injective, and two of its elements are equal", expected="each number >= 0 at most once",
                         found=f"{first} and {second} are both {ranked[at]}", help="fill entries that nobody uses with -1")


def _fall(name: str, array: Array) -> ContractError | None:
    falls = np.argwhere(array[..., 1:] < array[..., :-1])
    if not len(falls):
        return None
    before = tuple(int(k) for k in falls[0])
    after = (*before[:-1], before[-1] + 1)
    return ContractError(f"`{name}` is declared Monotone, and falls", expected=f"{_named(name, after)} >= {array[before]}",
                         found=f"{_named(name, before)} = {array[before]}, {_named(name, after)} = {array[after]}")


def _place(name: str, array: Array, flat: int) -> str:
    return _named(name, tuple(int(k) for k in np.unravel_index(flat, array.shape)))


def _named(name: str, index: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, index))}]"

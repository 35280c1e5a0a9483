"""Map the bindings of `execute(**bindings)` to the tensors, symbols and axes of a plan.

>>> program.execute(X=array, n=7)                                     # a tensor, a symbol or the extent of a DenseDyn
>>> program.execute(tokens=Ragged(batch, lens), routing=Sparse(batch, indptr, indices))
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from pto_wsp.check.reach import frozen_dims
from pto_wsp.errors import BindingError, PtoError, unreachable
from pto_wsp.ir.axes import DenseAxis, DenseDyn, Ragged, Sparse, known_extent
from pto_wsp.ir.plan import BoundAxis, TaskPlan
from pto_wsp.ir.rewrite import Canonical
from pto_wsp.ir.scalar import Const, Scalar, SymbolRef, evaluate, leaves, substitute, wrap_i64
from pto_wsp.ir.tensor import Tensor
from pto_wsp.run.bound import AT_RUN_TIME, Array, Bindings, ContractChecks, RunMemory, bind, check_axes
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest

Sizes: TypeAlias = Mapping[int, tuple[Scalar, ...]]


class ProgramBindings:
    """Hold what the runs of a program read: the workload's own arrays, values set for all runs, and the bindings of one run.

    `advice` tells how to bind what is missing, for callers that run the program other than by `execute`.
    """

    def __init__(self, plan: TaskPlan, wrapped: Sequence[Tensor | None], sizes: Sizes = MappingProxyType({})) -> None:
        """Create the bindings; `wrapped` holds the workload's own tensor for each tensor slot, `sizes` is as of `sizes_of`."""
        self._plan, self._wrapped, self.sizes = plan, list(wrapped), sizes
        self._frozen: Mapping[tuple[int, int], int] | None = None
        self._scratch: dict[int, Array] = {}      # by tensor slot, the memory of the last run
        self.advice = AT_RUN_TIME
        self._values: dict[str, object] = {}
        self._contracts = ContractChecks(plan)
        self._last: Bindings | None = None

    def of_plan(self, plan: TaskPlan) -> ProgramBindings:
        """Return the same arrays and values for another plan of the same workload."""
        same = ProgramBindings(plan, self._wrapped)
        same.advice, same._values = self.advice, dict(self._values)
        return same

    def set(self, name: str, value: object) -> None:
        """Set the value of a symbol or an axis for all later runs.

        Raises: R102 for an unknown name.
        """
        if not isinstance(name, str):
            raise BindingError("a symbol or an axis is given by its name", here(), expected='a string: "n"', found=repr(name))
        if name not in {symbol.name for symbol in self._plan.symbols}:
            raise unknown_name(self._plan, name)
        self._values[name] = value

    def of_run(self, bindings: Mapping[str, object]) -> Bindings:
        """Return the bindings of a run that receives these values by name; the bindings of the last run if they are equal.

        Raises: R102, R113, R114, W101, W104 and R110 for what does not fit.
        """
        plan = self._plan
        arrays: list[object] = [None if t is None else t.data for t in self._wrapped]
        values: list[object] = [self._values.get(symbol.name, symbol.default) for symbol in plan.symbols]
        BoundBefore(plan, arrays, values).bind_all(bindings)
        try:
            self._allocate(arrays, values)
            if self._last is None or not self._last.still_fit(arrays, values):
                self._last = bind(plan, arrays, values, self.advice)
                self._warn_of_rest(self._last.arrays)
            check_axes(plan, self._last)
            self._contracts.check(self._last)
            return self._last
        except PtoError as problem:
            for error in (problem, *problem.others):
                error.span = error.span or here()
            raise


    def _warn_of_rest(self, arrays: Sequence[Array]) -> None:
        """Warn of arrays of which tasks compute the rows that were declared and, whatever is bound, no others."""
        plan = self._plan
        longer = [(slot, dim) for slot, (known, array) in enumerate(zip(plan.tensors, arrays, strict=True)) if not known.fresh
                  for dim, (declared, extent) in enumerate(zip(known.ref.shape, array.shape, strict=True)) if extent > declared
                  and not (slot in self.sizes and not isinstance(self.sizes[slot][dim], Const))]      # a run says how many there are
        if not longer:
            return
        if self._frozen is None:
            self._frozen = frozen_dims(plan)
        place = here()
        for slot, dim in longer:
            reached, extent = self._frozen.get((slot, dim)), arrays[slot].shape[dim]
            if reached is not None and reached < extent:
                ref = plan.tensors[slot].ref
                text = (f"tasks reach {reached} of {extent} positions of `{ref.shown}` in dimension {dim}: the workload was made for "
                        f"{ref.shape[dim]}, and no size of the run changes that; loop over a Symbol or a DenseDyn, or bind the part alone")
                warnings.warn_explicit(text, UserWarning, place.file, place.line)

    def _allocate(self, arrays: list[object], values: Sequence[object]) -> None:
        """Give each intermediate whose size symbols say, and that nothing is bound to, memory for this run."""
        for slot, sizes in self.sizes.items():
            tensor = self._wrapped[slot]
            if tensor is not None and tensor.intermediate and arrays[slot] is None:
                shape = run_shape(self._plan, slot, sizes, values)
                kept = self._scratch.get(slot)
                if kept is None or kept.shape != shape:
                    kept = self._scratch[slot] = RunMemory.made(tensor.ref.shape if shape is None else shape, tensor.dtype.np)
                arrays[slot] = kept


def sizes_of(canonical: Canonical, plan: TaskPlan, tensors: Mapping[int, Tensor]) -> Sizes:
    """Return, by tensor slot, the extents of the tensors that each run sizes, as scalars of the plan's symbols."""
    numbers = {symbol: number for number, symbol in enumerate(canonical.symbols)}

    def in_plan(node: Scalar) -> Scalar | None:
        return replace(node, id=numbers.get(node.id, -1)) if isinstance(node, SymbolRef) else None

    found: dict[int, tuple[Scalar, ...]] = {}
    for slot, known in enumerate(plan.tensors):
        tensor = tensors.get(canonical.tensors[known.ref.id])
        if tensor is not None and tensor.sized_by_runs:
            found[slot] = tuple(substitute(size, in_plan) for size in tensor.sizes)
    return found


def run_shape(plan: TaskPlan, slot: int, sizes: tuple[Scalar, ...], values: Sequence[object]) -> tuple[int, ...] | None:
    """Return a tensor's shape in a run with these values of the plan's symbols; None where one has no value.

    Raises: R102 for an extent that is negative or fits no memory.
    """
    numbers = {symbol.id: int(value) for symbol, value in zip(plan.symbols, values, strict=True) if isinstance(value, int | np.integer)}
    if not all(leaf.id in numbers for size in sizes for leaf in leaves(size) if isinstance(leaf, SymbolRef)):
        return None      # `bind` reports the symbol

    def bound(leaf: Scalar) -> int:
        return numbers[leaf.id] if isinstance(leaf, SymbolRef) else unreachable("an extent of more than symbols")

    shape = tuple(wrap_i64(int(evaluate(size, bound))) for size in sizes)
    ref = plan.tensors[slot].ref
    if any(extent < 0 for extent in shape) or math.prod(shape) * ref.dtype.nbytes >= 1 << 48:
        raise BindingError(f"tensor `{ref.shown}` has an extent below 0, or fits no memory", here(), expected="extents >= 0",
                           found=str(shape))
    return shape


@dataclass(slots=True)
class BoundBefore:
    """Hold arrays by tensor slot and values by symbol slot. They start as before the run; `bind_all` adds the run's bindings."""

    plan: TaskPlan
    arrays: list[object]
    values: list[object]
    by: dict[int, str] = field(default_factory=dict)     # the name of the binding for each bound tensor slot
    axes: list[tuple[str, BoundAxis, Ragged | Sparse]] = field(default_factory=list)
    named: frozenset[str] = frozenset()

    def bind_all(self, bindings: Mapping[str, object]) -> None:
        """Bind values by name.

        Raises: R102 for a name that the plan does not have or that is ambiguous, and for a value that does not match its axis.
        """
        self.named = frozenset(bindings)
        for name, value in bindings.items():
            self._bind(name, value)
        for name, axis, value in self.axes:      # after all symbols: an extent given by name overrides that of an axis
            self._rows(name, axis, value)

    def _bind(self, name: str, value: object) -> None:
        plan = self.plan
        slots = [k for k, slot in enumerate(plan.tensors) if slot.ref.name == name]
        slots = [k for k in slots if not plan.tensors[k].fresh] or slots       # a body's own tensor hides no tensor of the user
        symbols = [k for k, symbol in enumerate(plan.symbols) if symbol.name == name]
        axes = [axis for axis in plan.axes if axis.name == name]
        count = len(slots) + len(symbols) + len(axes)
        if not count:
            raise unknown_name(plan, name)
        if len(slots) + bool(symbols) + len(axes) > 1:
            raise BindingError(f"`{name}` is ambiguous: the workload has {count} things of that name", here(),
                               help="give each Tensor a name of its own, Tensor(array, name=...), and each axis a variable of its own")
        if slots:
            self._tensor(slots[0], value.data if isinstance(value, Tensor) else value, name)
        for k in symbols:
            self.values[k] = known_extent(value) if isinstance(value, DenseAxis | DenseDyn) else value
        if axes:
            self._axis(name, axes[0], value)

    def _tensor(self, slot: int, array: object, name: str) -> None:
        if self.plan.tensors[slot].fresh:
            raise BindingError(f"`{name}` is not bound: the workload makes it", here(),
                               help="a Tensor.empty made in a body is another one each time; in front of the body it is one, and can be "
                                    "bound")
        if slot in self.by and self.arrays[slot] is not array:
            raise BindingError(f"tensor `{self.plan.tensors[slot].ref.shown}` is bound twice, to different arrays", here(),
                               found=f"by `{self.by[slot]}` and by `{name}`")
        self.arrays[slot], self.by[slot] = array, name

    def _axis(self, name: str, axis: BoundAxis, value: object) -> None:
        kind = Sparse if axis.sparse else Ragged
        if not isinstance(value, kind) or len(value.tensors) != len(axis.slots):
            raise BindingError(f"axis `{name}` is bound to something else", here(), found=f"{type(value).__name__}: {value!r:.60}",
                               expected=f"a {kind.__name__} of {len(axis.slots)} tensor{'s' * (len(axis.slots) > 1)}, as it was made")
        for slot, tensor in zip(axis.slots, value.tensors, strict=True):
            if slot is not None:
                self._tensor(slot, tensor.data, name)
        self.axes.append((name, axis, value))

    def _rows(self, name: str, axis: BoundAxis, value: Ragged | Sparse) -> None:
        """Check the row count of an axis against the program's, or bind it if the outer axis of the program is a DenseDyn."""
        outer = value.outer if isinstance(value, Sparse) else value.first
        rows = known_extent(outer)
        if isinstance(value, Sparse) and not isinstance(outer, DenseAxis):
            rows = value.indptr.ref.shape[0] - 1      # the actual count: the initial number of a DenseDyn may differ
        match axis.rows:
            case Const(expected) if rows is not None and rows != expected:
                raise BindingError(f"axis `{name}` is bound to one with another number of rows", here(), expected=f"{expected} rows",
                                   found=str(rows), help="an outer axis DenseDyn(n) may be bound to another extent")
            case SymbolRef(id=symbol) if rows is not None:
                for k, declared in enumerate(self.plan.symbols):
                    if declared.id == symbol and declared.default is not None and declared.name not in self.named:
                        self.values[k] = rows
            case _:
                pass


def unknown_name(plan: TaskPlan, name: str) -> BindingError:
    """Return the error for a name that the plan does not have."""
    names: Sequence[str] = [named for named in (*(slot.ref.name for slot in plan.tensors if not slot.fresh),
                                                *(symbol.name for symbol in plan.symbols), *(axis.name for axis in plan.axes)) if named]
    near = nearest(name, names)
    return BindingError(f"the program has nothing called `{name}` to bind", here(),
                        expected=f"one of {', '.join(dict.fromkeys(names)) or 'nothing: it has no named tensors, symbols or axes'}",
                        help=f"did you mean {near}?" if near else "a Dense axis is fixed; DenseDyn(n) makes one that can be bound")

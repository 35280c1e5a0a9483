"""What a package's golden.py feeds it: numbers from a seed, and the values of tensors that steer, as they were bound."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp.codegen.npu.golden.feeding import index_params, positive_params
from pto_wsp.codegen.npu.golden.spelling import spell_dtype
from pto_wsp.expr.kernel import Kernel
from pto_wsp.plan.model import TaskPlan, TensorSlot, is_float_symbol
from pto_wsp.plan.waits.elements import waited_for
from pto_wsp.plan.walk import submits
from pto_wsp.types.scalar import Number, SymbolRef

Array = npt.NDArray[Any]


def steering_tensors(plan: TaskPlan) -> frozenset[int]:
    """Return the ids of the tensors that are given and decide what is done: read as scalars, or as indices by a kernel.

    What tasks compute before it is read as a scalar needs no elements.
    """
    read = {slot.ref.id for slot in plan.tensors if slot.scalars and not slot.writes}
    return frozenset(read | _bound_to(plan, index_params)) - {slot.ref.id for slot in plan.tensors if slot.allocated}


def deciding_tensors(plan: TaskPlan) -> frozenset[int]:
    """Return the ids of the tensors of whole numbers that tasks make of what is read as a scalar then, by way of others too.

    Their elements are taken as they were bound, where they were: of any numbers whatever tasks might make places that are none.
    """
    found = {number for number, slot in enumerate(plan.tensors) if waited_for(slot)}
    while found:
        more = {place.slot for task in submits(plan) if any(place.slot in found and place.role.writes for place in task.places)
                for place in task.places if place.role.reads} - found
        if not more:
            break
        found |= more
    return frozenset(slot.ref.id for number, slot in enumerate(plan.tensors)
                     if number in found and not slot.allocated and not slot.ref.dtype.is_real)


def emit_inputs(plan: TaskPlan, names: Mapping[int, str], symbols: Mapping[int, str], steering: Mapping[int, Array],
                numbers: Mapping[int, Number]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return lines that make the tensors, and the entries of the list that generate_inputs returns."""
    positive = _bound_to(plan, positive_params)
    given = [slot for slot in plan.tensors if not slot.allocated]
    lines = [line for slot in given for line in _tensor(slot, names[slot.ref.id], steering, slot.ref.id in positive)]
    entries = [f'("{names[slot.ref.id]}", {names[slot.ref.id]}),' for slot in given]
    for symbol in plan.symbols:
        kind = "ctypes.c_float" if is_float_symbol(symbol) else "ctypes.c_int64"
        entries.append(f'("{symbols[symbol.id]}", {kind}({spell_number(symbol, symbols[symbol.id], numbers, "{}")})),')
    return tuple(lines), tuple(entries)


def spell_number(symbol: SymbolRef, name: str, numbers: Mapping[int, Number], tensors: str = "tensors") -> str:
    """Return a symbol's value: from params where they have it, else as it was bound."""
    default = numbers.get(symbol.id, symbol.default)
    return f'_number({tensors}, params, "{name}"{"" if default is None else f", {default!r}"})'


def _bound_to(plan: TaskPlan, choose: Callable[[Kernel], frozenset[str]]) -> frozenset[int]:
    """Return the ids of the tensors that some task gives to a parameter that `choose` names."""
    found: set[int] = set()
    chosen = [choose(use.kernel) for use in plan.kernels]
    for task in submits(plan):
        params = plan.kernels[task.kernel].kernel.memory_params
        found |= {place.view.tensor.id for place, param in zip(task.places, params, strict=True) if param.name in chosen[task.kernel]}
    return frozenset(found)


def _tensor(slot: TensorSlot, name: str, steering: Mapping[int, Array], positive: bool) -> tuple[str, ...]:
    ref = slot.ref
    dtype = spell_dtype(ref.dtype)
    if ref.id in steering:
        return _embedded(name, steering[ref.id], dtype)
    if not slot.reads or slot.scalars:
        return (f"{name} = np.zeros({ref.shape}, {dtype})",)
    if ref.dtype.is_bool:
        return (f"{name} = rng.integers(0, 2, {ref.shape}).astype({dtype})",)
    if not ref.dtype.is_real:
        return (f"{name} = _whole_numbers(rng, {ref.shape}, {dtype})",)
    return (f"{name} = _floats(rng, {ref.shape}, {dtype}{', positive=True' if positive else ''})",)


def _embedded(name: str, data: Array, dtype: str) -> tuple[str, ...]:
    """Return the lines that spell an array's elements."""
    shaped = "" if data.ndim == 1 else f".reshape({data.shape})"
    elements = ", ".join(map(_element, data.ravel().tolist()))
    if len(elements) < 100:
        return (f"{name} = np.array([{elements}], {dtype}){shaped}",)
    return (f"{name} = np.array([", *(f"    {line}" for line in textwrap.wrap(elements, 130)), f"], {dtype}){shaped}")


def _element(value: Number) -> str:
    return repr(value) if not isinstance(value, float) or np.isfinite(value) else f'float("{value!r}")'

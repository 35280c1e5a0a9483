"""Contracts of tensors, held against the arrays of a run: what was proved relies on them.

An array is looked at when it is bound, and again when what is in it has changed.
"""

from __future__ import annotations

import numpy as np

from pto_wsp.errors import ContractError, PtoError, raise_all
from pto_wsp.plan.model import TaskPlan
from pto_wsp.runtime.bound.binding import Array, Bindings
from pto_wsp.types.layout import Contract


class ContractChecks:
    """The contracts of one plan, and what was in the arrays that kept them. Tensors that tasks write have none that is relied on."""

    def __init__(self, plan: TaskPlan) -> None:
        self._slots = tuple((k, slot.ref) for k, slot in enumerate(plan.tensors) if slot.ref.contracts and not slot.writes)
        self._kept: dict[int, bytes] = {}

    def check(self, bindings: Bindings) -> None:
        """Raise R110 for arrays that break a contract, all of them together."""
        errors: list[PtoError] = []
        for slot, ref in self._slots:
            array = bindings.arrays[slot]
            content = repr(array.shape).encode() + array.tobytes()
            if self._kept.get(slot) == content:
                continue
            found = [error for contract in ref.contracts if (error := broken(contract, ref.shown, array)) is not None]
            errors += found
            if not found:
                self._kept[slot] = content
        raise_all(errors)


def broken(contract: Contract, name: str, array: Array) -> ContractError | None:
    """Return the first thing in an array that breaks a contract, None where nothing does."""
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
    at = int(equal[np.argmin(order[equal + 1])])        # the pair whose second comes first in the array
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

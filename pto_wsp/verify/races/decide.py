"""Decide a pair: proved apart, shown to share an element, or left open, with the reason.

First for every size that a run may bind. What is not apart then is asked again for the sizes that were declared, which is what a witness
must be of; a race that needs other sizes is left open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pto_wsp.types.layout import TensorRef
from pto_wsp.values import dataclass
from pto_wsp.verify.affine.linear import Key, System, Variable
from pto_wsp.verify.affine.solve import Sat, Unknown, Unsat, solve
from pto_wsp.verify.races.order import Order
from pto_wsp.verify.races.question import Data, Pair, Question, opaque_names
from pto_wsp.verify.races.witness import NoWitness, Witness, witness_of

_MOST_ELEMENTS = 24     # of arrays that the solver is told of


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """Proved: they share nothing. `relied_on`: the tables whose contracts may have been needed."""

    relied_on: tuple[TensorRef, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """Not proved, and why."""

    reason: str


Outcome: TypeAlias = Apart | Witness | Open


def decide(pair: Pair, data: Data, *, in_part: bool = False) -> Outcome:
    """Return whether two accesses share an element; `in_part`: without being of the same region."""
    question = Question(pair, data, pinned=False, in_part=in_part)
    if question.is_large:
        return Open("its numbers may not fit 64 bits")
    if isinstance(solve(question.system), Unsat):
        return _apart(question)
    question.guard()
    match solve(question.system):
        case Unsat():
            return _apart(question)
        case Unknown():
            return Open("the solver gave up")
        case Sat(general):
            pass
    return _pinned(Question(pair, data, pinned=True, in_part=in_part), general)


def decide_unordered(pair: Pair, data: Data, order: Order) -> Outcome:
    """Return whether two accesses in processes share an element without an order, as far as the solver is told of it: a witness has the
    sizes with which they may."""
    question = Question(pair, data, pinned=False, order=order)
    question.guard()
    match solve(question.system):
        case Unsat():
            return _apart(question)
        case Unknown():
            return Open("the solver gave up")
        case Sat(general):
            return _pinned(Question(pair, data, pinned=True, order=order), general)


def _pinned(question: Question, general: Mapping[Key, int]) -> Outcome:
    """Return what is so for the sizes that were declared, where `general` is a point for others."""
    question.guard()
    match solve(question.system):
        case Unsat():
            return Open(f"so for the sizes declared, not for all{_example(general)}")
        case Unknown():
            return Open("the solver gave up")
        case Sat(point):
            return _shown(question.pair, question, point)


def _apart(question: Question) -> Apart:
    return Apart(tuple(table for table in question.tables if table.contracts))


def _shown(pair: Pair, question: Question, point: Mapping[Key, int]) -> Outcome:
    """Return the witness of a point, if it is one whatever the tables hold, or with what lengths hold now."""
    if question.tables:
        found = None if question.places_by_data else _with_data(question, point)
        if found is None:
            return Open(f"it depends on what is in {_listed([table.shown for table in question.tables])}")
        point = found
    try:
        return witness_of(pair, question, point)
    except NoWitness as problem:
        names = opaque_names(iter(point))
        return Open(f"it depends on {_listed(names)}" if names else f"the solver's example does not hold: {problem}")


def _with_data(question: Question, point: Mapping[Key, int]) -> Mapping[Key, int] | None:
    """Return a point at which all elements are what the arrays hold, None where there is none or it is not found soon.

    What the arrays hold is told to the solver element by element, as it asks for them.
    """
    arrays = question.data.arrays
    for _ in range(_MOST_ELEMENTS):
        wrong = False
        for tensor, elements in question.translator.applications.items():
            for element in elements:
                index = tuple(one.value(point) for one in element.index)
                array = arrays.get(tensor.id)
                if array is None or any(not 0 <= k < extent for k, extent in zip(index, array.shape, strict=True)):
                    return None
                held = int(array[index])
                if element.value.value(point) != held:
                    wrong = True
                    _tell(question, tensor, index, held)
        if not wrong:
            return point
        match solve(question.system):
            case Sat(better):
                point = better
            case _:
                return None
    return None


def _tell(question: Question, tensor: TensorRef, index: tuple[int, ...], held: int) -> None:
    """Say what a tensor holds at an index."""
    for element in question.translator.applications[tensor]:
        elsewhere = [way for one, k in zip(element.index, index, strict=True)
                     for way in (System().below(one, k), System().at_least(one, k + 1))]
        question.system.either(*elsewhere, System().equal(element.value, held))


def _example(point: Mapping[Key, int]) -> str:
    """Name the sizes of a race that needs others than those declared."""
    shown = [f"{key.name} = {value}" for key, value in point.items() if isinstance(key, Variable) and ".shape[" in key.name]
    return f", e.g. {', '.join(shown)}" if shown else ""


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names]
    return " and ".join((", ".join(shown[:-1]), shown[-1])) if len(shown) > 1 else shown[0]


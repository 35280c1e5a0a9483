"""Decide one pair of accesses: proved apart, a race with its witness, or not proved, with the reason.

`decide` compares whole regions: the solver is first asked for every size that a run may bind, then for the declared sizes, which give the
witness. `decide_in_pieces` compares what the kernels of two tasks touch of their regions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

from pto_wsp.check.affine.linear import Key, System, Variable
from pto_wsp.check.affine.solve import Sat, Unknown, Unsat, solve
from pto_wsp.check.races.accesses import Contest
from pto_wsp.check.races.filters import alike
from pto_wsp.check.races.pieces import is_wrapped, pieces_of
from pto_wsp.check.races.question import Data, Order, Pair, Question, opaque_names
from pto_wsp.check.races.witness import NoWitness, Witness, witness_of
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.values import dataclass

_MOST_ELEMENTS = 24     # array elements given to the solver for one pair
_MOST_QUESTIONS = 1024      # pairs of pieces that the solver is asked about for one pair of accesses


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """Proved: the accesses share no element. `relied_on`: tables whose contracts the proof may need."""

    relied_on: tuple[TensorRef, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class NotProved:
    """Not proved, with the reason. `tables`: the tensors whose elements decide."""

    reason: str
    tables: tuple[TensorRef, ...] = ()


Outcome: TypeAlias = Apart | Witness | NotProved


def decide(pair: Pair, data: Data, *, in_part: bool = False) -> Outcome:
    """Return whether two accesses share an element. `in_part`: only count pairs whose regions differ."""
    question = Question(pair, data, pinned=False, in_part=in_part)
    if question.is_large:
        return NotProved("its numbers may not fit 64 bits")
    if isinstance(solve(question.system), Unsat):
        return _apart(question)
    return _decide_guarded(question, lambda: Question(pair, data, pinned=True, in_part=in_part))


def decide_unordered(pair: Pair, data: Data, order: Order) -> Outcome:
    """Return whether two accesses in processes share an element without an order.

    A witness has the sizes of the solver's example; the caller must confirm the lack of order by running the processes.
    """
    return _decide_guarded(Question(pair, data, pinned=False, order=order), lambda: Question(pair, data, pinned=True, order=order))


def _decide_guarded(question: Question, pinned: Callable[[], Question]) -> Outcome:
    """Decide a question with its guards. `pinned`: makes the same question with sizes as declared, for a counterexample."""
    question.guard()
    match solve(question.system):
        case Unsat():
            return _apart(question)
        case Unknown():
            return NotProved("the solver gave up")
        case Sat(general):
            return _decide_pinned(pinned(), general)


_WRAPS = "and rows of 32 bits wrap: cast the index to I64"


def decide_in_pieces(plan: TaskPlan, contest: Contest, pair: Pair, data: Data) -> Apart | NotProved | None:
    """Return whether the pieces that kernels touch are apart, of all accesses for which a pair stands.

    None if no piece is smaller than its region, or there are too many: then the regions decide.
    """
    pieces = [[pieces_of(plan, access) or (access,) for access in alike(contest, access)] for access in pair.accesses]
    sides = [[piece for each in side for piece in each] for side in pieces]
    pairs = [Pair(ours, theirs, pair.depth, pair.loop) for ours, theirs in product(*sides) if ours.role.writes or theirs.role.writes]
    whole = {id(access) for access in pair.accesses}
    if len(pairs) > _MOST_QUESTIONS or all(id(piece) in whole for side in sides for piece in side):
        return None
    relied_on: dict[TensorRef, None] = {}
    for smaller in pairs:
        outcome = decide(smaller, data)
        if isinstance(outcome, Witness):
            return None
        if isinstance(outcome, NotProved):
            wraps = any(is_wrapped(piece) for piece in smaller.accesses)
            return replace(outcome, reason=f"{outcome.reason}, {_WRAPS}") if wraps else outcome
        relied_on.update(dict.fromkeys(outcome.relied_on))
    return Apart(tuple(relied_on))


def _decide_pinned(question: Question, general: Mapping[Key, int]) -> Outcome:
    """Return the outcome for the declared sizes. `general`: a solution for other sizes."""
    question.guard()
    match solve(question.system):
        case Unsat():
            return NotProved(f"so for the sizes declared, not for all{_example(general)}")
        case Unknown():
            return NotProved("the solver gave up")
        case Sat(point):
            return _witness_at(question.pair, question, point)


def _apart(question: Question) -> Apart:
    return Apart(tuple(table for table in question.tables if table.contracts))


def _witness_at(pair: Pair, question: Question, point: Mapping[Key, int]) -> Outcome:
    """Return the witness of a solution, if the solution holds for any table contents or can be moved to the current contents."""
    if question.tables:
        data_point = None if question.places_by_data else _with_data(question, point)
        if data_point is None:
            return NotProved(f"it depends on what is in {_listed([table.shown for table in question.tables])}", question.tables)
        point = data_point
    try:
        return witness_of(pair, question, point)
    except NoWitness as problem:
        names = opaque_names(iter(point))
        return NotProved(f"it depends on {_listed(names)}" if names else f"the solver's example does not hold: {problem}")


def _with_data(question: Question, point: Mapping[Key, int]) -> Mapping[Key, int] | None:
    """Return a solution in which all table elements equal the bound arrays; None if there is none or the search is too long.

    Invariant: each round gives the solver the actual values of the elements that the last solution read, until no value differs.
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
                value = int(array[index])
                if element.value.value(point) != value:
                    wrong = True
                    _constrain_contents(question, tensor, index, value)
        if not wrong:
            return point
        match solve(question.system):
            case Sat(better):
                point = better
            case _:
                return None
    return None


def _constrain_contents(question: Question, tensor: TensorRef, index: tuple[int, ...], held: int) -> None:
    """Add to the question that a tensor has the value `held` at an index."""
    for element in question.translator.applications[tensor]:
        elsewhere = [way for position, k in zip(element.index, index, strict=True)
                     for way in (System().below(position, k), System().at_least(position, k + 1))]
        question.system.either(*elsewhere, System().equal(element.value, held))


def _example(point: Mapping[Key, int]) -> str:
    """Return the sizes of a race that needs sizes other than those declared, as text."""
    shown = [f"{key.name} = {value}" for key, value in point.items() if isinstance(key, Variable) and ".shape[" in key.name]
    return f", e.g. {', '.join(shown)}" if shown else ""


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names]
    return " and ".join((", ".join(shown[:-1]), shown[-1])) if len(shown) > 1 else shown[0]

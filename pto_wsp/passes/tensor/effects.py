"""Find what the items of a tensor function read, write and define, scalars that read an element included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count

from pto_wsp.ir import flow, scalar
from pto_wsp.ir.scalar import Const, Element, Scalar, SymbolRef, Var
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayStep,
    ArrayView,
    Item,
    Make,
    Put,
    Refold,
    Show,
    Statement,
    TensorFunction,
    TileCut,
    arrays_defined,
    views_read,
)
from pto_wsp.ir.view import Cut, Pick
from pto_wsp.ops.tensors import MOVE
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Effects:
    """The ids of the arrays that items read, write to and define, and whether they print: prints stay in order."""

    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    defines: frozenset[int] = frozenset()
    prints: bool = False

    def __or__(self, other: Effects) -> Effects:
        return Effects(self.reads | other.reads, self.writes | other.writes, self.defines | other.defines, self.prints or other.prints)

    def must_follow(self, earlier: Effects) -> bool:
        """Tell whether items of these effects may not move before items of `earlier` ones, which stand in front."""
        made = earlier.writes | earlier.defines
        return bool(self.reads & made or self.writes & (made | earlier.reads)) or (self.prints and earlier.prints)


def views_of(statement: Statement) -> Iterator[ArrayView]:
    """Yield the views that a statement reads, then the view that it writes."""
    yield from views_read(statement)
    if isinstance(statement, Put):
        yield statement.target


def named_by(statement: Statement) -> tuple[Array, ...]:
    """Return the arrays by which a plan may name a statement: arrays that the statement makes or writes."""
    match statement:
        case Apply(results=arrays):
            return arrays
        case Put(target):
            return (target.array,)
        case _:
            return ()


def scalars_of(statement: Statement) -> list[Scalar]:
    """Return the scalars that a statement evaluates: indices, extents, numbers among its operands."""
    found: list[Scalar] = []
    for view in views_of(statement):
        for step in view.steps:
            found.extend(step_scalars(step))
    match statement:
        case Apply(_, operands):
            found.extend([operand for operand in operands if not isinstance(operand, ArrayView)])
        case Put(value=value) if not isinstance(value, ArrayView):
            found.append(value)
    for array in arrays_defined(statement):
        found.extend(array.shape)
    return found


def step_scalars(step: ArrayStep) -> tuple[Scalar, ...]:
    """Return the scalars of a step of a view."""
    match step:
        case Pick(_, index):
            return (index,)
        case Cut(_, start, stop):
            return (start, stop)
        case TileCut(_, start):
            return (start,)
        case Refold(shape):
            return shape
        case _:
            return ()


def elements_in(scalars: Iterable[Scalar]) -> frozenset[int]:
    """Return the ids of the arrays of which scalars read an element."""
    return frozenset(element.tensor.id for element in _elements_in(scalars))


def indices_in(scalars: Iterable[Scalar]) -> Iterator[tuple[Scalar, ...]]:
    """Yield the indices of the elements that scalars read."""
    return (element.index for element in _elements_in(scalars))


def _elements_in(scalars: Iterable[Scalar]) -> Iterator[Element]:
    rest: list[Scalar] = [one for one in scalars if type(one) not in _WITHOUT_ELEMENTS]
    while rest:
        node = rest.pop()
        if isinstance(node, Element):
            yield node
        rest.extend([one for one in scalar.children(node) if type(one) not in _WITHOUT_ELEMENTS])


_WITHOUT_ELEMENTS = frozenset({Const, SymbolRef, Var})


def vars_in(scalars: Iterable[Scalar]) -> frozenset[Var]:
    """Return the loop variables in scalars."""
    return frozenset(leaf for one in scalars for leaf in scalar.leaves(one) if isinstance(leaf, Var))


def effects_of(item: Item) -> Effects:
    """Return the effects of an item and of all items inside."""
    found = Effects()
    for inner in flow.walk(item):
        bounds = [one for evaluation in flow.evaluations(inner) for one in evaluation.scalars]
        reads = set(elements_in(bounds))
        writes: set[int] = set()
        defines: set[int] = set()
        if isinstance(inner, flow.Do):
            reads |= {view.array.id for view in views_read(inner.leaf)} | elements_in(scalars_of(inner.leaf))
            writes |= {inner.leaf.target.array.id} if isinstance(inner.leaf, Put) else set()
            defines |= {array.id for array in arrays_defined(inner.leaf)}
        shows = isinstance(inner, flow.Do) and isinstance(inner.leaf, Show)
        found |= Effects(frozenset(reads), frozenset(writes), frozenset(defines), shows)
    return found


def arrays_written(item: Item) -> frozenset[int]:
    """Return the ids of the arrays that an item writes to."""
    return frozenset(leaf.target.array.id for leaf in flow.leaves(item) if isinstance(leaf, Put))


def users_of(function: TensorFunction) -> dict[int, frozenset[int]]:
    """Return, by id of an array, the statements (by their Python id) that use the array; 0 stands for results, bounds and conditions."""
    users: dict[int, set[int]] = {}

    def note(ids: Iterable[int], user: int) -> None:
        for one in ids:
            users.setdefault(one, set()).add(user)

    for item in flow.walk(function.body):
        note(elements_in(one for evaluation in flow.evaluations(item) for one in evaluation.scalars), 0)
        if isinstance(item, flow.Do):
            note((view.array.id for view in views_of(item.leaf)), id(item.leaf))
            note(elements_in(scalars_of(item.leaf)), 0)
    note((view.array.id for view in function.results), 0)
    return {one: frozenset(found) for one, found in users.items()}


def is_move(statement: Statement) -> bool:
    """Tell whether a statement is a collective, which no kernel computes."""
    return isinstance(statement, Apply) and statement.op == MOVE


def with_views(statement: Statement, change: Callable[[ArrayView], ArrayView]) -> Statement:
    """Return a statement with `change` applied to each view that it reads or writes."""
    match statement:
        case Apply(_, operands):
            return replace(statement, operands=tuple(change(one) if isinstance(one, ArrayView) else one for one in operands))
        case Put(target, value, table):
            return replace(statement, target=change(target), value=change(value) if isinstance(value, ArrayView) else value,
                           table=None if table is None else change(table))
        case Show(_, value):
            return replace(statement, value=change(value))
        case Make():
            return statement


def fresh_ids(function: TensorFunction) -> Iterator[int]:
    """Return an iterator over the ids, in ascending order, that no array and no loop variable of a function has."""
    ids = [0]
    for param in function.params:
        ids.append(param.array.id)
    for constant in function.constants:
        ids.append(constant.array.id)
    for item in flow.walk(function.body):
        ids.extend(var.id for var in flow.bound_vars(item))
        if isinstance(item, flow.Do):
            ids.extend(array.id for array in arrays_defined(item.leaf))
    return count(max(ids) + 1)


def group_name(item: Item) -> str:
    """Return the group that an item is marked with; "" for none."""
    match item:
        case flow.Do(leaf) if isinstance(leaf, Apply | Put | Show):
            return leaf.group
        case flow.Loop(note=note):
            return note.group
        case flow.Choice(branches):
            return branches[0].note.group
        case _:
            return ""


def made_by(item: Item) -> Array | None:
    """Return the state that an item makes, if it is a `Make`."""
    return item.leaf.array if isinstance(item, flow.Do) and isinstance(item.leaf, Make) else None

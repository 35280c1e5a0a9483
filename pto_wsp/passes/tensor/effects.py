"""Find what the items of a tensor function read, write and define, scalars that read an element included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import count

from pto_wsp.ir import flow, scalar
from pto_wsp.ir.scalar import Scalar, Var, elements_in
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Item, Make, Put, Show, Statement, TensorFunction
from pto_wsp.ops.tensors import MOVE
from pto_wsp.values import dataclass, replaced


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


def named_by(statement: Statement) -> tuple[Array, ...]:
    """Return the arrays by which a plan may name a statement: arrays that the statement makes or writes."""
    match statement:
        case Apply(results=arrays):
            return arrays
        case Put(target):
            return (target.array,)
        case _:
            return ()


def vars_in(scalars: Iterable[Scalar]) -> frozenset[Var]:
    """Return the loop variables in scalars."""
    return frozenset(leaf for one in scalars for leaf in scalar.leaves(one) if isinstance(leaf, Var))


def effects_of(item: Item) -> Effects:
    """Return the effects of an item and of all items inside."""
    reads: set[int] = set()
    writes: set[int] = set()
    defines: set[int] = set()
    prints = False
    for inner in flow.walk(item):
        if isinstance(inner, flow.Do):
            leaf = inner.leaf
            reads.update([view.array.id for view in leaf.reads], leaf.elements)
            defines.update([array.id for array in leaf.defines])
            if isinstance(leaf, Put):
                writes.add(leaf.target.array.id)
            prints = prints or isinstance(leaf, Show)
        else:
            for evaluation in flow.evaluations(inner):
                reads |= elements_in(evaluation.scalars)
    return Effects(frozenset(reads), frozenset(writes), frozenset(defines), prints)


def users_of_state(state: set[int], later: Mapping[int, Effects], fresh: Collection[int]) -> tuple[set[int], bool]:
    """Return the places of the items that use state or that such items must follow, and whether some of these use no state.

    `later`: effects of items by place in the body. State of `fresh` that the items write is added to `state`.
    """
    while True:
        taken, brought, together = set[int](), False, Effects()
        for place in sorted(later, reverse=True):
            uses = bool((later[place].reads | later[place].writes) & state)
            if uses or together.must_follow(later[place]):
                taken.add(place)
                brought = brought or not uses
                together |= later[place]
        more = together.writes.intersection(fresh) - state
        if not more:
            return taken, brought
        state |= more


def arrays_written(item: Item) -> frozenset[int]:
    """Return the ids of the arrays that an item writes to."""
    return frozenset(leaf.target.array.id for leaf in flow.leaves(item) if isinstance(leaf, Put))


def users_of(function: TensorFunction) -> dict[int, frozenset[int]]:
    """Return, by id of an array, the statements (by their Python id) that use the array; 0 stands for results, bounds and conditions."""
    users: defaultdict[int, set[int]] = defaultdict(set)
    read: set[int] = {view.array.id for view in function.results}
    for item in flow.walk(function.body):
        if isinstance(item, flow.Do):
            for view in item.leaf.views:
                users[view.array.id].add(id(item.leaf))
            read |= item.leaf.elements
        else:
            read |= elements_in(one for evaluation in flow.evaluations(item) for one in evaluation.scalars)
    for one in read:
        users[one].add(0)
    return {one: frozenset(found) for one, found in users.items()}


def is_move(statement: Statement) -> bool:
    """Tell whether a statement is a collective, which no kernel computes."""
    return isinstance(statement, Apply) and statement.op == MOVE


def with_views(statement: Statement, change: Callable[[ArrayView], ArrayView]) -> Statement:
    """Return a statement with `change` applied to each view that it reads or writes; the same object, if no view changes."""
    match statement:
        case Apply(_, operands):
            return replaced(statement, operands=tuple([change(one) if isinstance(one, ArrayView) else one for one in operands]))
        case Put(target, value, table):
            return replaced(statement, target=change(target), value=change(value) if isinstance(value, ArrayView) else value,
                            table=None if table is None else change(table))
        case Show(_, value):
            return replaced(statement, value=change(value))
        case Make():
            return statement


def fresh_ids(function: TensorFunction) -> Iterator[int]:
    """Yield the ids, in ascending order, that no array and no loop variable of a function has; nothing is done before the first."""
    ids = [0]
    for param in function.params:
        ids.append(param.array.id)
    for constant in function.constants:
        ids.append(constant.array.id)
    for item in flow.walk(function.body):
        ids.extend([array.id for array in item.leaf.defines] if isinstance(item, flow.Do) else [var.id for var in flow.bound_vars(item)])
    yield from count(max(ids) + 1)


def group_name(item: Item) -> str:
    """Return the group that an item is marked with; "" for none."""
    match item:
        case flow.Do(leaf):
            return "" if isinstance(leaf, Make) else leaf.group
        case flow.Loop(note=note):
            return note.group
        case flow.Choice(branches):
            return branches[0].note.group
        case _:
            return ""


def made_by(item: Item) -> Array | None:
    """Return the state that an item makes, if it is a `Make`."""
    return item.leaf.array if isinstance(item, flow.Do) and isinstance(item.leaf, Make) else None

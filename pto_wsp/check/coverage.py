"""Prove of a function on tensors in tiled form that what is read of an undefined array was written before, for all sizes.

    out[t, 8] f32 = undefined
    for t_i in each((t + 15) // 16):                 proved: row r is written where t_i = r // 16
        out[t_i * 16:+16] = out.tile
    return out

`tt.empty` of the user's, and all memory between kernels and of results, is undefined. For an element of a read, a write is looked for: the
iteration that would write the element is computed from the element's place, and the solver shows that the iteration exists and reaches it.
Two writes of one element by unordered tasks are left to the race check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pto_wsp.check.affine.linear import LinExpr, System, Variable, fresh_variable
from pto_wsp.check.affine.scalars import IterationScope, Translator
from pto_wsp.check.affine.solve import Unsat, solve
from pto_wsp.check.iterations import LevelCondition
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir.extents import same
from pto_wsp.ir.layout import Contract, TensorRef
from pto_wsp.ir.scalar import Const, Element, Op, Scalar, Var, add, binary, minimum, mul, sub
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayStep,
    ArrayView,
    Body,
    BodyNote,
    Extents,
    Flip,
    Insert,
    Item,
    Make,
    Put,
    Refold,
    Statement,
    TensorFunction,
    TileCut,
)
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.tensors import ROWS_OF
from pto_wsp.source import Span
from pto_wsp.values import dataclass

Loop: TypeAlias = "flow.Loop[Statement, BodyNote, TensorRef, TensorRef, TensorRef]"
Level: TypeAlias = "Loop | LevelCondition"
Box: TypeAlias = tuple[tuple[Scalar, Scalar, int], ...]      # first place, past the last, step; by dimension of the array


@dataclass(frozen=True, slots=True)
class _WrittenBox:
    """A write: its box, in variables of loops; `levels`, the loops and conditions between the array and the write, outermost first.

    `shape`: that the array is written through, its own or of a reshape; the box has its dimensions.
    `places`: the table whose entries are the places along the first dimension, each once; the box's first dimension is then the table's.
    """

    box: Box
    shape: Extents
    levels: tuple[Level, ...] = ()
    places: Array | None = None


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A read of elements that are not proved to be written. `name`: of the array; `made`: the line that makes the array.

    `read`: the line of the read, None where the function returns the array.
    """

    name: str
    made: Span
    read: Span | None


def check_coverage(function: TensorFunction) -> tuple[tuple[Finding, ...], tuple[Unwritten, ...]]:
    """Return a finding for each undefined array of a function in tiled form, and the reads that are not proved."""
    walk = _WritesBefore(function)
    walk.body(function.body, ())
    for view in function.results:
        walk.read(view, (), None)
    findings = [Finding(f"writes of `{make.array.name}`", *_verdict(walk.unwritten.get(number))) for number, make in walk.made.items()]
    return tuple(findings), tuple(walk.unwritten.values())


def _verdict(unwritten: Unwritten | None) -> tuple[Verdict, str]:
    if unwritten is None:
        return Verdict.PROVED, "what is read was written before"
    return Verdict.NOT_PROVED, f"read at {unwritten.read.short}" if unwritten.read else "all of it is returned"


def unwritten_warnings(reads: Iterable[Unwritten]) -> tuple[tuple[str, Span], ...]:
    """Return a message and its line for each read that is not proved."""
    help_ = "start from tt.zeros or tt.full; sanitize=True watches memory between tasks in a run, and fills results with NaN first"
    return tuple((f"`{one.name}` is undefined here, and nothing proves that all its elements are written before the function returns it; "
                  f"{help_}", one.made) if one.read is None else
                 (f"nothing proves that all elements of `{one.name}`, undefined at {one.made.short}, are written before they are read "
                  f"here; {help_}", one.read) for one in reads)


class _WritesBefore:
    """Goes through a function in program order. `known`: the writes of each undefined array that come before the place, by its id."""

    def __init__(self, function: TensorFunction) -> None:
        self.made: dict[int, Make] = {}
        self.unwritten: dict[int, Unwritten] = {}
        self._known: dict[int, list[_WrittenBox]] = {}
        self._function = function
        self._starts, tables = _rows_of(function.body)
        self._stable = stable_arrays(function)
        known = [param.array for param in function.params] + [constant.array for constant in function.constants] + \
            [array for statement in flow.leaves(function.body) for array in statement.defines]
        # of n entries that are apart, each inside 0 to n - 1 where it is used, one is each number
        self._tables = {array.id: array for array in known if array.rank == 1 and (
            array.id in tables or (Contract.INJECTIVE in array.contracts and array.id in self._stable))}

    def body(self, body: Body, levels: tuple[Level, ...]) -> None:
        for item in body.items:
            self._item(item, levels)

    def _item(self, item: Item, levels: tuple[Level, ...]) -> None:
        match item:
            case flow.Do(Make(array, None) as make):
                self.made[array.id], self._known[array.id] = make, []
            case flow.Do(statement):
                self._statement(statement, levels)
            case flow.Loop():
                self._loop(item, levels)
            case flow.Choice(branches, otherwise):
                refused: tuple[Level, ...] = ()
                for branch in branches:
                    self._inside(branch.body, levels, (*refused, LevelCondition(branch.condition, True)))
                    refused = (*refused, LevelCondition(branch.condition, False))
                self._inside(otherwise, levels, refused)
            case flow.Sequence():
                self.body(item, levels)
            case _:
                pass

    def _loop(self, loop: Loop, levels: tuple[Level, ...]) -> None:
        """Go through a loop. Where a read of it is not proved, the iterations before are counted in, if they are over by then."""
        known, unwritten = {number: tuple(writes) for number, writes in self._known.items()}, dict(self.unwritten)
        self._inside(loop.body, levels, (loop,))
        if not loop.ordered or len(self.unwritten) == len(unwritten):
            return
        made, self._known = self._known, {number: list(writes) for number, writes in known.items()}
        self.unwritten = unwritten
        before = Var(loop.var.name, -200 - len(levels))
        for number, writes in known.items():
            self._known[number] += [_in_iteration(write, loop, before) for write in made[number][len(writes):]]
        self._inside(loop.body, levels, (loop,))
        for number in known:      # what was counted in holds inside the loop alone
            self._known[number] = made[number]

    def _inside(self, body: Body, levels: tuple[Level, ...], more: tuple[Level, ...]) -> None:
        before = {number: len(writes) for number, writes in self._known.items()}
        self.body(body, (*levels, *more))
        for number in [number for number in self._known if number not in before]:      # made in each iteration anew
            del self._known[number]
        for number, count in before.items():
            writes = self._known[number]
            writes[count:] = [replace(write, levels=(*more, *write.levels)) for write in writes[count:]]

    def _statement(self, statement: Statement, levels: tuple[Level, ...]) -> None:
        for view in statement.reads:
            self.read(view, levels, statement.span)
        if isinstance(statement, Put) and statement.target.array.id in self._known and not statement.add:
            write = self._write(statement)
            if write is not None:
                self._known[statement.target.array.id].append(write)

    def _write(self, put: Put) -> _WrittenBox | None:
        array, steps = put.target.array, put.target.steps
        shape = array.shape
        if steps and isinstance(steps[0], Refold) and put.table is None:
            shape, steps = steps[0].shape, steps[1:]
        box = _box(shape, steps, exactly=True)
        if box is None:
            return None
        if put.table is None:
            match box[:1]:
                case ((Element(tensor, (entry,)) as place, past, _),) if past == add(place, Const(1)) and tensor.id in self._tables \
                        and same(shape[0], self._tables[tensor.id].shape[0]):
                    return _WrittenBox(((entry, add(entry, Const(1)), 1), *box[1:]), shape, (), self._tables[tensor.id])
                case _:
                    return _WrittenBox(box, shape)
        places, rows = put.table.array, box_of(put.table, exactly=True)
        first, last, by = box[0]
        if places.id not in self._tables or rows is None or not (first == Const(0) and by == 1 and same(last, places.shape[0])):
            return None
        return _WrittenBox((*rows, *box[1:]), shape, (), places)

    def read(self, view: ArrayView, levels: tuple[Level, ...], span: Span | None) -> None:
        """Look for writes of all elements that a view reads."""
        number = view.array.id
        if number not in self._known or number in self.unwritten:
            return
        writes, own = self._known[number], view.array.shape
        if any(not write.levels and _is_whole(write.box, write.shape) for write in writes):
            return
        box = box_of(view, exactly=False)
        assert box is not None
        if self._covered(box, own, [write for write in writes if write.shape == own], levels):
            return
        others = dict.fromkeys(write.shape for write in writes if write.shape != own)
        if not any(self._covered(_whole(shape), shape, [write for write in writes if write.shape == shape], levels) for shape in others):
            self.unwritten[number] = Unwritten(view.array.name, self.made[number].span, span)

    # -- the question ------------------------------------------------------------------------------------------------------
    def _covered(self, box: Box, shape: Extents, writes: Sequence[_WrittenBox], levels: tuple[Level, ...]) -> bool:
        bound: dict[Scalar, LinExpr] = {}
        translator = Translator(lambda tensor: tensor.id in self._stable)
        scope, system = translator.scope(bound), System()
        for symbol in self._function.symbols:
            system.at_least(scope.linear(symbol))
        for assumption in self._function.assumptions:
            system.include(scope.condition(assumption.condition))
        for level in levels:
            if isinstance(level, LevelCondition):
                system.include(scope.condition(level.condition, level.holds))
            else:
                var = bound[level.var] = LinExpr.of(Variable(level.var.name))
                system.include(scope.not_above(level.start, level.var)).include(scope.not_above(level.var, level.stop, 1))
                if level.step != Const(1) and isinstance(level.step, Const):
                    system.equal(var, scope.linear(level.start) + fresh_variable("iteration") * int(level.step.value))
        element = tuple(Var(f"x{dim}", -1 - dim) for dim in range(len(box)))
        for place, (first, past, _), extent in zip(element, box, shape, strict=True):      # an index outside is an error of its own
            bound[place] = LinExpr.of(Variable(place.name))
            system.include(scope.not_above(first, place)).include(scope.not_above(place, minimum(past, extent), 1))
            system.at_least(bound[place])
        for write in writes:
            system.either(*self._missed(write, element, dict(bound), translator, system))
        return isinstance(solve(system), Unsat)

    def _missed(self, write: _WrittenBox, element: Sequence[Var], bound: dict[Scalar, LinExpr], translator: Translator,
                system: System) -> list[System]:
        """Return why the one iteration of a write that would reach an element may not: one of these holds where it does not."""
        scope = translator.scope(bound)
        if write.places is not None:       # the element stands at some place of the table, which has each number once
            entry = Var("entry", -100)
            bound[entry] = fresh_variable("entry")
            system.within(bound[entry], 0, scope.linear(write.places.shape[0]))
            element = (entry, *element[1:])
        loops = [level for level in write.levels if not isinstance(level, LevelCondition)]
        for loop in loops:
            bound[loop.var] = scope.linear(loop.start)
        for loop in loops:
            bound[loop.var] = self._iteration(loop, write, element, scope, bound, system)
        missed = [scope.condition(level.condition, not level.holds) for level in write.levels if isinstance(level, LevelCondition)]
        for loop in loops:
            missed += [scope.not_above(loop.var, loop.start, 1), scope.not_above(loop.stop, loop.var)]
        for place, (first, past, by) in zip(element, write.box, strict=True):
            missed += [scope.not_above(place, first, 1), scope.not_above(past, place)]
            if by != 1:
                missed.append(scope.condition(binary(Op.NE, binary(Op.MOD, sub(place, first), Const(by)), Const(0))))
        return missed

    def _iteration(self, loop: Loop, write: _WrittenBox, element: Sequence[Var], scope: IterationScope, bound: dict[Scalar, LinExpr],
                   system: System) -> LinExpr:
        """Return the iteration of a loop that would write an element; the first where no place depends on the loop."""
        start, step = scope.linear(loop.start), loop.step
        shape = write.shape if write.places is None else (write.places.shape[0], *write.shape[1:])
        for place, (first, _, _), extent in zip(element, write.box, shape, strict=True):
            for leaf in s.leaves(first):
                if isinstance(leaf, Element) and leaf.index == (loop.var,) and leaf.tensor.id in self._starts:
                    count, total = self._starts[leaf.tensor.id]
                    if same(total, extent):
                        return _row_of(leaf.tensor, place, count, scope, bound, system)
            at_start = scope.linear(first)
            bound[loop.var] = start + 1
            per_iteration = scope.linear(first) - at_start
            bound[loop.var] = start
            if per_iteration.is_known and per_iteration.constant > 0 and isinstance(step, Const):
                iteration = scope.translator.quotient(scope.linear(place) - at_start, per_iteration.constant * int(step.value))
                return start + iteration * int(step.value)
        return start


def _in_iteration(write: _WrittenBox, loop: Loop, before: Var) -> _WrittenBox:
    """Return a write of a loop as one of the iterations before the present one; `before`: their variable."""
    def renamed(node: Scalar) -> Scalar:
        return s.substitute(node, lambda inner: before if inner == loop.var else None)

    def level_of(level: Level) -> Level:
        if isinstance(level, LevelCondition):
            return replace(level, condition=renamed(level.condition))
        if level is loop:
            return replace(loop, var=before, stop=loop.var)
        return replace(level, start=renamed(level.start), stop=renamed(level.stop))

    box = tuple((renamed(first), renamed(past), by) for first, past, by in write.box)
    return replace(write, box=box, levels=tuple(map(level_of, write.levels)))


def _row_of(starts: TensorRef, place: Var, count: Scalar, scope: IterationScope, bound: dict[Scalar, LinExpr], system: System) -> LinExpr:
    """Return the e of which starts[e] <= place < starts[e + 1]: there is one, as the starts rise from 0 to the number of places."""
    row = Var("row", -101)
    bound[row] = fresh_variable("row")
    system.within(bound[row], 0, scope.linear(count))
    system.include(scope.not_above(Element(starts, (row,)), place))
    system.include(scope.not_above(place, Element(starts, (add(row, Const(1)),)), 1))
    return bound[row]


def box_of(view: ArrayView, *, exactly: bool) -> Box | None:
    """Return the box of elements that a view takes of an array. For a view that is no box: a box around the view, or None (`exactly`)."""
    return _box(view.array.shape, view.steps, exactly=exactly)


def _whole(shape: Extents) -> Box:
    return tuple((Const(0), extent, 1) for extent in shape)


def _box(shape: Extents, steps: Sequence[ArrayStep], *, exactly: bool) -> Box | None:
    box = list(_whole(shape))
    dims = list(range(len(box)))                # of the view: the array's
    for step in steps:
        match step:
            case Pick(dim) | Cut(dim) | TileCut(dim):
                axis = dims.pop(dim) if isinstance(step, Pick) else dims[dim]
                if exactly and axis == _LOST:
                    return None
                if axis >= 0:
                    box[axis] = _part(step, *box[axis])
            case Permute(order):
                dims = [dims[k] for k in order]
            case Insert(dim):
                dims.insert(dim, _NEW)
            case Flip(dim):
                dims[dim] = _LOST
            case Refold(extents):
                dims = [_LOST] * len(extents)
    return tuple(box)


def is_exact(view: ArrayView) -> bool:
    """Tell whether a view has all elements of its box."""
    return box_of(view, exactly=True) is not None


_NEW, _LOST = -1, -2      # a dimension of extent 1, and one of which a part is not followed


def _part(step: Pick | Cut | TileCut, first: Scalar, past: Scalar, by: int) -> tuple[Scalar, Scalar, int]:
    """Return the places of a part of a dimension, of which every `by`-th place is a view's."""
    match step:
        case Pick(_, index):
            place = add(first, mul(index, Const(by)))
            return place, add(place, Const(1)), 1
        case Cut(_, start, stop, more):
            return add(first, mul(start, Const(by))), minimum(past, add(first, mul(stop, Const(by)))), by * more
        case TileCut(_, start, size):
            begin = add(first, mul(start, Const(by)))
            return begin, minimum(past, add(begin, Const(size * by))), by


def _is_whole(box: Box, shape: Extents) -> bool:
    return len(box) == len(shape) and all(first == Const(0) and by == 1 and same(past, extent)
                                          for (first, past, by), extent in zip(box, shape, strict=True))


def _rows_of(body: Body) -> tuple[Mapping[int, tuple[Scalar, Scalar]], frozenset[int]]:
    """Return the arrays with the starts that `rows_of` gives, with their numbers of rows and of places, and the arrays with its places."""
    starts: dict[int, tuple[Scalar, Scalar]] = {}
    places: set[int] = set()
    for statement in flow.leaves(body):
        match statement:
            case Apply(op, results=(first, second, *_)) if op == ROWS_OF:
                places.add(first.id)
                starts[second.id] = sub(second.shape[0], Const(1)), first.shape[0]
            case Put(ArrayView(target, ()), ArrayView(value, ()), None):      # kept in memory
                if value.id in places:
                    places.add(target.id)
                if value.id in starts:
                    starts[target.id] = starts[value.id]
            case _:
                pass
    return starts, frozenset(places)


def stable_arrays(function: TensorFunction) -> frozenset[int]:
    """Return the arrays whose elements stay: parameters that are not written, constants, and what is computed once, or of these alone."""
    puts: dict[int, int] = {}
    for statement in flow.leaves(function.body):
        if isinstance(statement, Put):
            number = statement.target.array.id
            puts[number] = puts.get(number, 0) + (1 if not statement.target.steps and statement.table is None else 2)
    alone: list[Statement] = [item.leaf for item in function.body.items if isinstance(item, flow.Do)]
    outside = {array.id for statement in alone for array in statement.defines}
    written_outside = {statement.target.array.id for statement in alone if isinstance(statement, Put)}
    given = {param.array.id for param in function.params} | {constant.array.id for constant in function.constants}
    found = {number for number in given if number not in puts} | \
        {number for number in outside if puts.get(number, 0) == 0 or (puts[number] == 1 and number in written_outside)}
    for statement in flow.leaves(function.body):      # the same in each iteration, where a loop computes it
        if isinstance(statement, Apply | Put) and all(view.array.id in found for view in statement.reads) and not any(
                isinstance(leaf, Var | Element) for one in statement.scalars for leaf in s.leaves(one)):
            made = [statement.target.array] if isinstance(statement, Put) else statement.results
            found |= {array.id for array in made if puts.get(array.id, 0) == isinstance(statement, Put)}
    return frozenset(found)

"""Prove of a function on tensors in tiled form that iterations without an order touch different elements, for all sizes; or refuse it.

    for i in tt.each(n):
        out[i:i + 2] = x[i]          refused: out[1] is written where i = 0, and again where i = 1

The iterations of `tt.each`, and of the loops that cut axes into tiles, have no order. Two of them must not write one element, nor one read
what another writes. An example for some sizes, or for some contents of a table without a contract, is enough to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

from pto_wsp.check.affine.linear import LinExpr, Point, System, Variable, fresh_variable
from pto_wsp.check.affine.scalars import Translator
from pto_wsp.check.affine.solve import Sat, Unsat, reach
from pto_wsp.check.coverage import Box, Level, Loop, box_of, is_exact, stable_arrays
from pto_wsp.check.iterations import LevelCondition
from pto_wsp.check.races.question import contract_law
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import RaceError
from pto_wsp.ir import flow
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import Const, Element, Op, Scalar, Var, add, binary, sub
from pto_wsp.ir.tensor_function import ArrayView, Body, BodyNote, Item, Make, Put, Statement, TensorFunction
from pto_wsp.source import Span
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class _ReachedView:
    """A view that an iteration reads or writes, inside `levels` of the unordered loop. `table`: whose entries are the first places."""

    view: ArrayView
    box: Box
    writes: bool
    levels: tuple[Level, ...]
    span: Span
    table: tuple[TensorRef, Box] | None = None


def check_unordered(function: TensorFunction) -> tuple[Finding, ...]:
    """Return a finding for each array that iterations without an order write. `error`: the user's, with two iterations."""
    return tuple(_UnorderedLoops(function).findings())


class _UnorderedLoops:
    """The unordered loops of a function."""

    def __init__(self, function: TensorFunction) -> None:
        self._function = function
        self._stable = stable_arrays(function)

    def findings(self) -> Iterator[Finding]:
        """Yield the findings about each unordered loop, outer loops first."""
        yield from self._of_body(self._function.body, ())

    def _of_body(self, body: Body, outer: tuple[Level, ...]) -> Iterator[Finding]:
        for item in body.items:
            if isinstance(item, flow.Loop):
                if not item.ordered:
                    yield from self._of_loop(item, outer)
                yield from self._of_body(item.body, (*outer, item))
            elif isinstance(item, flow.Choice):
                for levels, inner in _sides(item):
                    yield from self._of_body(inner, (*outer, *levels))
            elif isinstance(item, flow.Sequence):
                yield from self._of_body(item, outer)

    def _of_loop(self, loop: Loop, outer: tuple[Level, ...]) -> Iterator[Finding]:
        accesses: dict[int, list[_ReachedView]] = {}
        for access in _accesses(loop.body, ()):
            accesses.setdefault(access.view.array.id, []).append(access)
        made = {statement.array.id for statement in flow.leaves(loop.body) if isinstance(statement, Make)}
        for number, found in accesses.items():
            if number in made or not any(access.writes for access in found):
                continue
            name = found[0].view.array.name
            verdict, error = Verdict.PROVED, None
            for first, second in combinations_with_replacement(found, 2):
                if not (first.writes or second.writes):
                    continue
                answer = self._meet(first, second, loop, outer)
                if isinstance(answer, RaceError):
                    verdict, error = Verdict.COUNTEREXAMPLE, answer
                    break
                if answer is None:
                    verdict = Verdict.NOT_PROVED
            detail = {Verdict.PROVED: "they touch different elements", Verdict.NOT_PROVED: "tasks run in the order of the program"}
            yield Finding(f"iterations of `{loop.var.name}` on `{name}`", verdict, detail.get(verdict, "two touch one element"), error)

    def _meet(self, first: _ReachedView, second: _ReachedView, loop: Loop, outer: tuple[Level, ...]) -> RaceError | bool | None:
        """Return False where no two iterations meet, the error with an example of two, or None where neither is known."""
        translator = Translator(lambda tensor: tensor.id in self._stable, contract_law)
        shared: dict[Scalar, LinExpr] = {}
        system = System()
        for symbol in self._function.symbols:
            system.at_least(translator.scope(shared).linear(symbol))
        for assumption in self._function.assumptions:
            system.include(translator.scope(shared).condition(assumption.condition))
        self._enter(outer, shared, translator, system, "")
        rank = first.view.array.rank
        element = tuple(Var(f"x{dim}", -1 - dim) for dim in range(rank))
        for place, extent in zip(element, first.view.array.shape, strict=True):
            shared[place] = LinExpr.of(Variable(place.name))
            system.include(translator.scope(shared).not_above(Const(0), place)).include(
                translator.scope(shared).not_above(place, extent, 1))
        copies = []
        for access, mark in ((first, ""), (second, "'")):
            bound = dict(shared)
            self._enter((loop, *access.levels), bound, translator, system, mark)
            _reached(access, element, bound, translator, system, mark)
            copies.append(bound)
        here, there = copies[0][loop.var], copies[1][loop.var]
        if first is second:
            system.below(here, there)
        else:
            system.differ(here, there)
        match reach(system):
            case Unsat():
                return False
            case Sat(point) if is_exact(first.view) and is_exact(second.view):
                return self._error(first, second, loop, element, (here.value(point), there.value(point)), shared, translator, point)
            case _:
                return None

    @staticmethod
    def _enter(levels: tuple[Level, ...], bound: dict[Scalar, LinExpr], translator: Translator, system: System, mark: str) -> None:
        scope = translator.scope(bound)
        for level in levels:
            if isinstance(level, LevelCondition):
                system.include(scope.condition(level.condition, level.holds))
                continue
            var = bound[level.var] = LinExpr.of(Variable(level.var.name + mark))
            system.include(scope.not_above(level.start, level.var)).include(scope.not_above(level.var, level.stop, 1))
            if isinstance(level.step, Const) and level.step != Const(1):
                system.equal(var, scope.linear(level.start) + fresh_variable("iteration") * int(level.step.value))

    def _error(self, first: _ReachedView, second: _ReachedView, loop: Loop, element: tuple[Var, ...], numbers: tuple[int, int],
               shared: dict[Scalar, LinExpr], translator: Translator, point: Point) -> RaceError:
        name, var = first.view.array.name, loop.var.name
        places = ", ".join(str(shared[place].value(point)) for place in element)
        verbs = tuple("written" if access.writes else "read" for access in (first, second))
        again = "and again" if verbs == ("written", "written") else f"and {verbs[1]}"
        sizes = [f"{symbol.name} = {LinExpr.of(key).value(point)}" for symbol in self._function.symbols for key in point
                 if isinstance(key, Variable) and key.name == symbol.name]
        tables = dict.fromkeys(f"{table.shown}[{', '.join(str(at.value(point)) for at in one.index)}] = {one.value.value(point)}"
                               for table, found in translator.applications.items() for one in found)
        given = (*sizes, *tables)
        return RaceError(
            f"iterations of `{var}` without an order between them {'write' if verbs == ('written', 'written') else 'read and write'} "
            f"the same elements of `{name}`", first.span if first.writes else second.span,
            expected=f"iterations of `{var}` touch different elements, or only read",
            found=f"{name}[{places}] is {verbs[0]} where {var} = {numbers[0]}, {again} where {var} = {numbers[1]}",
            also=() if first.span == second.span else ((f"{verbs[1] if first.writes else verbs[0]} here",
                                                        second.span if first.writes else first.span),),
            notes=(f"for example with {', '.join(given)}",) if given else (),
            help="tt.loop runs iterations in order; a table or bounds from a table need a contract, Injective or Monotone")


def _reached(access: _ReachedView, element: tuple[Var, ...], bound: dict[Scalar, LinExpr], translator: Translator, system: System,
             mark: str) -> None:
    """Demand that an access reaches an element."""
    scope = translator.scope(bound)
    for dim, (place, (first, past, by)) in enumerate(zip(element, access.box, strict=True)):
        if dim == 0 and access.table is not None:
            tensor, ((start, stop, _),) = access.table
            entry = Var("entry", -100)
            bound[entry] = LinExpr.of(Variable(f"entry{mark}"))
            system.include(scope.not_above(start, entry)).include(scope.not_above(entry, stop, 1))
            system.equal(scope.linear(place), scope.linear(add(first, Element(tensor, (entry,)))))
            continue
        system.include(scope.not_above(first, place)).include(scope.not_above(place, past, 1))
        if by != 1:
            system.include(scope.condition(binary(Op.EQ, binary(Op.MOD, sub(place, first), Const(by)), Const(0))))


def _sides(choice: flow.Choice[Statement, BodyNote, TensorRef, TensorRef, TensorRef]) -> Iterator[tuple[tuple[Level, ...], Body]]:
    refused: tuple[Level, ...] = ()
    for branch in choice.branches:
        yield (*refused, LevelCondition(branch.condition, True)), branch.body
        refused = (*refused, LevelCondition(branch.condition, False))
    yield refused, choice.otherwise


def _accesses(body: Body, levels: tuple[Level, ...]) -> Iterator[_ReachedView]:
    """Yield the accesses of a body to arrays, in program order."""
    for item in body.items:
        yield from _of_item(item, levels)


def _of_item(item: Item, levels: tuple[Level, ...]) -> Iterator[_ReachedView]:
    match item:
        case flow.Do(statement):
            for view in statement.reads:
                box = box_of(view, exactly=False)
                assert box is not None
                if not (isinstance(statement, Put) and statement.add and view is statement.target):
                    yield _ReachedView(view, box, False, levels, statement.span)
            if isinstance(statement, Put):
                yield from _written(statement, levels)
        case flow.Loop():
            yield from _accesses(item.body, (*levels, item))
        case flow.Choice():
            for inside, body in _sides(item):
                yield from _accesses(body, (*levels, *inside))
        case flow.Sequence():
            yield from _accesses(item, levels)
        case _:
            pass


def _written(put: Put, levels: tuple[Level, ...]) -> Iterator[_ReachedView]:
    box = box_of(put.target, exactly=False)
    assert box is not None
    table = None
    if put.table is not None:
        rows = box_of(put.table, exactly=True)
        if put.add or rows is None or len(rows) != 1 or rows[0][2] != 1 or box[0][2] != 1:
            return                   # tasks run in the order of the program there
        table = put.table.array.ref, rows
    yield _ReachedView(put.target, box, True, levels, put.span, table)

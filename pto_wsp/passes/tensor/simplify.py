"""Simplify a function: nothing is computed twice or unread, views are short, and numbers that are known are numbers.

    a = exp(x); b = exp(x); y = a + b          before
    a = exp(x); y = a + a                      after

    a = arange(0, 1, 128); y = a[:n] * 2       before
    b = arange(0, 1, n); y = b * 2             after: a slice of a range is a range, so a kernel needs no memory for it

State that a `Put` writes changes, so what reads it is the same value only as long as nothing is written in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import TypeAlias

from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.extents import difference, simplified
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import Const, Element, Scalar
from pto_wsp.ir.view import Cut
from pto_wsp.ops.spec import Elementwise
from pto_wsp.ops.tensors import ARANGE, FULL, entry_of
from pto_wsp.ops.traits import Side
from pto_wsp.passes.tensor.effects import arrays_written, fresh_ids, with_views
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.passes.tensor.substitute import with_scalars
from pto_wsp.passes.tensor.view_steps import composed
from pto_wsp.values import dataclass, replaced

Key: TypeAlias = tuple[object, ...]


def simplify(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Compute common values once, drop what nothing reads, compose views of views, and fold numbers."""
    function = _with_own_ranges(planned.function)
    short = _with_short_parts(function, frozenset())
    while True:
        simple = _leaf_ids(function) & _leaf_ids(short)      # of statements that stay as they are
        function = function if short == function else short      # what is simple stays the same object
        facts = _Values(*_changing_and_elements(function))
        merged = _live(_merged(function, facts))
        short = _with_short_parts(merged, simple)
        # a second merge finds more only where a part became shorter, or an array is no longer written or read by a scalar
        if short == merged and _changing_and_elements(merged) == (facts.changing, facts.elements):
            return replace(planned, function=merged)
        function = merged


def verify_after_simplify(planned: PlannedFunction) -> None:
    """No value is unread, and no view has steps that come to fewer."""
    function, read = planned.function, live_arrays(planned.function)
    for statement in flow.leaves(function.body):
        for array in statement.defines:
            assert any(made.id in read for made in statement.defines), f"`{array.name}` is not read"
        for view in statement.views:
            assert composed(view) == view, f"`{view.array.name}` has a longer view than it needs: {view.steps}"


def _leaf_ids(function: t.TensorFunction) -> frozenset[int]:
    return frozenset(map(id, flow.leaves(function.body)))


def _with_short_parts(function: t.TensorFunction, simple: frozenset[int]) -> t.TensorFunction:
    """Return a function with its numbers folded, its views composed, and without control that is known not to run.

    `simple`: Python ids of statements in which there is nothing to do.
    """
    body = flow.rewrite_leaves(with_scalars(function.body, _simple, done=simple),
                               lambda leaf: leaf if id(leaf) in simple else with_views(leaf, composed))
    return replace(function, body=_folded(body), results=tuple(composed(_with_simple(view)) for view in function.results))


def _with_simple(view: t.ArrayView) -> t.ArrayView:
    (item,) = with_scalars(flow.Sequence((flow.Do(t.Show("", view)),)), _simple).items
    return item.leaf.value if isinstance(item, flow.Do) and isinstance(item.leaf, t.Show) else view


def _simple(node: Scalar) -> Scalar:
    """Return a scalar with its numbers folded: a whole number as a polynomial, a comparison decided where its sides differ by a number."""
    if isinstance(node, Const) or node.__class__ is s.SymbolRef:
        return node
    if s.scalar_dtype(node).is_integer:
        return simplified(node)
    node = s.substitute(node, lambda inner: simplified(inner) if s.scalar_dtype(inner).is_integer else None)
    match node:
        case s.Binary(op, lhs, rhs) if op in s.COMPARISONS and s.scalar_dtype(lhs).is_integer and s.scalar_dtype(rhs).is_integer:
            apart = difference(lhs, rhs)
            return node if apart is None else Const(s.apply_binary(op, apart, 0))
        case s.Binary(s.Op.AND | s.Op.OR as op, lhs, rhs) if s.scalar_dtype(node).is_bool:
            return s.binary(op, _simple(lhs), _simple(rhs))
        case _:
            return node


# -- control -----------------------------------------------------------------------------------------------------------
def _folded(body: t.Body) -> t.Body:
    """Return a body without the sides of choices that are known not to run, and without loops of no iteration."""
    return replace(body, items=tuple(inner for item in body.items for inner in _folded_item(item)))


def _folded_item(item: t.Item) -> Iterator[t.Item]:
    match item:
        case flow.Sequence(items):
            for inner in items:
                yield from _folded_item(inner)
        case flow.Choice(branches, otherwise):
            open_branches: list[flow.Branch[t.Statement, t.BodyNote, TensorRef, TensorRef, TensorRef]] = []
            for branch in branches:
                if branch.condition == Const(True):
                    otherwise = branch.body
                    break
                if branch.condition != Const(False):
                    open_branches.append(replace(branch, body=_folded(branch.body)))
            if not open_branches:
                yield from _folded(otherwise).items
            else:
                yield flow.Choice(tuple(open_branches), _folded(otherwise))
        case flow.Loop(start=Const(start), stop=Const(stop)) if stop <= start:
            return
        case flow.Loop(body=body):
            yield replace(item, body=_folded(body))
        case _:
            yield item


# -- ranges ------------------------------------------------------------------------------------------------------------
def _with_own_ranges(function: t.TensorFunction) -> t.TensorFunction:
    """Return a function in which statements that read a slice of a range make a range of their own."""
    changing, _ = _changing_and_elements(function)
    ranges = {leaf.results[0].id: leaf for leaf in flow.leaves(function.body)
              if isinstance(leaf, t.Apply) and leaf.op == ARANGE and leaf.results[0].id not in changing}
    ids = fresh_ids(function)

    def visit(body: t.Body) -> t.Body:
        items: list[t.Item] = []
        for item in body.items:
            if not isinstance(item, flow.Do):
                items.append(flow.with_bodies(item, visit))
                continue

            def own(view: t.ArrayView) -> t.ArrayView:
                if view.array.id not in ranges or not view.steps:
                    return view
                slices = composed(view)
                part = _part_of_range(ranges[view.array.id], slices, next(ids))
                if part is None:
                    return view
                items.append(flow.Do(part))
                return t.ArrayView(part.results[0], slices.steps[1:])

            leaf = with_views(item.leaf, own)
            items.append(replaced(item, leaf=leaf))
        return replace(body, items=tuple(items))

    return replace(function, body=visit(function.body)) if ranges else function


def _part_of_range(whole: t.Apply, view: t.ArrayView, number: int) -> t.Apply | None:
    """Return the range that the first step of a view cuts out of a range; None for another step, or where floats would round otherwise."""
    (array,), (start, step) = whole.results, whole.operands
    cut = view.steps[0]
    if not isinstance(cut, Cut) or isinstance(start, t.ArrayView) or isinstance(step, t.ArrayView) or s.elements_in((cut.start, cut.stop)) \
            or not (array.dtype.is_integer or (cut.start == Const(0) and cut.step == 1)):
        return None
    part = replace(array, id=number, name=f"{array.name}.part", shape=t.ArrayView(array, view.steps[:1]).shape)
    return replace(whole, operands=(s.add(start, s.mul(step, cut.start)), s.mul(step, Const(cut.step))), results=(part,))


# -- common values -----------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Values:
    """The facts at a place of a body: the operations done so far, by their meaning, and the values that replace other values.

    `versions`: how often a part of the state was written, by the array's number; another version is another value. `changing`: the state
    that is written anywhere; `elements`: the arrays of which scalars read elements.
    """

    changing: frozenset[int]
    elements: frozenset[int]
    done: dict[Key, tuple[t.Array, ...]] = field(default_factory=dict)
    known: dict[int, t.ArrayView] = field(default_factory=dict)
    numbers: dict[int, Const] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    clock: list[int] = field(default_factory=lambda: [0])

    def inside(self) -> _Values:
        """Return a copy of the facts for a body inside; facts added to the copy stay there."""
        return replace(self, done=dict(self.done), versions=dict(self.versions))

    def write(self, arrays: Iterable[int]) -> None:
        """Note that arrays change."""
        for number in arrays:
            self.clock[0] += 1
            self.versions[number] = self.clock[0]


def _changing_and_elements(function: t.TensorFunction) -> tuple[frozenset[int], frozenset[int]]:
    """Return the arrays that are written anywhere, and those of which scalars read elements."""
    written, elements = set[int](), set[int]()
    for item in flow.walk(function.body):
        if isinstance(item, flow.Do):
            elements |= item.leaf.elements
            if isinstance(item.leaf, t.Put):
                written.add(item.leaf.target.array.id)
        else:
            for evaluation in flow.evaluations(item):
                elements |= s.elements_in(evaluation.scalars)
    return frozenset(written), frozenset(elements)


def _merged(function: t.TensorFunction, values: _Values) -> t.TensorFunction:
    """Return a function in which an operation that repeats another one is read from there."""
    body = _merged_body(function.body, values)
    return replace(function, body=body, results=tuple(_read(view, values) for view in function.results))


def _merged_body(body: t.Body, values: _Values) -> t.Body:
    items: list[t.Item] = []
    for item in body.items:
        match item:
            case flow.Do(statement):
                kept = _merged_statement(statement, values)
                if kept is not None:
                    items.append(replaced(item, leaf=kept))
            case flow.Loop():
                changed = arrays_written(item)
                values.write(changed)       # by an iteration before
                inner = values.inside()
                items.append(replace(item, start=_number(item.start, values), stop=_number(item.stop, values),
                                     step=_number(item.step, values), body=_merged_body(item.body, inner)))
                values.write(changed)
            case flow.Choice(branches, otherwise):
                changed = arrays_written(item)
                sides = tuple(replace(branch, condition=_number(branch.condition, values),
                                      body=_merged_body(branch.body, values.inside())) for branch in branches)
                items.append(flow.Choice(sides, _merged_body(otherwise, values.inside())))
                values.write(changed)
            case _:
                items.append(item)
    return replace(body, items=tuple(items))


def _merged_statement(statement: t.Statement, values: _Values) -> t.Statement | None:
    """Return a statement that reads what stands for its operands; None for an operation that is done already."""
    statement = _reading(statement, values)
    if isinstance(statement, t.Put):
        values.write((statement.target.array.id,))
    if not isinstance(statement, t.Apply):
        return statement
    statement = _with_numbers(statement, values)
    same_as = _unchanged(statement, values)
    if same_as is not None:
        values.known[statement.results[0].id] = same_as
        return None
    read = {view.array.id for view in statement.reads} | statement.elements
    types = tuple((array.dtype, array.contracts) for array in statement.results)
    shapes = tuple(array.shape for array in statement.results)
    key: Key = (statement.op, tuple((type(one), one, _exact(one)) for one in statement.operands), repr(statement.attrs), statement.group,
                types, shapes, tuple(sorted((number, values.versions.get(number, 0)) for number in read if number in values.changing)))
    earlier = values.done.get(key) if statement.reads else None      # what no array tells is cheaper to make again than to keep in memory
    if earlier is None:
        values.done[key] = statement.results
        if statement.op == FULL and isinstance(statement.operands[0], Const):
            values.numbers[statement.results[0].id] = statement.operands[0]
        return statement
    for own, other in zip(statement.results, earlier, strict=True):
        values.known[own.id] = t.ArrayView(other)
    return None


def _exact(operand: t.Operand) -> str:
    """Return what tells numbers apart that compare as equal: 0 and -0.0, 1 and True."""
    return "" if isinstance(operand, t.ArrayView) else repr(operand)


def _read(view: t.ArrayView, values: _Values) -> t.ArrayView:
    """Return a view of the array that stands for a view's."""
    found = values.known.get(view.array.id)
    return view if found is None else composed(found.then(*view.steps))


def _number(node: Scalar, values: _Values) -> Scalar:
    """Return a scalar whose elements are read from the arrays that stand for others."""
    def change(inner: Scalar) -> Scalar | None:
        if isinstance(inner, Element) and inner.tensor.id in values.known:
            found = values.known[inner.tensor.id]
            if not found.steps:
                return Element(found.array.ref, tuple(_number(at, values) for at in inner.index))
        return None
    return s.substitute(node, change) if s.elements_in((node,)) & values.known.keys() else node


def _reading(statement: t.Statement, values: _Values) -> t.Statement:
    changed = statement
    if values.elements & values.known.keys():
        (item,) = with_scalars(flow.Sequence((flow.Do(statement),)), lambda node: _number(node, values)).items
        assert isinstance(item, flow.Do)
        changed = item.leaf
    return with_views(changed, lambda view: _read(view, values))


def _with_numbers(statement: t.Apply, values: _Values) -> t.Apply:
    """Return an operation on numbers in place of arrays of one number, where another operand has the result's shape."""
    entry = entry_of(statement.op)
    if not isinstance(entry, Elementwise) or entry.mask_first or len(statement.operands) < 2:
        return statement
    shape = statement.results[0].shape
    known = [values.numbers.get(one.array.id) if isinstance(one, t.ArrayView) else None for one in statement.operands]
    kept = any(number is None and isinstance(one, t.ArrayView) and one.shape == shape
               for number, one in zip(known, statement.operands, strict=True))
    if not kept:
        return statement
    return replaced(statement, operands=tuple([one if number is None else number
                                               for number, one in zip(known, statement.operands, strict=True)]))


def _unchanged(statement: t.Apply, values: _Values) -> t.ArrayView | None:
    """Return the operand that an operation returns as it is: x of x * 1. State, which may change later, is none."""
    entry = entry_of(statement.op)
    if not isinstance(entry, Elementwise) or len(statement.operands) != 2:
        return None
    for place, side in ((0, Side.RIGHT), (1, Side.LEFT)):
        x, number = statement.operands[place], statement.operands[1 - place]
        if isinstance(x, t.ArrayView) and isinstance(number, Const) and not isinstance(number.value, bool) \
                and not values.changing & {x.array.id, *s.elements_in(x.scalars)} \
                and (not x.steps or statement.results[0].id not in values.elements) and x.shape == statement.results[0].shape \
                and x.dtype is statement.results[0].dtype and entry.is_neutral(number.value, x.dtype, side):
            return x
    return None


# -- values that nothing reads -----------------------------------------------------------------------------------------
def _live(function: t.TensorFunction) -> t.TensorFunction:
    """Return a function without what nothing reads."""
    read = live_arrays(function)
    return replace(function, body=_kept(function.body, read),
                   constants=tuple(constant for constant in function.constants if constant.array.id in read))


def live_arrays(function: t.TensorFunction) -> frozenset[int]:
    """Return the ids of the arrays that results, InOut parameters, prints, bounds or conditions depend on."""
    live = {view.array.id for view in function.results} | {param.array.id for param in function.params if param.written}
    live |= s.elements_in(one for view in function.results for one in view.scalars)
    needs: list[tuple[frozenset[int], frozenset[int]]] = []      # what makes or writes an array, and what it reads

    def visit(item: t.Item, around: frozenset[int]) -> None:
        bounds = s.elements_in(one for evaluation in flow.evaluations(item) for one in evaluation.scalars)
        if isinstance(item, flow.Do):
            read = frozenset(view.array.id for view in item.leaf.reads) | item.leaf.elements | around
            made = frozenset(array.id for array in item.leaf.defines)
            if isinstance(item.leaf, t.Put):
                made |= {item.leaf.target.array.id}
            if isinstance(item.leaf, t.Show):
                live.update(read)
            else:
                needs.append((made, read))
        for inner in flow.children(item):
            visit(inner, around | bounds)

    visit(function.body, frozenset())
    n_before = -1
    while len(live) > n_before:
        n_before = len(live)
        for made, read in reversed(needs):      # what a value needs mostly stands in front of it
            if not made.isdisjoint(live):
                live |= read
    return frozenset(live)


def _kept(body: t.Body, read: frozenset[int]) -> t.Body:
    """Return a body without statements whose results nothing reads, and without loops and choices that become empty."""
    items: list[t.Item] = []
    for item in body.items:
        match item:
            case flow.Do(t.Put(target)) if target.array.id not in read:
                continue
            case flow.Do(t.Apply() | t.Make() as leaf) if not any(array.id in read for array in leaf.defines):
                continue
            case flow.Loop(body=inside):
                kept = _kept(inside, read)
                if kept.items:
                    items.append(replace(item, body=kept))
            case flow.Choice(branches, otherwise):
                sides = tuple(replace(branch, body=_kept(branch.body, read)) for branch in branches)
                rest = _kept(otherwise, read)
                if rest.items or any(side.body.items for side in sides):
                    items.append(flow.Choice(sides, rest))
            case _:
                items.append(item)
    return replace(body, items=tuple(items))

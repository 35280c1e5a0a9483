"""Replace loop variables and other scalars in items of a tensor function."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace

from pto_wsp.ir import flow, scalar
from pto_wsp.ir.scalar import Scalar
from pto_wsp.ir.tensor_function import Apply, Array, ArrayStep, ArrayView, Body, Item, Make, Operand, Put, Refold, Show, Statement, TileCut
from pto_wsp.ir.view import Cut, Pick
from pto_wsp.values import replaced


def substituted(body: Body, values: Mapping[Scalar, Scalar]) -> Body:
    """Return a body with scalars replaced, in statements, bounds and conditions."""
    return with_scalars(body, lambda node: scalar.substitute(node, values.get))


def with_step_scalars(step: ArrayStep, change: Callable[[Scalar], Scalar]) -> ArrayStep:
    """Return a step of a view with `change` applied to its scalars; the same object, if none changes."""
    match step:
        case Pick(_, index):
            return replaced(step, index=change(index))
        case Cut(_, start, stop):
            return replaced(step, start=change(start), stop=change(stop))
        case TileCut(_, start):
            return replaced(step, start=change(start))
        case Refold(shape):
            return replaced(step, shape=tuple([change(extent) for extent in shape]))
        case _:
            return step


def with_scalars(body: Body, given: Callable[[Scalar], Scalar], shapes_only: bool = False, done: Container[int] = ()) -> Body:
    """Return a body with `given` applied to each scalar, or to the extents of arrays alone. `done`: Python ids of statements to keep."""
    def change(node: Scalar) -> Scalar:
        return node if shapes_only else given(node)

    arrays: dict[int, tuple[Array, Array]] = {}      # by Python id, before and after: one array stands in many views

    def array(one: Array) -> Array:
        known = arrays.get(id(one))
        if known is not None:
            return known[1]
        changed = replaced(one, shape=tuple(map(given, one.shape)))
        arrays[id(one)] = one, changed
        return changed

    def step(one: ArrayStep) -> ArrayStep:
        return one if shapes_only and not isinstance(one, Refold) else with_step_scalars(one, change)

    def view(one: ArrayView) -> ArrayView:
        return replaced(one, array=array(one.array), steps=tuple(map(step, one.steps)))

    def operand(one: Operand) -> Operand:
        return view(one) if isinstance(one, ArrayView) else change(one)

    def statement(one: Statement) -> Statement:
        if id(one) in done:
            return one
        match one:
            case Apply(_, operands, results):
                return replaced(one, operands=tuple(map(operand, operands)), results=tuple(map(array, results)))
            case Make():
                return replaced(one, array=array(one.array))
            case Put(target, value, table):
                return replaced(one, target=view(target), value=operand(value), table=None if table is None else view(table))
            case Show():
                return replaced(one, value=view(one.value))

    def item(one: Item) -> Item:
        match one:
            case flow.Do(leaf):
                return replaced(one, leaf=statement(leaf))
            case flow.Loop():
                return flow.with_bodies(replace(one, start=change(one.start), stop=change(one.stop), step=change(one.step)), inside)
            case flow.Choice(branches):
                sides = tuple(replace(branch, condition=change(branch.condition)) for branch in branches)
                return flow.with_bodies(replace(one, branches=sides), inside)
            case _:
                return one

    def inside(one: Body) -> Body:
        return replace(one, items=tuple(map(item, one.items)))

    return inside(body)

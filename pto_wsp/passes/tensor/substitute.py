"""Replace loop variables and other scalars in items of a tensor function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_

from pto_wsp.ir import flow, scalar
from pto_wsp.ir.scalar import Scalar
from pto_wsp.ir.tensor_function import Apply, Array, ArrayStep, ArrayView, Body, Item, Make, Operand, Put, Refold, Show, Statement, TileCut
from pto_wsp.ir.view import Cut, Pick


def substituted(body: Body, values: Mapping[Scalar, Scalar]) -> Body:
    """Return a body with scalars replaced, in statements, bounds and conditions."""
    return with_scalars(body, lambda node: scalar.substitute(node, values.get))


def with_step_scalars(step: ArrayStep, change: Callable[[Scalar], Scalar]) -> ArrayStep:
    """Return a step of a view with `change` applied to its scalars."""
    match step:
        case Pick(dim, index):
            return Pick(dim, change(index))
        case Cut(dim, start, stop, by):
            return Cut(dim, change(start), change(stop), by)
        case TileCut(dim, start, size):
            return TileCut(dim, change(start), size)
        case Refold(shape):
            return Refold(tuple(map(change, shape)))
        case _:
            return step


def with_scalars(body: Body, given: Callable[[Scalar], Scalar], shapes_only: bool = False) -> Body:
    """Return a body with `given` applied to each scalar, or to the extents of arrays alone."""
    def change(node: Scalar) -> Scalar:
        return node if shapes_only else given(node)

    arrays: dict[int, tuple[Array, Array]] = {}      # by Python id, before and after: one array stands in many views

    def array(one: Array) -> Array:
        known = arrays.get(id(one))
        if known is not None:
            return known[1]
        shape = tuple(map(given, one.shape))
        changed = one if all(map(is_, shape, one.shape)) else replace(one, shape=shape)
        arrays[id(one)] = one, changed
        return changed

    def step(one: ArrayStep) -> ArrayStep:
        return one if shapes_only and not isinstance(one, Refold) else with_step_scalars(one, change)

    def view(one: ArrayView) -> ArrayView:
        found, steps = array(one.array), tuple(map(step, one.steps))
        return one if found is one.array and all(map(is_, steps, one.steps)) else ArrayView(found, steps)

    def operand(one: Operand) -> Operand:
        return view(one) if isinstance(one, ArrayView) else change(one)

    def statement(one: Statement) -> Statement:
        match one:
            case Apply(_, operands, results):
                read, made = tuple(map(operand, operands)), tuple(map(array, results))
                same = all(map(is_, read, operands)) and all(map(is_, made, results))
                return one if same else replace(one, operands=read, results=made)
            case Make():
                state = array(one.array)
                return one if state is one.array else replace(one, array=state)
            case Put(target, value, table):
                changed = replace(one, target=view(target), value=operand(value), table=None if table is None else view(table))
                same = changed.target is target and changed.value is value and changed.table is table
                return one if same else changed
            case Show():
                shown = view(one.value)
                return one if shown is one.value else replace(one, value=shown)

    def item(one: Item) -> Item:
        match one:
            case flow.Do(leaf):
                changed = statement(leaf)
                return one if changed is leaf else flow.Do(changed)
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

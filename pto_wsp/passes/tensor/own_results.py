"""Give each result an array of its own: a view, a parameter, a constant, or what is returned twice is copied.

    return x, acc.T, acc.T                    before
    out_copy[...] = x; ...; return out_copy, ...    after

A view that only drops or adds dimensions of extent 1 stays: its array is the result in another shape.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.ir import flow
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import Const, Element, Scalar, substitute
from pto_wsp.ir.tensor_function import Array, ArrayStep, ArrayView, Insert, Item, Make, Put, Statement, TensorFunction
from pto_wsp.ir.view import Pick
from pto_wsp.passes.tensor.effects import fresh_ids, with_views
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.passes.tensor.substitute import with_scalars


def own_results(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function with results that are arrays of its body, each once."""
    return replace(planned, function=with_own_results(planned.function))


def with_own_results(function: TensorFunction, of_state: bool = False) -> TensorFunction:
    """Return a function with results that are arrays of its body, each once; with `of_state`, those of another shape are state."""
    made = [item.leaf for item in function.body.items if isinstance(item, flow.Do)]
    body = {array.id for leaf in made for array in leaf.defines}
    state = {leaf.array.id for leaf in made if isinstance(leaf, Make)}
    taken: set[int] = set()
    results: list[ArrayView] = []
    items: list[Item] = list(function.body.items)
    ids, names = fresh_ids(function), Names()
    for view in function.results:
        array = view.array
        if array.id in body - taken and _reshapes_only(view) and (not of_state or not view.steps or array.id in state):
            taken.add(array.id)
            results.append(view)
            continue
        copy = Array(next(ids), names.take(f"{array.name}.copy"), view.shape, array.dtype)
        items += [flow.Do(Make(copy, None, function.span)), flow.Do(Put(ArrayView(copy), view, span=function.span))]
        results.append(ArrayView(copy))
    return replace(function, body=replace(function.body, items=tuple(items)), results=tuple(results))


def in_shape_of_results(function: TensorFunction) -> TensorFunction:
    """Return a function in which state that is a result has the shape of the result, and views of the state begin with the other shape."""
    changed = {view.array.id: (replace(view.array, shape=view.shape), tuple(_inverse(step) for step in reversed(view.steps)))
               for view in function.results if view.steps}
    if not changed:
        return function

    def view_of(view: ArrayView) -> ArrayView:
        if view.array.id not in changed:
            return view
        array, steps = changed[view.array.id]
        return ArrayView(array, (*steps, *view.steps))

    def scalar_of(node: Scalar) -> Scalar | None:
        if not isinstance(node, Element) or node.tensor.id not in changed:
            return None
        array, steps = changed[node.tensor.id]
        index = [substitute(one, scalar_of) for one in node.index]
        for step in reversed(steps):
            if isinstance(step, Insert):
                del index[step.dim]
            elif isinstance(step, Pick):
                index.insert(step.dim, Const(0))
        return Element(array.ref, tuple(index))

    def leaf_of(leaf: Statement) -> Statement:
        if isinstance(leaf, Make):
            return replace(leaf, array=changed[leaf.array.id][0]) if leaf.array.id in changed else leaf
        return with_views(leaf, view_of)

    body = with_scalars(flow.rewrite_leaves(function.body, leaf_of), lambda node: substitute(node, scalar_of))
    results = tuple(ArrayView(changed[view.array.id][0]) if view.array.id in changed else view for view in function.results)
    return replace(function, body=body, results=results)


def _inverse(step: ArrayStep) -> ArrayStep:
    assert isinstance(step, Pick | Insert)
    return Insert(step.dim) if isinstance(step, Pick) else Pick(step.dim, Const(0))


def _reshapes_only(view: ArrayView) -> bool:
    """Tell whether a view is all of its array, with dimensions of extent 1 dropped or added."""
    shape = list(view.array.shape)
    for step in view.steps:
        match step:
            case Pick(dim, Const(0)) if shape[dim] == Const(1):
                del shape[dim]
            case Insert(dim):
                shape.insert(dim, Const(1))
            case _:
                return False
    return True

"""A pass of the tensor level that goes wrong is seen: mutants of what each gives, and of what it decides by, on drawn functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import InternalError, PtoError
from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.scalar import Const, add, sub
from pto_wsp.ir.view import Cut
from pto_wsp.passes.tensor import groups, partition, simplify
from pto_wsp.passes.tensor.axes import Axes
from pto_wsp.passes.tensor.effects import Effects
from pto_wsp.passes.tensor.passes import TENSOR_PASSES, TensorPass
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.run.tensor_pass_check import check_tensor_passes, drawn_arguments
from pto_wsp.schedule.tiling import TilePlan
from tests.laws.generated_tensors import GeneratedTensors, generated
from tests.tensor_functions import FunctionBuilder

CONTEXT = TensorContext(builtin_arch("ascend_910b"), "cpu_sim", {"t": 16, "n": 16})
SEEDS = range(10)
NAMES = [one.name for one in TENSOR_PASSES]
FAST = ("own_results",)
Mutant = Callable[[t.TensorFunction], t.TensorFunction]


@cache
def before(seed: int, name: str) -> tuple[GeneratedTensors, PlannedFunction] | None:
    """A drawn function as the pass of a name gets it; None where it cannot be cut."""
    case = generated(seed)
    planned = PlannedFunction(case.function, TilePlan(case.function.name, "ascend_910b", "cpu_sim"))
    try:
        for one in TENSOR_PASSES[:NAMES.index(name)]:
            planned = one.run(planned, CONTEXT)
        TENSOR_PASSES[NAMES.index(name)].run(planned, CONTEXT)
    except PtoError:
        return None
    return case, planned


# -- mutants of what a pass gives --------------------------------------------------------------------------------------
def leaves_changed(function: t.TensorFunction, change: Callable[[t.Statement], t.Statement | None]) -> t.TensorFunction:
    """The function with the last statement changed that `change` takes."""
    places = [number for number, leaf in enumerate(flow.leaves(function.body)) if change(leaf) is not None]
    numbers = itertools.count()

    def of(leaf: t.Statement) -> t.Statement:
        changed = change(leaf) if next(numbers) in places[-1:] else None
        return leaf if changed is None else changed
    return replace(function, body=flow.rewrite_leaves(function.body, of))


def swapped_operands(function: t.TensorFunction) -> t.TensorFunction:
    def of(leaf: t.Statement) -> t.Statement | None:
        return replace(leaf, operands=leaf.operands[::-1]) if isinstance(leaf, t.Apply) and leaf.op == "sub" else None
    return leaves_changed(function, of)


def another_operation(function: t.TensorFunction) -> t.TensorFunction:
    others = {"rowmax": "rowmin", "rowsum": "rowmax", "colmax": "colmin", "colsum": "colmax", "maximum": "minimum", "minimum": "maximum",
              "add": "sub"}

    def of(leaf: t.Statement) -> t.Statement | None:
        return replace(leaf, op=others[leaf.op]) if isinstance(leaf, t.Apply) and leaf.op in others else None
    return leaves_changed(function, of)


def other_places(function: t.TensorFunction) -> t.TensorFunction:
    """A slice or a tile of as many elements, one place behind or before."""
    def step(one: t.ArrayStep) -> t.ArrayStep:
        match one:
            case t.TileCut(_, start, size) if size > 1:
                return replace(one, start=add(start, Const(1)))
            case Cut(_, Const(start), Const(stop), 1) if start > 0:
                return replace(one, start=Const(start - 1), stop=Const(stop - 1))
            case _:
                return one

    def of(leaf: t.Statement) -> t.Statement | None:
        if isinstance(leaf, t.Apply):
            operands = tuple(replace(one, steps=tuple(map(step, one.steps))) if isinstance(one, t.ArrayView) else one
                             for one in leaf.operands)
            return replace(leaf, operands=operands) if operands != leaf.operands else None
        return None
    return leaves_changed(function, of)


def without_a_write(function: t.TensorFunction) -> t.TensorFunction:
    def of(leaf: t.Statement) -> t.Statement | None:
        return t.Show("", leaf.target) if isinstance(leaf, t.Put) and leaf.target.array.id in read else None
    read = {view.array.id for view in function.results} | {one.array.id for one in function.params}
    return leaves_changed(function, of)


def shorter_loops(function: t.TensorFunction) -> t.TensorFunction:
    def shorter(item: t.Item) -> t.Item:
        return replace(item, stop=sub(item.stop, Const(1))) if isinstance(item, flow.Loop) else item
    return replace(function, body=replace(function.body, items=tuple(map(shorter, function.body.items))))


def other_order(function: t.TensorFunction) -> t.TensorFunction:
    """Two neighbours that write change places, of which one reads what the other makes."""
    items = list(function.body.items)
    for at in range(len(items) - 1):
        first, second = items[at], items[at + 1]
        made = {leaf.target.array.id for leaf in flow.leaves(first) if isinstance(leaf, t.Put)}
        read = {view.array.id for leaf in flow.leaves(second) for view in leaf.reads}
        if made & read:
            items[at], items[at + 1] = second, first
            break
    return replace(function, body=replace(function.body, items=tuple(items)))


MUTANTS: tuple[Mutant, ...] = (swapped_operands, another_operation, other_places, without_a_write, shorter_loops, other_order)


def mutated(one: TensorPass, mutant: Mutant) -> TensorPass:
    def run(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
        after = one.run(planned, context)
        return replace(after, function=mutant(after.function))
    return replace(one, run=run, verify_after=lambda planned: None)


def outcomes(one: TensorPass, mutant: Mutant) -> Iterator[bool]:
    """Yield for each drawn function that the mutant changes whether the check names the pass."""
    for seed in SEEDS:
        found = before(seed, one.name)
        if found is None:
            continue
        case, planned = found
        after = one.run(planned, CONTEXT)
        if mutant(after.function) == after.function:
            continue
        try:
            check_tensor_passes(planned, CONTEXT, case.arrays, case.scalars, (mutated(one, mutant),))
        except (InternalError, PtoError):         # the check names the pass, or the evaluator a tile that does not fit
            yield True
        else:
            yield False


@pytest.mark.parametrize("name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in NAMES])
def test_mutants_of_what_a_pass_gives_are_seen(name: str) -> None:
    one = TENSOR_PASSES[NAMES.index(name)]
    check_all = [(mutant.__name__, list(outcomes(one, mutant))) for mutant in MUTANTS]
    applied = {mutant: found for mutant, found in check_all if found}
    assert sum(any(found) for found in applied.values()) >= 4, applied
    every = [seen for found in applied.values() for seen in found]
    assert sum(every) >= 0.6 * len(every), applied      # the others change what no result has: a minimum of two equal numbers


# -- mutants of what a pass decides by ---------------------------------------------------------------------------------
def by_hand() -> list[GeneratedTensors]:
    """What is drawn seldom: a sum without a bound that another value waits for, and state that a loop writes between two reads."""
    f = FunctionBuilder("waits")
    n = f.symbol("n")
    x = f.param("x", (3, n))
    f.give(f.apply("rowsum", f.apply("abs", f.apply("sub", x, f.apply("rowmax", x)))))
    g = FunctionBuilder("written")
    y, state = g.param("y", (4,)), g.make("state", (4,), 0)
    first = g.apply("neg", state)
    with g.loop(3):
        g.put(state, g.apply("add", state, y))
    g.give(g.apply("add", first, g.apply("neg", state)))
    return [GeneratedTensors(f.function(), {"n": 6}, drawn_arguments(f.function(), {"n": 6}, 1), {}),
            GeneratedTensors(g.function(), {}, drawn_arguments(g.function(), {}, 1), {})]


def caught(n_seeds: int = 20) -> bool:
    """Tell whether the check of the passes, or a pass itself, fails for one of the functions."""
    for number, case in enumerate((*by_hand(), *map(generated, range(n_seeds)))):
        planned = PlannedFunction(case.function, TilePlan(case.function.name, "ascend_910b", "cpu_sim"))
        try:
            check_tensor_passes(planned, CONTEXT, case.arrays, case.scalars)
        except InternalError:
            return True
        except PtoError:
            if number < len(by_hand()):      # what is drawn may have an axis without a bound
                return True
        except (AssertionError, LookupError, ValueError):       # of a pass, or of the evaluator
            return True
    return False


NOTHING = Effects()


@pytest.mark.slow
@pytest.mark.parametrize(("owner", "name", "mutant"), [
    (Axes, "roles", lambda self, axis: frozenset()),                          # every axis is free
    (groups, "can_walk", lambda axes, items, axis: True),                     # every sum is walked in steps
    (simplify, "arrays_written", lambda *given, **named: frozenset()),        # writes change nothing
    (partition, "effects_of", lambda *given, **named: NOTHING),               # no group waits for another
    (partition, "users_of", lambda *given, **named: {}),                      # no value is read by another group
], ids=["roles", "can_walk", "simplify", "partition", "users"])
def test_mutants_of_what_a_pass_decides_by_are_seen(owner: Any, name: str, mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hasattr(owner, name)
    monkeypatch.setattr(owner, name, mutant)
    assert caught()


def test_without_a_mutant_nothing_is_seen() -> None:
    assert not caught(6)

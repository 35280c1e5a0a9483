"""Iterations without an order touch different elements: proved for all sizes, or refused with two of them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from pto_wsp import DType
from pto_wsp.check.unordered import check_unordered
from pto_wsp.check.verdict import Verdict
from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Const, Element, add, evaluate, maximum, minimum, mul
from pto_wsp.ir.view import Cut, Pick
from tests.examples.tensors import EXAMPLES
from tests.tensor_functions import FunctionBuilder


@pytest.mark.parametrize("name", [name if name in ("moe", "softmax") else pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLES])
def test_tiles_and_iterations_of_the_examples_are_proved_apart(name: str) -> None:
    for arch in ("host_cpu", "ascend_910b"):
        found = check_unordered(EXAMPLES[name].function.plan(arch=arch, until="cut_tiles").function)
        assert found and {one.verdict for one in found} == {Verdict.PROVED}


def longer(step: Any) -> Any:
    return replace(step, size=step.size + 1) if isinstance(step, t.TileCut) else step


def test_a_mutant_whose_tiles_overlap_is_refused() -> None:
    function = EXAMPLES["rmsnorm_linear"].function.plan(arch="ascend_910b", until="cut_tiles").function

    def of(leaf: Any) -> Any:
        return replace(leaf, target=replace(leaf.target, steps=tuple(map(longer, leaf.target.steps)))) if isinstance(leaf, t.Put) else leaf

    found = check_unordered(replace(function, body=flow.rewrite_leaves(function.body, of)))
    assert any(one.error is not None and "t_i = 0, and again where t_i = 1" in str(one.error) for one in found)


@pytest.mark.parametrize(("contract", "verdict"), [(Contract.INJECTIVE, Verdict.PROVED), (None, Verdict.COUNTEREXAMPLE)])
def test_a_contract_of_a_table_proves_rows_apart(contract: Contract | None, verdict: Verdict) -> None:
    f = FunctionBuilder()
    n = f.symbol("n")
    table = f.param("table", (n,), DType.I32, contracts=(contract,) if contract else ())
    out = f.make("out", (n, 4), 0)
    with f.loop(n, ordered=False) as i:
        row = Element(table.array.ref, (i,))
        f.put(out.then(Pick(0, row)), 1)
    f.give(out)
    assert {one.verdict for one in check_unordered(f.function())} == {verdict}


# -- drawn accesses ----------------------------------------------------------------------------------------------------
def drawn(seed: int) -> tuple[t.TensorFunction, list[tuple[bool, Any]]]:
    """A loop of two accesses to rows and columns, and for each whether it writes, and its rows and columns in an iteration of a size."""
    draw, f = random.Random(seed), FunctionBuilder()
    n = f.symbol("n")
    out, reads = f.make("out", (n, 6), 0), []
    accesses: list[tuple[bool, Any]] = []
    with f.loop(n, ordered=False, step=draw.choice((1, 2))) as i:
        for number in range(2):
            size, by, shift = draw.choice((1, 2, 3)), draw.choice((0, 1, 2, 3)), draw.choice((0, 0, 1))
            low, high = sorted(draw.sample(range(7), 2))
            step = draw.choice((1, 1, 2))
            start = minimum(maximum(add(mul(i, Const(by)), Const(shift)), Const(0)), n)
            stop = minimum(add(start, Const(size)), n)
            view = out.then(Cut(0, start, stop), Cut(1, Const(low), Const(high), step))
            writes = number == 0 or draw.random() < 0.6
            if writes:
                f.put(view, 1)
            else:
                reads.append(f.apply("neg", view))

            def places(turn: int, extent: int, start: Any = start, stop: Any = stop, columns: Any = range(low, high, step)) -> set[Any]:
                def value(node: Any) -> int:
                    return int(evaluate(node, lambda leaf: turn if leaf == i else extent))
                return {(row, column) for row in range(value(start), value(stop)) for column in columns}
            accesses.append((writes, places))
    f.give(out)
    return f.function(), accesses


def meets(function: t.TensorFunction, accesses: list[tuple[bool, Any]]) -> bool:
    (loop,) = [item for item in function.body.items if isinstance(item, flow.Loop)]
    step = int(loop.step.value)      # type: ignore[union-attr]
    for extent in (3, 10, 27):
        turns = {turn: [(writes, places(turn, extent)) for writes, places in accesses] for turn in range(0, extent, step)}
        if any((one or other) and not here.isdisjoint(there) for first, mine in turns.items() for second, theirs in turns.items()
               if first != second for one, here in mine for other, there in theirs):
            return True
    return False


def test_verdicts_are_those_of_brute_force() -> None:
    seen = {verdict: 0 for verdict in Verdict}
    for seed in range(80):
        function, accesses = drawn(seed)
        for one in check_unordered(function):
            seen[one.verdict] += 1
            if one.verdict is not Verdict.NOT_PROVED:
                assert (one.verdict is Verdict.COUNTEREXAMPLE) == meets(function, accesses), f"seed {seed}: {function}"
    assert seen[Verdict.PROVED] > 10 and seen[Verdict.COUNTEREXAMPLE] > 25 and seen[Verdict.NOT_PROVED] < 8, seen

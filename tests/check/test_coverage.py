"""What is read of an undefined array was written before, for all sizes: proved, or warned of at both lines."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Injective, Monotone, Out, P, Symbol, Tensor, Tile, ceildiv, jit, kernel, pto, tt, workload
from pto_wsp.check.coverage import check_coverage, unwritten_warnings
from pto_wsp.check.verdict import Verdict
from pto_wsp.errors import RunBoundsError, UnwrittenError
from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.scalar import Const, Op, Scalar, add, binary, minimum, mul, sub
from pto_wsp.ir.view import Cut, Pick
from pto_wsp.run.tensor_evaluate import evaluate
from tests.examples.tensors import EXAMPLES
from tests.tensor_functions import FunctionBuilder

F32, I32 = DType.F32, DType.I32
X = np.ones((9, 8), np.float32)


# -- programs of a user ------------------------------------------------------------------------------------------------
@jit
def halves(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    out[:, :5] = x[:, :5]
    out[:, 5:] = x[:, 5:]
    return out


@jit
def stripes(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    out[:, ::2] = x[:, 1::2]
    out[:, 1::2] = x[:, ::2]
    return out


@jit
def both_sides(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    for i in tt.each(x.shape[0]):
        with tt.when(i > 2):
            out[i] = x[i]
        with tt.otherwise():
            out[i] = x[i] * 2
    return out


@jit
def from_the_row_before(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    for i in tt.loop(x.shape[0]):
        with tt.when(i > 0):
            out[i] = out[i - 1] + x[i]
        with tt.otherwise():
            out[i] = x[i]
    return out


@jit
def in_blocks(x: Tensor["t", 8, F32]):
    out = tt.empty((x.shape[0], 2, 8))
    for i, j in tt.each((x.shape[0] + 3) // 4, 2):
        out[i * 4:i * 4 + 4, j] = x[i * 4:i * 4 + 4] * j
    return out.reshape(x.shape[0], 16) * 2


@jit
def of_each_number(x: Tensor["t", 8, F32], number: Tensor["t", I32]):
    out, rows = tt.empty(x.shape), tt.rows_of(number, 3)
    for e in tt.each(3):
        mine = rows[e]
        out[mine] = x[mine] * (e + 1)
    return out


@jit
def some_columns(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    out[:, :5] = x[:, :5]
    return out


@jit
def without_the_last_row(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    for i in tt.each(x.shape[0] - 1):
        out[i] = x[i]
    return out


@jit
def whole_blocks_alone(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    for i in tt.each(x.shape[0] // 4):
        out[i * 4:i * 4 + 4] = x[i * 4:i * 4 + 4]
    return out


@jit
def one_side(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    for i in tt.each(x.shape[0]):
        with tt.when(i > 2):
            out[i] = x[i]
    return out + 1


@jit
def too_early(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    before = out + x
    out[:] = x
    return before, out


@jit
def from_the_row_behind(x: Tensor["t", 8, F32]):
    out = tt.empty(x.shape)
    for i in tt.loop(x.shape[0]):
        out[i] = out[i] + x[i]
    return out


@jit
def of_sequences(x: Tensor["t", 8, F32], starts: Monotone[Tensor["b", I32]]):
    out = tt.empty(x.shape)
    for b in tt.each(starts.shape[0] - 1):
        out[starts[b]:starts[b + 1]] = x[starts[b]:starts[b + 1]]
    return out


@jit
def at_places(x: Tensor["t", 8, F32], places: Injective[Tensor["t", I32]]):
    out = tt.empty(x.shape)
    out[places] = x
    return out


@jit
def at_places_one_by_one(x: Tensor["t", 8, F32], places: Injective[Tensor["t", I32]]):
    out = tt.empty(x.shape)
    for i in tt.each(x.shape[0]):
        out[places[i]] = x[i]
    return out


@jit
def at_blocks_of_places(x: Tensor["t", 8, F32], places: Injective[Tensor["t", I32]]):
    out = tt.empty(x.shape)
    for i in tt.loop(0, x.shape[0], 4):
        out[places[i:i + 4]] = x[i:i + 4]
    return out


@jit
def of_each_number_found_again(x: Tensor["t", 8, F32], number: Tensor["t", I32]):
    out = tt.empty(x.shape)
    for e in tt.each(3):
        mine = tt.rows_of(number, 3)[e]
        out[mine] = x[mine] * (e + 1)
    return out


@jit
def at_whole_blocks_of_places(x: Tensor["t", 8, F32], places: Injective[Tensor["t", I32]]):
    out = tt.empty(x.shape)
    for i in tt.each(x.shape[0] // 4):
        out[places[i * 4:i * 4 + 4]] = x[i * 4:i * 4 + 4]
    return out


@jit
def at_fewer_places(x: Tensor["t", 8, F32], places: Injective[Tensor["u", I32]]):
    out = tt.empty(x.shape)
    for i in tt.each(places.shape[0]):
        out[places[i]] = x[i]
    return out


@jit
def at_places_of_another_order_each(x: Tensor[8, 8, F32], keys: Tensor[2, 8, F32]):
    out = tt.empty(x.shape)
    for i in tt.loop(2):
        order = np.argsort(keys[i])
        out[order[i * 4:i * 4 + 4]] = x[i * 4:i * 4 + 4]
    return out


@jit
def of_other_numbers_each(x: Tensor["t", 8, F32], number: Tensor[3, "t", I32]):
    out = tt.empty(x.shape)
    for e in tt.loop(3):
        mine = tt.rows_of(number[e], 3)[e]
        out[mine] = x[mine] * (e + 1)
    return out


@jit
def from_places_to_ends(x: Tensor["t", 8, F32], places: Injective[Tensor["t", I32]], ends: Tensor["t", I32]):
    out = tt.empty(x.shape)
    for i in tt.loop(x.shape[0]):
        out[places[i]:ends[i]] = x[places[i]:ends[i]]
    return out


@jit
def at_a_place_that_moves(x: Tensor[8, 8, F32], to: Tensor[1, I32]):
    out, place = tt.empty(x.shape), tt.zeros((1,), dtype=I32)
    out[place[0]] = x[0]
    place[:] = to
    return out[place[0]] + 1


PROVED = (halves, stripes, both_sides, from_the_row_before, in_blocks, of_each_number, at_places, at_places_one_by_one, at_blocks_of_places,
          of_each_number_found_again)
NOT_PROVED = (some_columns, without_the_last_row, whole_blocks_alone, one_side, too_early, from_the_row_behind, of_sequences,
              at_whole_blocks_of_places, at_fewer_places, at_places_of_another_order_each, of_other_numbers_each,
              at_a_place_that_moves, from_places_to_ends)


@pytest.mark.parametrize("function", PROVED, ids=lambda one: one.__name__)
def test_writes_of_all_elements_are_proved(function: Any) -> None:
    assert {one.verdict for one in function.lower().checks.findings} == {Verdict.PROVED}      # filterwarnings makes a warning an error


@pytest.mark.parametrize("function", NOT_PROVED, ids=lambda one: one.__name__)
def test_elements_that_perhaps_nothing_wrote_are_warned_of_at_the_line(function: Any) -> None:
    with pytest.warns(UserWarning, match=r"nothing proves that all .*elements") as caught:
        lowered = function.lower()
    (warning,) = caught
    assert "`out`" in str(warning.message) and Path(warning.filename).name == Path(__file__).name
    said = Path(__file__).read_text().splitlines()[warning.lineno - 1]
    assert "out = tt.empty" in said if "is undefined here" in str(warning.message) else "out" in said
    assert [one.check for one in lowered.checks.findings if one.check.startswith("writes") and one.verdict is not Verdict.PROVED] == [
        "writes of `out`"]


def test_the_lines_of_the_array_and_of_the_read_are_named() -> None:
    planned = too_early.plan(until="cut_tiles").function
    ((text, span),) = unwritten_warnings(check_coverage(planned)[1])
    lines = Path(__file__).read_text().splitlines()
    assert lines[span.line - 1].strip() == "before = out + x"
    assert lines[int(text.partition("test_coverage.py:")[2].partition(",")[0]) - 1].strip() == "out = tt.empty(x.shape)"


@pytest.mark.parametrize("name", [name if name in ("moe", "softmax") else pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLES])
def test_writes_of_the_examples_are_proved(name: str) -> None:
    for arch in ("host_cpu", "ascend_910b"):
        findings, unwritten = check_coverage(EXAMPLES[name].function.plan(arch=arch, until="cut_tiles").function)
        assert findings and not unwritten


def floor_div(value: Scalar, by: Scalar) -> Scalar:
    return binary(Op.FLOORDIV, value, by)


# -- mutants of a function in tiled form ------------------------------------------------------------------------------
def later(step: Any) -> Any:
    return replace(step, start=add(step.start, Const(1))) if isinstance(step, t.TileCut) else step


def smaller(step: Any) -> Any:
    return replace(step, size=step.size - 1) if isinstance(step, t.TileCut) else step


def stepped(change: Callable[[Any], Any]) -> Callable[[t.TensorFunction], t.TensorFunction]:
    """Change the views that are written."""
    def mutant(function: t.TensorFunction) -> t.TensorFunction:
        def of(leaf: Any) -> Any:
            if not isinstance(leaf, t.Put):
                return leaf
            return replace(leaf, target=replace(leaf.target, steps=tuple(map(change, leaf.target.steps))))
        return replace(function, body=flow.rewrite_leaves(function.body, of))
    return mutant


def shorter_loops(function: t.TensorFunction) -> t.TensorFunction:
    items = tuple(replace(item, stop=sub(item.stop, Const(1))) if isinstance(item, flow.Loop) else item for item in function.body.items)
    return replace(function, body=flow.Sequence(items))


def rounded_down(function: t.TensorFunction) -> t.TensorFunction:
    items = tuple(replace(item, stop=floor_div(sub(item.stop, Const(0)), Const(2))) if isinstance(item, flow.Loop) else item
                  for item in function.body.items)
    return replace(function, body=flow.Sequence(items))


def without_writes(function: t.TensorFunction) -> t.TensorFunction:
    def kept(body: Any) -> Any:
        items = [replace(item, body=kept(item.body)) if isinstance(item, flow.Loop) else item for item in body.items
                 if not (isinstance(item, flow.Do) and isinstance(item.leaf, t.Put))]
        return flow.Sequence(tuple(items))
    return replace(function, body=kept(function.body))


def reads_first(function: t.TensorFunction) -> t.TensorFunction:
    """The kernels in the opposite order."""
    makes = [item for item in function.body.items if isinstance(item, flow.Do)]
    loops = [item for item in function.body.items if not isinstance(item, flow.Do)]
    return replace(function, body=flow.Sequence((*makes, *reversed(loops))))


@pytest.mark.parametrize("mutant", [stepped(later), stepped(smaller), shorter_loops, rounded_down, without_writes, reads_first],
                         ids=["later", "smaller", "shorter_loops", "rounded_down", "without_writes", "reads_first"])
def test_a_mutant_of_the_tiles_is_not_proved(mutant: Callable[[t.TensorFunction], t.TensorFunction]) -> None:
    function = EXAMPLES["rmsnorm_linear"].function.plan(arch="ascend_910b", until="cut_tiles").function
    assert not check_coverage(function)[1]
    assert check_coverage(mutant(function))[1]


@pytest.mark.parametrize("ordered", [True, False])
def test_the_iteration_before_has_written_if_there_is_an_order(ordered: bool) -> None:
    f = FunctionBuilder()
    n = f.symbol("n")
    out = f.make("out", (n, 4), None)
    f.put(out.then(Cut(0, Const(0), minimum(Const(1), n))), 1)
    with f.loop(n, start=1, ordered=ordered) as i:
        f.put(out.then(Pick(0, i)), f.apply("neg", out.then(Pick(0, sub(i, Const(1))))))
    f.give(out)
    assert bool(check_coverage(f.function())[1]) != ordered


# -- drawn writes ------------------------------------------------------------------------------------------------------
def drawn(seed: int) -> t.TensorFunction:
    """Writes of blocks of rows by loops of drawn bounds, and of rows and columns at constants; then all is read."""
    draw, f = random.Random(seed), FunctionBuilder()
    n = f.symbol("n")
    out = f.make("out", (n, 4), None)
    for _ in range(draw.randint(1, 3)):
        size = draw.choice((1, 2, 3))
        kind = draw.choice(("blocks", "blocks", "columns", "rows"))
        if kind == "columns":
            f.put(out.then(Cut(1, Const(draw.choice((0, 2))), Const(draw.choice((2, 4))), draw.choice((1, 1, 2)))), 1)
        elif kind == "rows":
            with f.loop(n, start=draw.choice((0, 1)), step=draw.choice((1, 2))) as i:
                f.put(out.then(Pick(0, i)), 1)
        else:
            stop = draw.choice((floor_div(add(n, Const(size - 1)), Const(size)), floor_div(n, Const(size)), n))
            with f.loop(stop, ordered=False) as i:
                tile = out.then(t.TileCut(0, add(mul(i, Const(size)), Const(draw.choice((0, 0, 1)))), draw.choice((size, size, size + 1))))
                f.put(tile if draw.random() < 0.6 else tile.then(Cut(1, Const(0), Const(2))), 1)
    f.give(f.apply("neg", out))
    return f.function()


def test_a_proof_holds_for_every_size_and_most_of_what_holds_is_proved() -> None:
    n_proved = n_whole = 0
    for seed in range(300):
        function = drawn(seed)
        try:
            whole = all(not np.isnan(evaluate(function, [], {"n": n})[0]).any() for n in range(9))
        except RunBoundsError:
            continue
        proved = not check_coverage(function)[1]
        assert whole or not proved, f"seed {seed}: {function}"
        n_whole, n_proved = n_whole + whole, n_proved + proved
    assert n_whole > 40 and n_proved > 0.9 * n_whole, (n_proved, n_whole)


# -- a run watches ----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_sanitized_run_watches_memory_that_the_sizes_of_a_run_make() -> None:
    n = Symbol("n")
    x, y, scratch = Tensor(None, (n, 8), F32, name="x"), Tensor(None, (n, 8), F32, name="y"), Tensor.empty((n, 8), F32)

    @kernel
    def half(a: In[Tile[4, 4, F32]], b: Out[Tile[4, 4, F32]]) -> None:
        pto.store(b, a * 2)

    @kernel
    def full(a: In[Tile[4, 8, F32]], b: Out[Tile[4, 8, F32]]) -> None:
        pto.store(b, a * 2)

    @workload
    def in_part() -> None:
        for i in P(ceildiv(n, 4)):
            half[i](x[i * 4:, :4].clip(4, 4), scratch[i * 4:, :4].clip(4, 4))
        for i in P(ceildiv(n, 4)):
            full[i](scratch[i * 4:].clip(4, 8), y[i * 4:].clip(4, 8))

    program = in_part().compile(sanitize=True)
    with pytest.raises(UnwrittenError, match="that nobody has written"):
        program.run(x=X, y=np.zeros((9, 8), np.float32), n=9)

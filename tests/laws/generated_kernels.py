"""Kernels that hypothesis draws: a list of typed steps, run as the body of a real `@kernel` with a fixed set of parameters.

`Recipe.build()` gives the kernel, `Recipe.arrays()` what it is bound to. A recipe is plain data, so a failing one prints and shrinks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from pto_wsp import DType, In, InOut, Kernel, Out, Scalar, Tensor, Tile, kernel, pto
from pto_wsp.ops.rounding import COMPUTED, FLOATS, MATMUL_RESULT
from tests.laws.generated_moves import apply_move, draw_move, order_of_rows
from tests.tolerances import Array

I32 = DType.I32
INPUTS = tuple(dtype for dtype in COMPUTED if dtype is not DType.BOOL)
Shape = tuple[int, int]

# Ops that NumPy and C compute to the same bit, by what they take.
EXACT_BOTH = ("add", "sub", "mul", "maximum", "minimum")
EXACT_FLOAT_BINARY = ("div",)
EXACT_INT_BINARY = ("floordiv", "mod", "and_", "or_", "xor")
EXACT_UNARY = ("neg", "abs", "sign", "relu")
EXACT_FLOAT_UNARY = ("sqrt", "rsqrt", "recip", "floor", "ceil", "round")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
ZERO_OPEN = frozenset({"maximum", "minimum", "relu", "rowmax", "rowmin", "colmax", "colmin"})   # which zero is not specified
ZERO_SEES = frozenset({"div", "recip", "rsqrt"})                                               # tells 0.0 from -0.0


@dataclass(frozen=True)
class Step:
    """One step: an op, which earlier values it takes (ints) or numbers, and its attributes."""

    op: str
    operands: tuple[int, ...] = ()
    number: float | int | None = None
    extra: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """A kernel: dtype and shape of its tiles, steps, and how its arguments are bound."""

    dtype: DType
    shape: Shape
    steps: tuple[Step, ...]
    result: tuple[Shape, DType]
    zeros_alike: bool
    valid: Shape
    layout: str                   # how the tiles lie in memory: plain, strided, transposed
    offset: Shape                 # of the piece that is loaded from the region and stored to the other one
    rest: Shape                   # valid part of that piece
    seed: int

    def build(self, number: int) -> Kernel:
        """Return the kernel, named after its number."""
        rows, cols = self.shape

        def body(x: Any, y: Any, region: Any, row: Any, n: Any, state: Any, out: Any, piece: Any) -> None:
            loaded = pto.load(region, (row, self.offset[1]), shape=self.shape, valid=(n, self.rest[1]), fill=1)
            values = [pto.load(x), pto.load(y), loaded, pto.load(state)]
            for step in self.steps:
                values.append(_apply(step, values, n))
            rows_of_region = order_of_rows(values[0])
            pto.scatter(piece, rows_of_region, pto.gather(region, rows_of_region, cols=(self.offset[1], cols), valid=n, fill=1))
            pto.store(state, values[1])
            pto.store(out, values[-1])
            pto.store(piece, loaded, (row, 0), valid=(n, self.rest[1]))

        tile, t = Tile[rows, cols, self.dtype], self.result
        body.__annotations__ = {
            "x": In[tile], "y": In[tile], "region": In[Tensor], "row": Scalar[I32], "n": Scalar[I32], "state": InOut[tile],
            "out": Out[Tile[t[0][0], t[0][1], t[1]]], "piece": Out[Tensor]}
        body.__name__ = f"made_{number}"
        return kernel(body)

    def arrays(self) -> dict[str, Array]:
        """Return arrays for x, y, region, state, out and piece: views with the layout asked for, on memory full of a pattern."""
        rng = np.random.default_rng(self.seed)
        rows, cols = self.valid
        tall = (self.shape[0] + 5, self.shape[1] + 5)
        return {
            "x": _laid(self._sample(rng, (rows, cols)), self.layout), "y": _laid(self._sample(rng, (rows, cols)), "plain"),
            "region": _laid(self._sample(rng, tall), self.layout), "state": _laid(self._sample(rng, (rows, cols)), self.layout),
            "out": _laid(np.ones(self.result[0], self.result[1].np), self.layout), "piece": _laid(self._sample(rng, tall), "plain")}

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        plain = rng.integers(-4, 5, shape).astype(self.dtype.np)
        if self.dtype.is_float:
            plain = (rng.standard_normal(shape) * 3).astype(self.dtype.np)
        special = rng.choice(specials(self.dtype), shape)
        return np.where(rng.random(shape) < 0.3, special, plain)


def specials(dtype: DType) -> Array:
    """Return the values of a dtype that go wrong first."""
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype.is_real:
        limits = ml_dtypes.finfo(dtype.np)
        smallest, tiny, most = float(limits.smallest_subnormal), float(limits.tiny), float(limits.max)
        with np.errstate(over="ignore"):
            return np.array([0.0, -0.0, np.inf, -np.inf, np.nan, smallest, -smallest, tiny, most, -most, 0.5, -0.5, 1.5, 2.5, -2.5,
                             127.5, 128.0, 255.0, 256.0, -129.0, 2.0 ** 31, 2.0 ** 63, -2.0 ** 63, 1e30, 0.1, 1 / 3]).astype(dtype.np)
    limits_i = np.iinfo(dtype.np)
    return np.array([0, 1, limits_i.min, limits_i.max, limits_i.max - 1, limits_i.min + 1, 2, 7], dtype.np)


def _laid(values: Array, layout: str) -> Array:
    """Return the values in memory with that layout, with other values around them."""
    rows, cols = values.shape
    if layout == "strided":
        whole = np.zeros((rows * 2 + 1, cols + 3), values.dtype)
        view = whole[1:rows * 2:2, 2:2 + cols]
    elif layout == "transposed":
        whole = np.zeros((cols + 1, rows + 2), values.dtype)
        view = whole[:cols, 1:1 + rows].T
    else:
        view = np.zeros((rows, cols), values.dtype)
    view[...] = values
    return view


def _apply(step: Step, values: list[Any], n: Any) -> Any:
    """Trace one step."""
    operands = [values[k] for k in step.operands]
    match step.op:
        case "cast":
            return pto.cast(operands[0], step.extra[0])
        case "expand":
            return pto.expand(operands[0], step.extra[0])
        case "tril" | "triu" as name:
            return getattr(pto, name)(operands[0], step.extra[0])
        case "iota":
            return pto.add(operands[0], pto.iota(operands[0].shape, operands[0].dtype, step.extra[0]))
        case "full":
            return pto.add(operands[0], pto.full((1, 1), n, operands[0].dtype))
        case "loop":
            return _run_loop(step, operands, n)
        case "branch":
            return _run_branch(step, operands, n)
        case "item":
            return _use_item(step, operands, n)
        case "part":
            return _write_parts(step, operands, n)
        case "move":
            return apply_move(step.extra[0], operands[0], step.extra[1])
        case _:
            numbers = [] if step.number is None else [step.number]
            args = [*numbers, *operands] if step.extra == ("first",) else [*operands, *numbers]
            return getattr(pto, step.op)(*args)


def _run_loop(step: Step, operands: list[Any], n: Any) -> Any:
    """Fold a value with itself into a buffer: a fixed number of times, or as often as the scalar says."""
    op, init, stop, nested = step.extra
    value = operands[0]
    held = pto.alloc(value.shape, value.dtype, init=init)
    for j in pto.range(n if stop is None else stop):
        before = pto.load(held)
        held[:] = getattr(pto, op)(held, value)
        if nested:
            for _ in pto.range(j):
                held[:] = pto.maximum(held, before)
    return pto.load(held)


def _run_branch(step: Step, operands: list[Any], n: Any) -> Any:
    """Write a buffer on one side of a condition, or on both; `looped`: the condition is asked in each iteration of a loop."""
    op, bound, two_sided, looped = step.extra
    value = operands[0]
    held = pto.alloc(value.shape, value.dtype, init=1)
    for j in pto.range(n if looped else 1):
        before = pto.load(held)
        with pto.when(j * 2 > bound if looped else n > bound):
            held[:] = getattr(pto, op)(value, before)
        if two_sided:
            with pto.otherwise():
                held[:] = pto.maximum(held, before)
                with pto.when(n == bound):
                    held[:] = pto.minimum(value, held)
    return pto.load(held)


def _use_item(step: Step, operands: list[Any], n: Any) -> Any:
    """Read an element as a scalar: an operand, the bound of a loop, a condition, or again in each iteration of a loop."""
    use, op, at, computed = step.extra
    value, source = operands
    row, col = ((n + at[0]) % source.shape[0], (n + at[1]) % source.shape[1]) if computed else at
    if use == "number":
        return getattr(pto, op)(value, pto.item(source, row, col))
    held = pto.alloc(value.shape, value.dtype, init=1)
    first = pto.item(source, row, col)
    match use:
        case "bound":
            for j in pto.range(first.min(3)):
                held[:] = getattr(pto, op)(held, value)
                with pto.when(j < first):
                    held[:] = pto.maximum(held, first)
        case "condition":
            with pto.when(first > 1):
                held[:] = value
            with pto.otherwise():
                held[:] = getattr(pto, op)(value, first)
        case "turns":
            for j in pto.range(3):
                now = pto.item(held, j % value.shape[0], 0)
                with pto.when((now == first) | (j == 1)):
                    held[:] = getattr(pto, op)(value, now)
        case _:
            raise AssertionError(use)
    return pto.load(held)


def _write_parts(step: Step, operands: list[Any], n: Any) -> Any:
    """Write parts of a buffer, at constants and at scalars, and read them again."""
    op, (rows, cols), (row, col), looped = step.extra
    value = operands[0]
    held = pto.alloc(value.shape, value.dtype, init=1)
    last_row, last_col = value.shape[0] - rows, value.shape[1] - cols
    for j in pto.range(3 if looped else 1):
        before = held + 0 if value.dtype.is_integer else pto.load(held)
        at, over = (n + j + row) % (last_row + 1), (n * 2 + col) % (last_col + 1)
        moved = before[at:at + rows, over:over + cols]
        held[row:row + rows, col:col + cols] = getattr(pto, op)(value[row:row + rows, col:col + cols], moved)
        held[at:at + rows, over:over + cols] = held[row:row + rows, col:col + cols]
        with pto.when(j == 1):
            held[at] = pto.maximum(before[row], 2)
    return pto.load(held)


# ---- drawing ----

@dataclass
class _Drawn:
    """A value so far: its type, and whether the sign of its zeros is specified."""

    shape: Shape
    dtype: DType
    open_zero: bool = False


def recipes(max_steps: int = 8) -> st.SearchStrategy[Recipe]:
    """Return a strategy for kernels of exact ops."""
    return _recipe(max_steps)


@st.composite
def _recipe(draw: Callable[..., Any], max_steps: int) -> Recipe:
    dtype = draw(st.sampled_from(INPUTS))
    extent = st.sampled_from((1, 2, 3, 5, 8, 16, 17, 33))
    shape = (draw(extent), draw(extent))
    values = [_Drawn(shape, dtype) for _ in range(4)]
    steps = [_draw_step(draw, values) for _ in range(draw(st.integers(1, max_steps)))]
    last = values[-1]
    valid = shape if draw(st.booleans()) else (draw(st.integers(1, shape[0])), draw(st.integers(1, shape[1])))
    return Recipe(dtype, shape, tuple(steps), (last.shape, last.dtype), any(v.open_zero for v in values), valid,
                  draw(st.sampled_from(("plain", "strided", "transposed"))), (draw(st.integers(0, 5)), draw(st.integers(0, 5))),
                  (draw(st.integers(0, shape[0])), draw(st.integers(0, shape[1]))), draw(st.integers(0, 2 ** 16)))


def _draw_step(draw: Callable[..., Any], values: list[_Drawn]) -> Step:
    """Draw a step that fits the values so far, and add its value."""
    at = draw(st.integers(0, len(values) - 1))
    x = values[at]
    kinds = ["cast", "transpose", "expand", "reduce", "where", "triangle", "move", "move"]
    if x.dtype is not DType.BOOL:
        kinds += ["binary", "binary", "unary", "compare", "iota", "full", "loop", "branch", "number", "item", "item", "part"]
        kinds += ["matmul"] if x.dtype in (DType.I8, I32, DType.I64) else []
    kind = draw(st.sampled_from(kinds))
    step, result = _KINDS[kind](draw, values, at, x)
    values.append(result)
    return step


def _fitting(draw: Callable[..., Any], values: list[_Drawn], x: _Drawn, dtype: DType) -> int | None:
    """Draw an earlier value of that dtype that broadcasts with x."""
    fits = [k for k, v in enumerate(values) if v.dtype is dtype
            and all(a == b or 1 in (a, b) for a, b in zip(v.shape, x.shape, strict=True))]
    return draw(st.sampled_from(fits)) if fits else None


def _joint(*values: _Drawn) -> Shape:
    return max(v.shape[0] for v in values), max(v.shape[1] for v in values)


def _opens(op: str, *values: _Drawn) -> bool:
    return values[-1].dtype.is_float and (op in ZERO_OPEN or any(v.open_zero for v in values))


def _binary(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    other = _fitting(draw, values, x, x.dtype)
    assert other is not None   # x itself fits
    names = [*EXACT_BOTH, *(EXACT_FLOAT_BINARY if x.dtype.is_float else EXACT_INT_BINARY)]
    if x.open_zero or values[other].open_zero:
        names = [name for name in names if name not in ZERO_SEES]
    op = draw(st.sampled_from(names))
    y = values[other]
    return Step(op, (at, other)), _Drawn(_joint(x, y), x.dtype, _opens(op, x, y))


def _number(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    op = draw(st.sampled_from(EXACT_BOTH if x.dtype.is_float else (*EXACT_BOTH, *EXACT_INT_BINARY)))
    number = draw(st.sampled_from((2.5, -0.5, 0.0, 3.0)) if x.dtype.is_float else st.sampled_from((0, 1, 3, 100)))
    return Step(op, (at,), number, draw(st.sampled_from(((), ("first",))))), _Drawn(x.shape, x.dtype, _opens(op, x))


def _unary(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    names = [*EXACT_UNARY, *(EXACT_FLOAT_UNARY if x.dtype.is_float else ("not_",))]
    if x.open_zero:
        names = [name for name in names if name not in ZERO_SEES]
    op = draw(st.sampled_from(names))
    return Step(op, (at,)), _Drawn(x.shape, x.dtype, _opens(op, x))


def _compare(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    other = _fitting(draw, values, x, x.dtype)
    assert other is not None
    return Step(draw(st.sampled_from(COMPARE)), (at, other)), _Drawn(_joint(x, values[other]), DType.BOOL)


def _where(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    mask = _fitting(draw, values, x, DType.BOOL)
    if mask is None:
        return _cast(draw, values, at, x)
    joint = _Drawn(_joint(x, values[mask]), x.dtype)
    other = _fitting(draw, values, joint, x.dtype)
    other = at if other is None else other
    y = values[other]
    return Step("where", (mask, at, other)), _Drawn(_joint(joint, y), x.dtype, _opens("where", x, y))


def _cast(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    dtype = draw(st.sampled_from((*INPUTS, DType.BOOL)))
    return Step("cast", (at,), None, (dtype,)), _Drawn(x.shape, dtype, x.open_zero and dtype.is_float)


def _transpose(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    return Step("transpose", (at,)), _Drawn((x.shape[1], x.shape[0]), x.dtype, x.open_zero)


def _expand(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    shape = tuple(draw(st.sampled_from((1, 4, 9))) if n == 1 else n for n in x.shape)
    return Step("expand", (at,), None, (shape,)), _Drawn((shape[0], shape[1]), x.dtype, x.open_zero)


def _triangle(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    return Step(draw(st.sampled_from(("tril", "triu"))), (at,), None, (draw(st.integers(-3, 3)),)), _Drawn(x.shape, x.dtype, x.open_zero)


def _reduce(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    if x.dtype is DType.BOOL:
        return _cast(draw, values, at, x)
    names = ["max", "min"] if x.dtype in FLOATS else ["max", "min", "sum"]   # a float sum depends on its order
    side, name = draw(st.sampled_from(("row", "col"))), draw(st.sampled_from(names))
    shape = (x.shape[0], 1) if side == "row" else (1, x.shape[1])
    return Step(side + name, (at,)), _Drawn(shape, x.dtype, _opens(side + name, x))


def _iota(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    return Step("iota", (at,), None, (draw(st.integers(0, 1)),)), _Drawn(x.shape, x.dtype, x.open_zero)


def _full(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    return Step("full", (at,)), _Drawn(x.shape, x.dtype, x.open_zero)



def _matmul(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    fits = [k for k, v in enumerate(values) if v.dtype is x.dtype and v.shape[0] == x.shape[1]]
    if not fits:
        return _transpose(draw, values, at, x)
    other = draw(st.sampled_from(fits))
    return Step("matmul", (at, other)), _Drawn((x.shape[0], values[other].shape[1]), MATMUL_RESULT[x.dtype])


def _loop(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    op = draw(st.sampled_from(("add", "sub", "mul", "maximum", "minimum")))
    extra = (op, draw(st.sampled_from((0, 1, 2))), draw(st.sampled_from((None, 0, 1, 3))), draw(st.booleans()))
    opened = x.dtype.is_float and (x.open_zero or extra[3] or op in ZERO_OPEN)
    return Step("loop", (at,), None, extra), _Drawn(x.shape, x.dtype, opened)


def _branch(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    op = draw(st.sampled_from(("add", "sub", "mul", "maximum", "minimum")))
    extra = (op, draw(st.integers(0, 5)), draw(st.booleans()), draw(st.booleans()))
    opened = x.dtype.is_float and (x.open_zero or extra[2] or op in ZERO_OPEN)
    return Step("branch", (at,), None, extra), _Drawn(x.shape, x.dtype, opened)


def _move(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    name, extra, shape, dtype = draw_move(draw, x.shape, x.dtype)
    return Step("move", (at,), None, (name, extra)), _Drawn(shape, dtype, x.open_zero and dtype.is_float)


def _item(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    source = draw(st.sampled_from([k for k, v in enumerate(values) if v.dtype is x.dtype]))
    op = draw(st.sampled_from(("add", "sub", "mul", "maximum", "minimum")))
    use = draw(st.sampled_from(("number", "condition", "turns", *(() if x.dtype.is_float else ("bound",)))))
    place = draw(st.integers(0, values[source].shape[0] - 1)), draw(st.integers(0, values[source].shape[1] - 1))
    opened = x.dtype.is_float and (x.open_zero or values[source].open_zero or op in ZERO_OPEN)
    return Step("item", (at, source), None, (use, op, place, draw(st.booleans()))), _Drawn(x.shape, x.dtype, opened)


def _part(draw: Callable[..., Any], values: list[_Drawn], at: int, x: _Drawn) -> tuple[Step, _Drawn]:
    op = draw(st.sampled_from(("add", "sub", "mul", "maximum", "minimum")))
    extents = draw(st.integers(1, x.shape[0])), draw(st.integers(1, x.shape[1]))
    start = draw(st.integers(0, x.shape[0] - extents[0])), draw(st.integers(0, x.shape[1] - extents[1]))
    return Step("part", (at,), None, (op, extents, start, draw(st.booleans()))), _Drawn(x.shape, x.dtype, x.dtype.is_float)


_KINDS = {"binary": _binary, "branch": _branch, "cast": _cast, "compare": _compare, "expand": _expand, "full": _full, "iota": _iota,
          "item": _item, "loop": _loop, "matmul": _matmul, "move": _move, "number": _number, "part": _part, "reduce": _reduce,
          "transpose": _transpose, "triangle": _triangle, "unary": _unary, "where": _where}

"""Functions on tensors that a seed draws: chains of operations, broadcasts, reductions of several axes, products, views, loops with state,
writes of parts and through tables. Built directly, without the trace.

`generated(seed)` gives the function, a number for each symbol, and arguments.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import same
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Const, Element, Scalar, add, minimum, mul, sub
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.tensors import joint_shape
from pto_wsp.run.tensor_pass_check import drawn_arguments
from tests.tensor_functions import FunctionBuilder, at_least
from tests.tolerances import Array

F32, I32, BOOL = DType.F32, DType.I32, DType.BOOL
EXACT_UNARY = ("abs", "neg", "relu", "floor", "sign")
ROUNDED_UNARY = ("tanh", "sigmoid", "sqrt")
EXACT_BINARY = ("add", "sub", "mul", "maximum", "minimum")
REDUCTIONS = ("rowsum", "rowmax", "rowmin", "colsum", "colmax", "colmin", "rowmean")
LARGEST_RANK = 4


@dataclass(frozen=True)
class GeneratedTensors:
    """A function, numbers for its symbols, and its arguments."""

    function: t.TensorFunction
    sizes: dict[str, int]
    arrays: list[Array]
    scalars: dict[str, float]


def generated(seed: int, n_steps: int = 9) -> GeneratedTensors:
    """Return the function of a seed."""
    drawing = _Drawing(random.Random(seed))
    for _ in range(n_steps):
        drawing.step()
    function = drawing.finished()
    sizes = {"t": drawing.draw.choice((1, 2, 5, 9)), "n": drawing.draw.choice((1, 3, 6))}
    return GeneratedTensors(function, sizes, drawn_arguments(function, sizes, seed), {"scale": 0.5})


class _Drawing:
    """One function while it is drawn. `pool`: the values that later steps may read."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.f = draw, FunctionBuilder("generated")
        self.t, self.n, self.scale = self.f.symbol("t"), self.f.symbol("n"), self.f.scalar("scale")
        f = self.f
        self.pool: list[t.ArrayView] = [f.param("x", (self.t, 8)), f.param("z", (2, self.t, 8)), f.param("w", (8, 6)),
                                        f.param("v", (self.n, 8)), f.param("g", (8,)),
                                        f.constant("c", np.arange(6, dtype=np.float32).reshape(1, 6))]
        self.rows = f.param("rows", (self.t,), I32)
        self.perm = f.param("perm", (self.t,), I32, contracts=(Contract.INJECTIVE,))
        self.starts = f.param("starts", (3,), I32, contracts=(Contract.MONOTONE,))
        self.cache = f.param("cache", (self.t, 8), written=True)
        self.rounded = False
        self.kept: list[t.ArrayView] = []

    # -- choices ---------------------------------------------------------------------------------------------------
    def value(self, fits: Callable[[t.ArrayView], bool] = lambda view: True) -> t.ArrayView | None:
        found = [view for view in self.pool if fits(view)]
        return self.draw.choice(found[-8:]) if found else None

    def any_value(self) -> t.ArrayView:
        return self.draw.choice(self.pool[-10:])

    def step(self) -> None:
        kinds: Sequence[Callable[[], t.ArrayView | None]] = (
            self.unary, self.binary, self.binary, self.with_number, self.choice, self.reduction, self.reduction, self.product, self.product,
            self.view, self.view, self.order, self.taken, self.again, self.state_loop, self.free_loop, self.parts, self.through_table,
            self.cast, self.unread)
        made = self.draw.choice(kinds)()
        if made is not None:
            self.pool.append(made)

    # -- operations ------------------------------------------------------------------------------------------------
    def unary(self) -> t.ArrayView:
        x = self.any_value()
        if self.draw.random() < 0.25:
            self.rounded = True
            return self.f.apply(self.draw.choice(ROUNDED_UNARY), self.f.apply("abs", x))
        return self.f.apply(self.draw.choice(EXACT_UNARY), x)

    def binary(self) -> t.ArrayView | None:
        x = self.any_value()
        y = self.value(lambda view: joint_shape((x.shape, view.shape)) is not None)
        return None if y is None else self.small(self.f.apply(self.draw.choice(EXACT_BINARY), *self.draw.sample((x, y), 2)))

    def small(self, x: t.ArrayView) -> t.ArrayView:
        """Keep numbers so small that sums of them are exact."""
        return self.f.apply("minimum", self.f.apply("maximum", x, -16), 16) if self.draw.random() < 0.7 else x

    def with_number(self) -> t.ArrayView:
        number = self.draw.choice((2, 0.5, -1.0, 1, 0, self.scale, self.n))
        return self.f.apply(self.draw.choice(EXACT_BINARY), *self.draw.sample((self.any_value(), number), 2))

    def choice(self) -> t.ArrayView | None:
        x = self.any_value()
        y = self.value(lambda view: joint_shape((x.shape, view.shape)) is not None)
        return None if y is None else self.f.apply("where", self.f.apply("lt", x, y), x, self.draw.choice((0, y)))

    def reduction(self) -> t.ArrayView | None:
        """A reduction along any axis, which a permutation brings to its place, sometimes dropped again."""
        x = self.value(lambda view: len(view.shape) >= 2)
        if x is None:
            return None
        op = self.draw.choice(REDUCTIONS)
        order = list(range(len(x.shape)))
        self.draw.shuffle(order)
        made = self.small(self.f.apply(op, x.then(Permute(tuple(order)))))
        self.rounded |= op == "rowmean"
        axis = len(order) - (2 if op.startswith("col") else 1)
        return made if self.draw.random() < 0.5 else made.then(Pick(axis, Const(0)))

    def product(self) -> t.ArrayView | None:
        x = self.value(lambda view: len(view.shape) >= 2)
        if x is None:
            return None
        y = self.value(lambda view: len(view.shape) >= 2 and (same(view.shape[-1], x.shape[-1]) or same(view.shape[-2], x.shape[-1]))
                       and joint_shape((view.shape[:-2], x.shape[:-2])) is not None)
        if y is None:
            return None
        if not same(y.shape[-2], x.shape[-1]):
            rank = len(y.shape)
            y = y.then(Permute((*range(rank - 2), rank - 1, rank - 2)))
        return self.small(self.f.apply("matmul", x, y))

    def order(self) -> t.ArrayView | None:
        x = self.value(lambda view: len(view.shape) >= 1 and view.shape[-1] in (Const(8), Const(6)))
        if x is None:
            return None
        places = self.f.apply("topk", x, attrs=(("k", 3), ("descending", self.draw.random() < 0.5))) if self.draw.random() < 0.5 \
            else self.f.apply("argsort", x, attrs=(("descending", self.draw.random() < 0.5),))
        return self.f.apply("gather", x, places, attrs=(("axis", 1), ("inside", True)))

    def taken(self) -> t.ArrayView | None:
        x = self.value(lambda view: len(view.shape) >= 2 and same(view.shape[0], self.t))
        places = self.f.apply("minimum", self.rows, sub(self.t, Const(1)))
        return None if x is None else self.f.apply("take", x, places)

    def cast(self) -> t.ArrayView:
        half = self.f.apply("cast", self.any_value(), attrs=(("dtype", DType.F16),))
        self.rounded = True
        return self.f.apply("cast", half, attrs=(("dtype", F32),))

    def again(self) -> t.ArrayView | None:
        """What was computed before."""
        x = self.value(lambda view: joint_shape((view.shape, self.pool[0].shape)) is not None)
        if x is None:
            return None
        left, right = (self.f.apply("add", self.pool[0], x) for _ in range(2))
        return self.f.apply("mul", left, right.then(Permute(tuple(range(len(right.shape))))))

    def unread(self) -> None:
        self.f.apply("exp", self.any_value())
        lost = self.f.make("lost", (self.t, 8), 0)
        self.f.put(lost, self.f.apply("add", lost, 1))

    # -- views -----------------------------------------------------------------------------------------------------
    def view(self) -> t.ArrayView | None:
        x = self.any_value()
        for _ in range(self.draw.randint(1, 4)):
            x = self.viewed(x)
        return x

    def viewed(self, x: t.ArrayView) -> t.ArrayView:
        rank = len(x.shape)
        dim = self.draw.randrange(rank) if rank else 0
        kind = self.draw.choice(("permute", "insert", "pick", "cut", "flip", "refold"))
        numbers = [k for k, extent in enumerate(x.shape) if isinstance(extent, Const) and extent.value >= 2]
        match kind:
            case "permute" if rank:
                order = list(range(rank))
                self.draw.shuffle(order)
                return x.then(Permute(tuple(order)))
            case "insert" if rank < LARGEST_RANK:
                return x.then(t.Insert(self.draw.randint(0, rank)))
            case "pick" if rank > 1 and (numbers or Const(1) in x.shape):
                dim = self.draw.choice([*numbers, *(k for k, extent in enumerate(x.shape) if extent == Const(1))])
                return x.then(Pick(dim, Const(self.draw.randrange(int(x.shape[dim].value)))))      # type: ignore[union-attr]
            case "cut" if numbers:
                dim = self.draw.choice(numbers)
                extent = int(x.shape[dim].value)       # type: ignore[union-attr]
                start = self.draw.randrange(extent)
                return x.then(Cut(dim, Const(start), Const(self.draw.randint(start + 1, extent)), self.draw.choice((1, 1, 2))))
            case "cut" if rank and same(x.shape[dim], self.t):
                return x.then(Cut(dim, Const(0), minimum(Const(3), self.t)))
            case "flip" if rank:
                return x.then(t.Flip(dim))
            case "refold" if rank >= 2:
                at = self.draw.randrange(rank - 1)
                return x.then(t.Refold((*x.shape[:at], mul(x.shape[at], x.shape[at + 1]), *x.shape[at + 2:])))
            case _:
                return x

    # -- loops and state -------------------------------------------------------------------------------------------
    def state_loop(self) -> t.ArrayView:
        """State that an ordered loop carries, over rows or blocks of `v`, the last of which may be short."""
        f, block = self.f, self.draw.choice((1, 2, 4))
        acc, top = f.make("acc", (8, 8), 0), f.make("top", (1, 8), self.draw.choice((0, -3.5)))
        with f.loop(self.n, step=block, name="j") as j:
            part = self.pool[3].then(Cut(0, j, minimum(add(j, Const(block)), self.n)))
            f.put(top, f.apply("maximum", top, f.apply("colmax", part)))
            f.put(acc, self.small(f.apply("add", f.apply("mul", acc, 0.5), f.apply("matmul", part.then(Permute((1, 0))), part))))
            if self.draw.random() < 0.3:
                with f.when(at_least(j, 2)):
                    f.put(top.then(Cut(1, Const(0), Const(4))), 1)
        return acc if self.draw.random() < 0.5 else f.apply("sub", acc, top)

    def free_loop(self) -> t.ArrayView:
        """Rows that iterations without an order write."""
        f = self.f
        out = f.make("out", (self.t, 8), self.draw.choice((None, 0)))
        with f.loop(self.t, ordered=False, name="r") as r:
            x = self.pool[0].then(Pick(0, r))
            row = f.apply("add", x, f.apply("rowsum", f.apply("mul", x, self.pool[1].then(Pick(1, r)))))
            f.put(out.then(Pick(0, r)), row.then(Pick(0, Const(0))) if self.draw.random() < 0.5 else f.apply("neg", x))
        return f.apply("abs", out)

    def parts(self) -> t.ArrayView:
        """An array joined from parts."""
        f, x = self.f, self.pool[0]
        out = f.make("joined", (self.t, 10), None)
        f.put(out.then(Cut(1, Const(0), Const(8))), x)
        f.put(out.then(Cut(1, Const(8), Const(10))), f.apply("mul", x.then(Cut(1, Const(0), Const(8), 4)), 2))
        return out

    def through_table(self) -> t.ArrayView:
        f = self.f
        out = f.make("placed", (self.t, 8), 1)
        if self.draw.random() < 0.5:
            f.put(out, f.apply("neg", self.pool[0]), self.perm)
        else:
            first, last = (f.apply("minimum", self.rows, sub(self.t, Const(1))), self.pool[0])
            f.put(out, last, first, add=True)
        if self.draw.random() < 0.4:
            f.put(self.cache, self.pool[0], self.perm)
        if self.draw.random() < 0.4:
            number: Scalar = Element(self.starts.array.ref, (Const(self.draw.randrange(3)),))
            f.put(self.cache, f.apply("mul", f.apply("add", self.cache, number), 0.5))
        return f.apply("abs", out) if self.draw.random() < 0.5 else out

    def finished(self) -> t.TensorFunction:
        results = [self.pool[-1], *self.draw.sample(self.pool[6:], min(2, len(self.pool[6:])))]
        self.f.give(*results)
        return self.f.function()


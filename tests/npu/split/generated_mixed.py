"""Kernels that hypothesis draws: products and vector work on small tiles, in loops and branches, with buffers and memory as state.

A recipe is plain data: steps, of which some hold steps of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pto_wsp import DType, In, InOut, Kernel, Out, Scalar, Tensor, Tile, kernel, pto

S = 4                     # rows and columns of every tile
BLOCKS = 3                # of a region
F32, I32 = DType.F32, DType.I32
TILE = Tile[S, S, F32]

SIMPLE = ("matmul", "matmul", "matmul", "matmul", "add", "add", "mul", "maximum", "exp", "relu", "turn", "rowmax", "colsum", "where", "row",
          "load", "turned_load", "part_load")
STATE = ("write", "write", "accumulate", "accumulate", "read", "store_piece", "load_piece", "store_state", "load_state")
INNER = ("loop", "loop", "twice", "when")


@dataclass(frozen=True)
class Step:
    """What is done, to which of the values so far (counted from the last), and what is done inside it."""

    what: str
    one: int = 0
    other: int = 0
    inner: tuple[Step, ...] = ()


@st.composite
def steps(draw: st.DrawFn, depth: int = 0) -> tuple[Step, ...]:
    """Draw the steps of a body."""
    kinds = (*SIMPLE, *STATE, *(INNER if depth < 2 else ()))
    found: list[Step] = []
    for _ in range(draw(st.integers(1, 7 if depth == 0 else 5))):
        what = draw(st.sampled_from(kinds))
        inner = draw(steps(depth + 1)) if what in INNER else ()
        found.append(Step(what, draw(st.integers(0, 4)), draw(st.integers(0, 4)), inner))
    return tuple(found)


@dataclass(frozen=True)
class Recipe:
    """A kernel: its steps, and how it is bound."""

    steps: tuple[Step, ...]
    n: int
    rows: int             # of x and of what comes out: the last rows of their tiles are not there
    shared: bool          # region is the tensor that piece is

    def build(self) -> Kernel:
        """Return the kernel."""
        def body(x: Any, w: Any, region: Any, n: Any, piece: Any, state: Any, out: Any) -> None:
            largest = pto.alloc((S, S), F32, init=-1)
            total = pto.alloc((S, S), F32, init=0)
            values = [pto.load(x), pto.load(w)]
            made = _run(self.steps, values, pto.constant(0.5, F32), n, (region, piece, state, largest, total), 0)
            total[:] = pto.matmul(values[1], values[1], acc=total)
            largest[:] = pto.maximum(largest, made[-1])
            pto.store(out, pto.minimum(largest, 3) + total)

        body.__annotations__ = {"x": In[TILE], "w": In[TILE], "region": In[Tensor], "n": Scalar[I32], "piece": InOut[Tensor],
                                "state": InOut[TILE], "out": Out[TILE]}
        return kernel(body)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what the kernel is bound to: x, w, region, both (piece, and region where it is shared), state, out."""
        rng = np.random.default_rng(self.n)
        shapes = {"x": (self.rows, S), "w": (S, S), "region": (BLOCKS * S, S), "both": (BLOCKS * S, S), "state": (S, S),
                  "out": (self.rows, S)}
        return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


recipes = st.builds(Recipe, steps(), st.integers(0, BLOCKS), st.integers(1, S), st.booleans())


def _run(todo: tuple[Step, ...], values: list[Any], turn: Any, at: Any, memory: tuple[Any, ...], depth: int) -> list[Any]:
    """Trace steps; return the values that are known behind them. `at`: which block of a region a step takes."""
    values = list(values)
    for step in todo:
        made = _step(step, values, turn, at, memory, depth)
        if made is not None:
            values.append(made)
    return values


def _step(step: Step, values: list[Any], turn: Any, at: Any, memory: tuple[Any, ...], depth: int) -> Any:
    region, piece, state, largest, total = memory
    one, other = (values[-1 - n % len(values)] for n in (step.one, step.other))
    block = ((at.min(BLOCKS - 1) if depth else step.one % BLOCKS) * S, 0)
    match step.what:
        case "matmul":
            return pto.matmul(one, other) * (1 / S) if step.one % 2 else pto.matmul(pto.minimum(one, 1), other)
        case "add":
            return one + other
        case "mul":
            return pto.maximum(pto.minimum(one * other, 2), -2)
        case "maximum":
            return pto.maximum(one, other)
        case "exp":
            return pto.exp(pto.minimum(one, 0.5))
        case "relu":
            return pto.relu(one)
        case "turn":
            return one.T
        case "rowmax":
            return one - pto.rowmax(other)
        case "colsum":
            return one + pto.colsum(other) * 0.1
        case "where":
            return pto.where(one > other, one, turn * 0.5 + other)
        case "row":
            return pto.cast(pto.iota((S, S), I32, axis=0), F32) * 0.1 + one
        case "load":
            return pto.load(region, block, shape=(S, S))
        case "turned_load":
            return pto.load(region, block, shape=(S, S), transpose=True)
        case "part_load":
            return pto.load(region, block, shape=(S, S), valid=(step.other % S, None), fill=step.one % 2)
        case "write":
            largest[:] = pto.maximum(largest, pto.minimum(one, 3))
        case "accumulate":
            total[:] = total + pto.matmul(one, other) * 1 if step.one == 4 else pto.matmul(one, other, acc=total)
        case "read":
            return pto.minimum(largest, 3) if step.one % 2 else total * 0.1
        case "store_piece":
            pto.store(piece, one, block)
        case "load_piece":
            return pto.load(piece, block, shape=(S, S))
        case "store_state":
            pto.store(state, one)
        case "load_state":
            return pto.load(state)
        case "loop":
            for j in pto.range(0, at):
                _run(step.inner, values, turn, j, memory, depth + 1)
        case "twice":
            for j in pto.range(0, 4, 2):
                _run(step.inner, values, turn, j, memory, depth + 1)
        case "when":
            with pto.when(at > step.one % 3):
                _run(step.inner, values, turn, at, memory, depth + 1)
            if step.other % 2:
                with pto.otherwise():
                    _run(step.inner[::-1], values, turn, at, memory, depth + 1)
    return None

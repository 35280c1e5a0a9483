"""Random kernels: every mix of shapes, reductions, buffers, loops and stores gives what the interpreter gives, bit for bit.

Only exact ops take part, so fusion, row buffers, copies and the order of memory accesses are what is tested.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pto_wsp.api.pto import pto
from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.passes.kernel import rows
from pto_wsp.passes.kernel.passes import KERNEL_PASSES, KernelPass
from pto_wsp.run.kernel_interpreter import run_kernel
from pto_wsp.trace.kernel.annotations import In, InOut, Out
from pto_wsp.trace.kernel.definition import KernelDef

from ..conftest import Array, BuildAll, Built, Job

_DTYPES = (DType.F32, DType.F32, DType.F32, DType.F64, DType.I8, DType.I32, DType.I64, DType.U8)
# Without these a kernel is slower and means the same; code generation needs what the others establish.
OPTIONAL = ("forward_buffers", "simplify", "merge_common", "narrow_loads", "hoist_invariants", "fuse_products", "accumulate_in_place",
            "drop_dead_code", "schedule_rows", "vectorise")
_LARGEST = 8000   # elements of a value
Value = Any       # what tracing hands to a kernel body


@dataclass
class Writer:
    """Writes one random body, drawing operands from what it has made so far."""

    rnd: random.Random
    dtype: DType
    shape: tuple[int, int]
    first: Value
    first_is_inout: bool
    buffers: list[Value] = field(default_factory=list)

    def write(self, values: Sequence[Value], n_steps: int, depth: int) -> list[Value]:
        """Write `n_steps` statements and return every value in scope after them."""
        pool = list(values)
        for _ in range(n_steps):
            made = self.statement(pool, depth)
            if made is not None and made.shape[0] * made.shape[1] <= _LARGEST:
                pool.append(made if made.dtype is self.dtype else pto.cast(made, self.dtype))
        return pool

    def statement(self, pool: list[Value], depth: int) -> Value | None:
        """Write one statement and return the value that it makes, if any."""
        rnd, kind = self.rnd, self.rnd.random()
        x = rnd.choice(pool)
        fits = [v for v in pool if all(a == b or 1 in (a, b) for a, b in zip(v.shape, x.shape, strict=True))]
        y, z = rnd.choice(fits), rnd.choice([v for v in fits if v.shape in (x.shape, (1, 1))])
        if kind < 0.35:
            return self.pair(x, y, z)
        if kind < 0.52:
            names = ("sqrt", "rsqrt", "recip", "floor", "round") if self.dtype.is_float else ("not_",)
            return getattr(pto, rnd.choice(("neg", "abs", "relu", "sign", *names)))(x)
        if kind < 0.66:
            names = ("rowmax", "rowmin", "colmax", "colmin", "colsum", *(() if self.dtype.is_float else ("rowsum",)))
            return getattr(pto, rnd.choice(names))(x)
        if kind < 0.70:
            return pto.cast(pto.iota(x.shape, DType.I32, rnd.choice([0, 1])), self.dtype)
        if kind < 0.75:
            return x.T
        if kind < 0.88:
            return self.state(pool, x)
        if kind < 0.94 and depth == 0 and self.buffers:
            kept = list(self.buffers)
            for i in pto.range(3):
                self.write(pool, 3, depth + 1)
                target = rnd.choice(kept)
                target[:] = target * 1 + i
            self.buffers = kept
            return None
        if depth == 0 and self.first_is_inout:
            pto.store(self.first, rnd.choice([v for v in pool if v.shape == self.shape]))
            return self.first + 0
        return None

    def pair(self, x: Value, y: Value, z: Value) -> Value:
        """Write an operation on two or three tiles."""
        names = ("div",) if self.dtype.is_float else ("floordiv", "mod", "and_", "xor")
        name = self.rnd.choice(("add", "sub", "mul", "maximum", "minimum", "where", "mask", *names))
        if name == "where":
            return pto.where(x > y, z, x)
        if name == "mask":
            return pto.cast((x > y) & (x != 0), self.dtype)
        return getattr(pto, name)(x, y)

    def state(self, pool: list[Value], x: Value) -> Value | None:
        """Make a buffer, or read one, write it, and read it again."""
        if not self.buffers or self.rnd.random() < 0.25:
            made = pto.alloc(x.shape, self.dtype, init=self.rnd.choice([0, 1, 2]))
            made[:] = x
            self.buffers.append(made)
            return None
        buffer = self.rnd.choice(self.buffers)
        pool.append(buffer * 1)
        equal = [v for v in pool if v.shape == buffer.shape]
        if self.rnd.random() < 0.7:
            buffer[:] = self.rnd.choice(equal)
        else:
            buffer += 1
        return buffer + 0


def _random_kernel(rnd: random.Random) -> k.Kernel:
    rows, cols = rnd.choice([1, 2, 7, 16, 33]), rnd.choice([1, 3, 16, 40, 64, 65, 130, 200])
    dtype, shape = rnd.choice(_DTYPES), (rows, cols)
    role = rnd.choice([In, In, InOut])
    second = rnd.choice([shape, (rows, 1), (1, cols), (1, 1)])

    def body(x: Value, y: Value, out: Value, narrow: Value) -> None:
        writer = Writer(rnd, dtype, shape, x, role is InOut)
        pool = writer.write([x, y], rnd.randint(2, 14), 0)
        last = pool[-1] if pool[-1].shape == shape else x + next(v for v in reversed(pool) if v.shape in (shape, (rows, 1)))
        pto.store(out, last)
        pto.store(narrow, next((v for v in reversed(pool) if v.shape == (rows, 1)), pto.rowmax(last)))

    body.__annotations__ = {"x": role[Tile[rows, cols, dtype]], "y": In[Tile[(*second, dtype)]], "out": Out[Tile[rows, cols, dtype]],
                            "narrow": Out[Tile[rows, 1, dtype]], "return": None}
    return KernelDef.from_function(body, {}).trace({}, {})


def _numbers(rng: np.random.Generator, shape: tuple[int, int], dtype: DType) -> Array:
    if not dtype.is_float:
        limits = np.iinfo(dtype.np)
        small = rng.integers(max(limits.min, -3), 4, shape)
        return np.where(rng.random(shape) < 0.4, small, rng.integers(limits.min, limits.max, shape, np.int64)).astype(dtype.np)
    odd = rng.choice([np.nan, np.inf, -np.inf, 0.0], shape)
    return np.where(rng.random(shape) < 0.06, odd, rng.standard_normal(shape) * 4).astype(dtype.np)


FAST = range(10)
BATCH = 10       # kernels of one library: gcc's time goes by their number, but for what each library begins with


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("first", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in range(0, 250, BATCH)])
def test_random_kernels_match_the_interpreter(build_all: BuildAll, first: int) -> None:
    _compare(build_all, [(seed, KERNEL_PASSES) for seed in range(first, first + BATCH)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("first", [0, pytest.param(BATCH, marks=pytest.mark.slow)])
def test_random_kernels_match_with_their_loops_cut(build_all: BuildAll, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_WEIGHT", 2)
    _compare(build_all, [(seed, KERNEL_PASSES) for seed in range(first, first + BATCH)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", [17, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, *range(400, 412)))])
def test_random_kernels_match_without_one_of_the_passes(build_all: BuildAll, seed: int) -> None:
    _compare(build_all, [(seed, tuple(step for step in KERNEL_PASSES if step.name != name)) for name in OPTIONAL])


def _compare(build_all: BuildAll, cases: Sequence[tuple[int, tuple[KernelPass, ...]]]) -> None:
    """Build the kernels of these seeds and passes in one library; compare each with the interpreter on whole and on short tiles."""
    draws = []
    for seed, passes in cases:
        rnd, rng = random.Random(seed), np.random.default_rng(seed)
        kernel = _random_kernel(rnd)
        strided = rnd.random() < 0.25
        draws.append((rnd, rng, strided, Job(kernel, {p.name: not strided for p in kernel.memory_params}, passes)))
    library = build_all({number: job for number, (_, _, _, job) in enumerate(draws)}, quiet=True)
    for number, (rnd, rng, strided, _) in enumerate(draws):
        for part in (False, True):
            _compare_once(library[number], rnd, rng, strided, part, f"seed {cases[number][0]}")


def _compare_once(built: Built, rnd: random.Random, rng: np.random.Generator, strided: bool, part: bool, which: str) -> None:
    """Run a kernel on random numbers; `part`: on tiles that are cut short."""
    arrays: dict[str, Array] = {}
    for param in built.kernel.memory_params:
        assert isinstance(param, k.TileParam)
        rows, cols = (int(rng.integers(0 if rnd.random() < 0.1 else 1, n + 1)) if part else n for n in param.type.shape)
        wide = _numbers(rng, (rows, cols * 2), param.type.dtype) if param.role is not k.Role.OUT else \
            np.zeros((rows, cols * 2), param.type.dtype.np)
        arrays[param.name] = wide[:, ::2] if strided else np.ascontiguousarray(wide[:, :cols])
    expected = {name: array.copy() for name, array in arrays.items()}
    assert run_kernel(built.kernel, expected) is None
    assert built(arrays, stage=[name for name in arrays if rnd.random() < 0.2]) == 0, which
    for name, want in expected.items():
        np.testing.assert_array_equal(arrays[name], want, err_msg=f"{which}, {name}\n{built.code.text}")

"""Tiles of rank 3 and more: drawn kernels are lines of NumPy, run on whole arrays by NumPy and as kernels by the executors.

Numbers are small and whole, so that every op drawn is exact, sums and products included, whatever their order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Kernel, Out, Tensor, Tile, kernel, pto, workload
from tests.tolerances import Array

Body = Callable[..., Any]
DTYPES = (DType.F32, DType.F32, DType.I32, DType.F16, DType.BF16)


class Drawn:
    """A kernel: arrays for its three parameters, and a body that means the same on tiles and on arrays."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.dtype = draw.choice(DTYPES)
        rank = draw.choice((3, 3, 4))
        self.leading = tuple(draw.choice((1, 2, 3, 4)) for _ in range(rank - 2))
        rows, cols, inner = (draw.choice((1, 2, 3, 5, 8)) for _ in range(3))
        shapes = [(*self.leading, rows, cols), (*self._shrunk(self.leading), draw.choice((1, rows)), draw.choice((1, cols))),
                  (*self._shrunk(self.leading), cols, inner)]
        if draw.random() < 0.3:
            shapes[1] = shapes[1][-2:]                            # a tile of two axes meets all
        numbers = np.random.default_rng(seed)
        self.arrays = [numbers.integers(-3, 4, shape).astype(self.dtype.np) for shape in shapes]
        self.steps = [draw.randrange(1 << 30) for _ in range(draw.randint(2, 6))]
        self.expected = np.asarray(self.body(*self.arrays))

    @property
    def n_tiles(self) -> int:
        """The number of tiles of the parameters."""
        return int(sum(np.prod(array.shape[:-2]) for array in (*self.arrays, self.expected)))

    def _shrunk(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.draw.choice((1, extent, extent)) for extent in extents)

    def body(self, x: Any, other: Any, weights: Any) -> Any:
        """Return the result of the drawn lines, of tiles or of arrays."""
        for step in self.steps:
            x = self._small(self._line(random.Random(step), x, other, weights))
        return x

    def _line(self, draw: random.Random, x: Any, other: Any, weights: Any) -> Any:
        rank, (*leading, rows, cols) = len(x.shape), x.shape
        can_meet = _broadcasts(other.shape, x.shape)
        lines: list[Callable[[], Any]] = [
            lambda: -x, lambda: abs(x), lambda: x * 2 - 1, lambda: np.where(x > 0, x, -2 * x), lambda: np.maximum(x, 1),
            lambda: self._max(x, draw.choice((-1, -2, rank - 1, rank - 2))),
            lambda: x - self._sum(x, draw.choice((-1, rank - 2)), True),
            lambda: x.reshape(*leading, cols, rows), lambda: x.reshape(-1, cols), lambda: x.reshape(*leading, -1, cols),
            lambda: np.where((x == 1) | (x > 2), 0, x), lambda: np.abs(x) % 3 if self.dtype is DType.I32 else np.square(x),
            lambda: x[..., draw.randrange(rows):, :], lambda: x[..., :, :1] + x, lambda: np.concatenate([x, x * 2], axis=-1),
            lambda: np.concatenate([x, -x], axis=rank - 2)]
        if can_meet:
            lines += [lambda: x + other, lambda: other - x, lambda: x * other, lambda: np.minimum(x, other)] * 2
        if rank > 2:
            at = draw.randrange(rank - 2)
            lines += [lambda: self._sum(x, at, True) + x, lambda: self._sum(x, at, rank <= 3),
                      lambda: x.max(axis=at, keepdims=True) - x, lambda: x[draw.randrange(leading[0])], lambda: x[-1:], lambda: x[::-1],
                      lambda: np.stack([x[n] for n in reversed(range(leading[0]))]), lambda: x - self._sum(x, tuple(range(rank)), True),
                      lambda: self._sum(x, (at, -1), True), lambda: x.min(axis=0, keepdims=True) + x]
            if len(leading) > 1:
                lines += [lambda: x.swapaxes(0, 1), lambda: x.transpose(1, 0, 3, 2)]
            if leading[0] <= 4:
                lines += [lambda: np.concatenate([x, x[:1] * 2], axis=0)]
        else:
            lines += [lambda: np.stack([x, x * 2, -x]), lambda: x.reshape(1, rows, cols), lambda: np.broadcast_to(x, (2, rows, cols)) * 1]
        if weights.shape[-2] == cols and self.dtype is not DType.I32 and _meet(weights.shape[:-2], tuple(leading)):
            lines += [lambda: self._product(x, weights)] * 4
        return draw.choice(lines)()

    def _sum(self, x: Any, axis: Any, keeps: bool) -> Any:
        return x.sum(axis=axis, keepdims=keeps, dtype=x.dtype) if isinstance(x, np.ndarray) else x.sum(axis=axis, keepdims=keeps)

    def _max(self, x: Any, axis: int) -> Any:
        return x - np.max(x, axis=axis, keepdims=True)

    def _product(self, x: Any, weights: Any) -> Any:
        product = x @ weights
        return product.astype(self.dtype.np) if isinstance(product, np.ndarray) else pto.cast(product, self.dtype)

    def _small(self, x: Any) -> Any:
        """Return the numbers within -4 .. 4."""
        return np.maximum(np.minimum(x, 4), -4)

    def kernel(self) -> Kernel:
        """Return the body as a kernel."""
        types = [Tile[(*array.shape, self.dtype)] for array in (*self.arrays, self.expected)]
        x_type, other_type, weights_type, y_type = types
        body = self.body

        @kernel
        def drawn(x: In[x_type], other: In[other_type], weights: In[weights_type], y: Out[y_type]) -> None:  # type: ignore[valid-type]
            pto.store(y, body(x, other, weights))

        return drawn

    def view_of(self, array: Array) -> tuple[Array, Any, Any]:
        """Return memory around a copy of an array, the index that has the array's elements, and the view of a tensor of that index."""
        lead = (slice(None),) * (array.ndim - 2)
        kind = self.draw.randrange(6)
        shape: tuple[int, ...] = array.shape
        item: Any = (...,)
        match kind:
            case 1:
                shape, item = (2, *array.shape), (1,)
            case 2:
                shape, item = (*array.shape[:-2], array.shape[-2] + 5, array.shape[-1]), (*lead, slice(3, 3 + array.shape[-2]))
            case 3:
                shape, item = (*array.shape[:-1], array.shape[-1] + 3), (*lead, slice(None), slice(2, 2 + array.shape[-1]))
            case 4:
                shape, item = (2 * array.shape[0], *array.shape[1:]), (slice(0, 2 * array.shape[0], 2),)
            case 5:
                shape, item = (array.shape[0], 3, *array.shape[1:]), (slice(None), 1)
            case _:
                pass
        memory = np.full(shape, 7, array.dtype)
        memory[item] = array
        return memory, item, Tensor(memory)[item]


def _meet(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(first, second)
    except ValueError:
        return False
    return True


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return _meet(shape, to) and np.broadcast_shapes(shape, to) == to


def drawn(seed: int) -> Drawn:
    """Return the first kernel from a seed on that gives a tile of few enough tiles."""
    while True:
        found = Drawn(seed)
        if found.expected.ndim >= 2 and found.n_tiles <= 32 and found.expected.dtype == found.dtype.np:
            return found
        seed += 1000003


def compare_with_numpy(seeds: range, target: str) -> None:
    """Run a kernel for each seed, all in one workload, and compare all memory of the results."""
    cases = [drawn(seed) for seed in seeds]
    placed = [[case.view_of(array) for array in (*case.arrays, np.full_like(case.expected, 5))] for case in cases]
    kernels = [case.kernel() for case in cases]

    @workload
    def all_cases() -> None:
        for number, (made, views) in enumerate(zip(kernels, placed, strict=True)):
            made[number](*(view for *_, view in views))

    work, wanted = all_cases(), []
    for case, views in zip(cases, placed, strict=True):
        memory, item, _ = views[-1]
        wanted.append(memory.copy())
        wanted[-1][item] = case.expected
    work.compile(target=target).run()
    for seed, views, expected in zip(seeds, placed, wanted, strict=True):
        assert np.array_equal(views[-1][0], expected), f"seed {seed}"


@pytest.mark.parametrize("seed", range(40))
def test_a_kernel_alone_means_what_numpy_means(seed: int) -> None:
    case = drawn(seed)
    assert np.array_equal(case.kernel().run(*case.arrays), case.expected)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_programs_on_strided_views_mean_what_numpy_means(target: str) -> None:
    compare_with_numpy(range(100, 103 if target == "cpu_sim" else 106), target)


@pytest.mark.slow
@pytest.mark.parametrize("first", [1000, 1030])
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_more_programs_mean_what_numpy_means(first: int, target: str) -> None:
    compare_with_numpy(range(first, first + 15), target)


# -- every function of pto, tile by tile -------------------------------------------------------------------------------

LINES: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda x, y: pto.softmax(x), "log_softmax": lambda x, y: x.log_softmax(-1), "softmax down": lambda x, y: pto.softmax(x, -2),
    "logsumexp": lambda x, y: x.logsumexp(axis=-1, keepdims=True), "cumsum": lambda x, y: np.cumsum(x, axis=-1),
    "var": lambda x, y: x.var(axis=-2, keepdims=True), "std": lambda x, y: np.std(x, axis=-1, ddof=1, keepdims=True),
    "argmax": lambda x, y: pto.cast(x.argmax(axis=-1, keepdims=True), DType.F32),
    "argmin down": lambda x, y: pto.cast(np.argmin(x, axis=-2, keepdims=True), DType.F32),
    "prod": lambda x, y: x.prod(axis=-1, keepdims=True), "mean": lambda x, y: pto.mean(x, axis=-2, keepdims=True),
    "sort": lambda x, y: pto.sort(x), "sort down": lambda x, y: np.sort(x, axis=-2), "topk": lambda x, y: pto.topk(x, 3)[0],
    "topk places": lambda x, y: pto.cast(pto.topk(x, 3)[1], DType.F32), "argsort": lambda x, y: pto.cast(x.argsort(), DType.F32),
    "gather": lambda x, y: pto.gather(x, pto.cast(pto.clamp(y, 0, 3), DType.I32)), "tril": lambda x, y: pto.tril(x, 1),
    "triu": lambda x, y: np.triu(x), "pad": lambda x, y: pto.pad(x, widths=((1, 0), (0, 2)), value=7),
    "even": lambda x, y: pto.slice_even(x) + pto.slice_odd(y), "interleave": lambda x, y: pto.interleave(x, y),
    "clamp": lambda x, y: x.clamp(min=y, max=1), "rowadd": lambda x, y: pto.rowadd(x, pto.rowmax(y)),
    "colmul": lambda x, y: pto.colmul(x, pto.colsum(y)), "isnan": lambda x, y: pto.where(pto.isnan(x / y), 1, x),
    "quantize": lambda x, y: pto.dequantize(pto.quantize(x, 0.5), 0.5), "split": lambda x, y: np.split(x, 2, axis=-1)[1],
    "full_like": lambda x, y: pto.full_like(x, 3) + y, "max of two": lambda x, y: x.max(y) + pto.min(x, y),
    "product": lambda x, y: pto.matmul(x, y.mT, x @ y.mT), "ufuncs": lambda x, y: np.exp(np.minimum(x, y)) - np.hypot(1, 0),
    "take": lambda x, y: np.take_along_axis(x, pto.iota((x.shape[-2], 2), DType.I32), -1),
    "scatter": lambda x, y: pto.scatter(x, pto.iota((1, 1), DType.I32), y[..., :, :1]), "erf": lambda x, y: x.erf() * y.sigmoid(),
}


@pytest.mark.parametrize("name", LINES)
def test_a_function_of_a_stack_is_the_function_of_each_tile(name: str) -> None:
    line = LINES[name]
    numbers = np.random.default_rng(5)
    x, y = (numbers.standard_normal((2, 3, 4, 6)).astype(np.float32) for _ in range(2))

    def run(a: Array, b: Array, shape: tuple[int, ...]) -> Array:
        a_type, b_type, out_type = (Tile[(*extents, DType.F32)] for extents in (a.shape, b.shape, shape))

        @kernel
        def once(a: In[a_type], b: In[b_type], out: Out[out_type]) -> None:  # type: ignore[valid-type]
            pto.store(out, line(a, b))

        result: Array = once.run(a, b)
        return result

    shape = _shape_of(line)
    each = np.array([[run(x[i, j], y[0, j], shape) for j in range(3)] for i in range(2)])
    whole = run(x, y[0], (2, 3, *shape))                    # y has one axis less, and meets both positions of x
    assert np.array_equal(whole, each, equal_nan=True)


def _shape_of(line: Callable[[Any, Any], Any]) -> tuple[int, ...]:
    """Return the shape that a line of tiles [4, 6] gives."""
    found: list[tuple[int, ...]] = []

    @kernel
    def asked(a: In[Tile[4, 6, DType.F32]], b: In[Tile[4, 6, DType.F32]]) -> None:
        found.append(line(a, b).shape)

    assert asked.ir
    return found[0]

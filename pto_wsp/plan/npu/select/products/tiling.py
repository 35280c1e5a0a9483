"""In which pieces a product goes through the memories of the cube core.

L0C holds a block of the result, L0A and L0B a step of the inner dimension, twice where it can so that one is filled while the other
is multiplied; L1 holds operands whole, or a chunk of the inner dimension of those that are too large.

>>> split((Shape(128, 512, 256, DType.F16),), Limits.of(builtin_arch("ascend_910b")))
((128, 256), (64,))
"""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.arch.model import Arch
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

# What every core of the family has, for a model whose sources do not say.
_LEAST_BYTES = {"L1": 512 << 10, "L0A": 64 << 10, "L0B": 64 << 10, "L0C": 128 << 10}
ACC_BYTES = 4        # sums are f32 or i32
_LEAST_STEP = 128     # bytes of a row of L0A: shorter ones cost more instructions than they move


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes of the cube core's memories."""

    l1: int
    l0a: int
    l0b: int
    l0c: int

    @staticmethod
    def of(arch: Arch) -> Limits:
        """Return those of an arch."""
        return Limits(*(arch.memory(name).usable_bytes or least for name, least in _LEAST_BYTES.items()))


@dataclass(frozen=True, slots=True)
class Shape:
    """[rows, inner] @ [inner, cols]."""

    rows: int
    inner: int
    cols: int
    dtype: DType


def unit(dtype: DType) -> int:
    """Return what rows and columns of every tile of a product are multiples of: both sides of a fractal, either way round."""
    return max(16, 32 // dtype.nbytes)


def up(n: int, step: int) -> int:
    """Return `n` rounded up to a multiple of `step`."""
    return -(-n // step) * step


def split(shapes: tuple[Shape, ...], limits: Limits) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Return the block of rows x cols that all products of a result share, and the step of each.

    The block with the least traffic to L0A and L0B among those that fit; the longest step of which L0A and L0B hold two.
    """
    rows, cols = _block(shapes, limits)
    return (rows, cols), tuple(_step(shape, rows, cols, limits) for shape in shapes)


def _block(shapes: tuple[Shape, ...], limits: Limits) -> tuple[int, int]:
    first = shapes[0]
    size = unit(first.dtype)
    rows, cols = up(first.rows, size), up(first.cols, size)

    def fits(m: int, n: int) -> bool:
        least = min(_longest(shape, m, n, limits) >= min(up(shape.inner, size), up(_LEAST_STEP // shape.dtype.nbytes, size))
                    for shape in shapes)
        return m * n * ACC_BYTES <= limits.l0c and least

    fitting = ((m, n) for m in _parts(rows, size) for n in _parts(cols, size) if fits(m, n))
    return min(fitting, key=lambda block: _cost(rows, cols, *block))


def _cost(rows: int, cols: int, m: int, n: int) -> tuple[int, ...]:
    """Elements moved for each element of the inner dimension, then blocks; of equal ones the tallest."""
    down, across = -(-rows // m), -(-cols // n)
    return down * cols + across * rows, down * across, -m


def _parts(extent: int, size: int) -> Iterator[int]:
    """Yield the blocks that cut an extent evenly, largest first, each once."""
    last = 0
    for count in range(1, extent // size + 1):
        part = up(-(-extent // count), size)
        if part != last:
            yield part
        last = part


def _longest(shape: Shape, rows: int, cols: int, limits: Limits) -> int:
    """Return the longest step of which L0A and L0B hold two."""
    size = unit(shape.dtype)
    return min(limits.l0a // 2 // (rows * shape.dtype.nbytes), limits.l0b // 2 // (cols * shape.dtype.nbytes)) // size * size


def _step(shape: Shape, rows: int, cols: int, limits: Limits) -> int:
    size, longest = unit(shape.dtype), _longest(shape, rows, cols, limits)
    whole = up(shape.inner, size)
    if whole <= longest:
        return whole
    even = next((step for step in range(longest, longest // 2, -size) if shape.inner % step == 0), None)
    return even or up(-(-shape.inner // -(-shape.inner // longest)), size)

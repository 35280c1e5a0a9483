"""What lies in L1 and L0C at once, and which operands are too large for L1 to hold whole.

An operand that is held whole is loaded where its load stands. One that is not is loaded in chunks of the inner dimension inside its
product, again for each block of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from pto_wsp.errors import CapacityError
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, walk
from pto_wsp.plan.npu.select.products.chains import Piece, Product
from pto_wsp.plan.npu.select.products.tiling import Limits, up
from pto_wsp.values import dataclass

PieceKey: TypeAlias = tuple[int, bool]


@dataclass(frozen=True, slots=True)
class Blocked:
    """A product in blocks of rows x cols and steps of its inner dimension."""

    product: Product
    rows: int
    cols: int
    step: int

    @property
    def whole(self) -> Mapping[PieceKey, tuple[int, int]]:
        """Rows and columns that its operands take of L1 where they are held whole."""
        lhs, rhs = self.product.lhs, self.product.rhs
        inner = up(self.product.inner, self.step)
        return {lhs.key: (up(lhs.rows, self.rows), inner), rhs.key: (inner, up(rhs.cols, self.cols))}


@dataclass(frozen=True, slots=True)
class Life:
    """From which statement, in pre-order, to which something lies in a memory."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Residence:
    """What L1 holds whole, as rows x cols, and for each product (by id() of its statement) how long its chunks are.

    A product of operands that are all held whole is one chunk.
    """

    whole: Mapping[PieceKey, tuple[int, int]]
    chunks: Mapping[int, int]


def lives(body: Body, uses: Mapping[int, Iterable[object]]) -> dict[object, Life]:
    """Return how long each thing lives; `uses`: what statements (by id()) make or use, the first of which makes it.

    What is made before a loop and used in it lives as long as the loop.
    """
    found: dict[object, tuple[int, int, tuple[int, ...]]] = {}
    number = {id(stmt): at for at, stmt in enumerate(walk(body))}

    def visit(stmts: Body, loops: tuple[tuple[int, int], ...]) -> None:
        for stmt in stmts:
            at = number[id(stmt)]
            for thing in uses.get(id(stmt), ()):
                first, last, home = found.get(thing, (at, at, tuple(start for start, _ in loops)))
                found[thing] = first, max(last, next((end for start, end in loops if start not in home), at)), home
            end = at + sum(1 for inner in bodies_of(stmt) for _ in walk(inner))
            for inner in bodies_of(stmt):
                visit(inner, (*loops, (at, end)) if isinstance(stmt, k.For) else loops)

    visit(body, ())
    return {thing: Life(first, last) for thing, (first, last, _) in found.items()}


def peak(sizes: Mapping[object, int], alive: Mapping[object, Life]) -> tuple[int, tuple[object, ...]]:
    """Return the most bytes that live at once, and what lives then, the largest first."""
    best: tuple[int, tuple[object, ...]] = 0, ()
    for at in sorted({alive[thing].first for thing in sizes}):
        then = [thing for thing in sizes if alive[thing].first <= at <= alive[thing].last]
        total = sum(sizes[thing] for thing in then)
        if total > best[0]:
            best = total, tuple(sorted(then, key=lambda thing: -sizes[thing]))
    return best


def reside(kernel: k.Kernel, body: Body, outer: Body, blocked: Mapping[int, Blocked], limits: Limits) -> Residence:
    """Return what L1 holds of the operands of some products; what `outer` loads lies there all the time.

    Raises: K110 where they do not fit, not even in chunks.
    """
    used: dict[int, list[object]] = {}
    pieces: dict[object, Piece] = {}
    whole: dict[object, tuple[int, int]] = {}
    for at, one in blocked.items():
        for piece in (one.product.lhs, one.product.rhs):
            pieces[piece.key] = piece
            used.setdefault(at, []).append(piece.key)
            used.setdefault(id(piece.load), []).append(piece.key)
            rows, cols = one.whole[piece.key]
            before = whole.get(piece.key, (0, 0))
            whole[piece.key] = max(rows, before[0]), max(cols, before[1])
    numbers = {id(stmt): at for at, stmt in enumerate(walk(body))}
    always = {id(stmt) for stmt in outer}
    alive = {key: Life(0, len(numbers)) if id(pieces[key].load) in always else life for key, life in lives(body, used).items()}
    written = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Store)}
    streamed: set[object] = set()
    while True:
        sizes = {key: shape[0] * shape[1] * pieces[key].dtype.nbytes for key, shape in whole.items() if key not in streamed}
        rest = {at: limits.l1 - sum(size for key, size in sizes.items() if alive[key].first <= numbers[at] <= alive[key].last)
                for at in blocked}
        most, then = peak(sizes, alive)
        tight = [at for at, one in blocked.items() if _chunk(one, streamed, rest[at]) is None]
        if most <= limits.l1 and not tight:
            return Residence({key: whole[key] for key in pieces if key not in streamed},   # type: ignore[misc]
                             {at: _chunk(one, streamed, rest[at]) or one.product.inner for at, one in blocked.items()})
        choice = then if most > limits.l1 else _alive_at(numbers[tight[0]], sizes, alive)
        movable = [key for key in choice if pieces[key].load.param not in written]
        if not movable:
            raise _too_large(kernel, [pieces[key] for key in then], {pieces[key].key: sizes[key] for key in then}, limits)
        streamed.add(movable[0])


def _alive_at(at: int, sizes: Mapping[object, int], alive: Mapping[object, Life]) -> tuple[object, ...]:
    return tuple(sorted((key for key in sizes if alive[key].first <= at <= alive[key].last), key=lambda key: -sizes[key]))


def _chunk(one: Blocked, streamed: set[object], rest: int) -> int | None:
    """Return the longest chunk of which L1 has room for two, else for one; None where not even a step fits."""
    product, size = one.product, one.product.lhs.dtype.nbytes
    width = sum(extent for piece, extent in ((product.lhs, one.rows), (product.rhs, one.cols)) if piece.key in streamed)
    if not width:
        return up(product.inner, one.step)
    for copies in (2, 1):
        longest = rest // (copies * width * size) // one.step * one.step
        if longest:
            return min(longest, up(product.inner, one.step))
    return None


def _too_large(kernel: k.Kernel, pieces: Sequence[Piece], sizes: Mapping[PieceKey, int], limits: Limits) -> CapacityError:
    total = sum(sizes.values())
    factor = 2
    while total // factor > limits.l1:
        factor *= 2
    largest = pieces[0]
    rows, cols = largest.load.result.type.shape
    smaller = [-(-rows // factor), cols] if rows >= cols else [rows, -(-cols // factor)]
    return CapacityError(
        f"kernel `{kernel.name}` multiplies tiles that L1 does not hold, and stores to what it loads", largest.load.span,
        expected=f"at most {limits.l1} bytes, or tiles of parameters that it does not store to", found=f"{total} bytes",
        help=f"load `{largest.load.param}` as {smaller} in place of [{rows}, {cols}]",
        notes=("who lies in L1 then:", *(f"{sizes[piece.key]:>8}  {piece.load.param:<12} {piece.load.result.type!r}" for piece in pieces)))

"""Decide what is resident in L1 and L0C at the same time, by live ranges.

`reside` keeps operands whole in L1, loaded at their load statement, while they fit. The largest others are streamed: loaded in chunks of
the inner dimension inside their product, again for each block of the result. `parts_of` computes the results of a kernel together if L0C
holds them all, else one after the other in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from pto_wsp.errors import CapacityError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import Body, bodies_of, map_bodies, walk
from pto_wsp.npu.select.chains import ACC_BYTES, Chains, Limits, LoadedPiece, Product, ProductChain, ProductShape, round_up, split
from pto_wsp.values import dataclass

PieceKey: TypeAlias = tuple[int, bool]


@dataclass(frozen=True, slots=True)
class Blocked:
    """A product cut into blocks of rows x cols and steps of its inner dimension."""

    product: Product
    rows: int
    cols: int
    step: int

    @property
    def whole(self) -> Mapping[PieceKey, tuple[int, int]]:
        """Return the rows and columns of L1 that each operand takes if it resides whole."""
        lhs, rhs = self.product.lhs, self.product.rhs
        inner = round_up(self.product.inner, self.step)
        return {lhs.key: (round_up(lhs.rows, self.rows), inner), rhs.key: (inner, round_up(rhs.cols, self.cols))}


@dataclass(frozen=True, slots=True)
class StatementRange:
    """A live range in pre-order statement numbers, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Residence:
    """The operands resident in L1, as rows x cols, and the chunk length of each product, by `id()` of its statement.

    A product whose operands are all resident has a single chunk.
    """

    whole: Mapping[PieceKey, tuple[int, int]]
    chunks: Mapping[int, int]


def lives(body: Body, uses: Mapping[int, Iterable[object]]) -> dict[object, StatementRange]:
    """Return the live range of each thing. `uses`: the things that a statement, by `id()`, defines or uses; the first use defines.

    A thing defined before a loop and used inside lives to the end of the loop.
    """
    ranges: dict[object, tuple[int, int, tuple[int, ...]]] = {}
    number = {id(stmt): at for at, stmt in enumerate(walk(body))}

    def visit(stmts: Body, loops: tuple[tuple[int, int], ...]) -> None:
        for stmt in stmts:
            at = number[id(stmt)]
            for thing in uses.get(id(stmt), ()):
                first, last, home = ranges.get(thing, (at, at, tuple(start for start, _ in loops)))
                ranges[thing] = first, max(last, next((end for start, end in loops if start not in home), at)), home
            end = at + sum(1 for inner in bodies_of(stmt) for _ in walk(inner))
            for inner in bodies_of(stmt):
                visit(inner, (*loops, (at, end)) if isinstance(stmt, k.For) else loops)

    visit(body, ())
    return {thing: StatementRange(first, last) for thing, (first, last, _) in ranges.items()}


def peak(sizes: Mapping[object, int], alive: Mapping[object, StatementRange]) -> tuple[int, tuple[object, ...]]:
    """Return the largest number of bytes live at once, and the things live then, largest first."""
    best: tuple[int, tuple[object, ...]] = 0, ()
    for at in sorted({alive[thing].first for thing in sizes}):
        then = [thing for thing in sizes if alive[thing].first <= at <= alive[thing].last]
        total = sum(sizes[thing] for thing in then)
        if total > best[0]:
            best = total, tuple(sorted(then, key=lambda thing: -sizes[thing]))
    return best


def reside(kernel: k.Kernel, body: Body, outer: Body, blocked: Mapping[int, Blocked], limits: Limits) -> Residence:
    """Return the residence in L1 of the operands of some products; operands loaded in `outer` are always live.

    Greedy: while the peak exceeds L1, or the rest is too small for a chunk, the largest live operand is streamed instead.

    Raises: K110 if the operands exceed L1 even in chunks.
    """
    used: dict[int, list[object]] = {}
    pieces: dict[object, LoadedPiece] = {}
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
    alive = {key: StatementRange(0, len(numbers)) if id(pieces[key].load) in always else life for key, life in lives(body, used).items()}
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


def _alive_at(at: int, sizes: Mapping[object, int], alive: Mapping[object, StatementRange]) -> tuple[object, ...]:
    return tuple(sorted((key for key in sizes if alive[key].first <= at <= alive[key].last), key=lambda key: -sizes[key]))


def _chunk(one: Blocked, streamed: set[object], rest: int) -> int | None:
    """Return the longest chunk of which L1 can hold two, or else one; None if not even one step fits."""
    product, size = one.product, one.product.lhs.dtype.nbytes
    width = sum(extent for piece, extent in ((product.lhs, one.rows), (product.rhs, one.cols)) if piece.key in streamed)
    if not width:
        return round_up(product.inner, one.step)
    for copies in (2, 1):
        longest = rest // (copies * width * size) // one.step * one.step
        if longest:
            return min(longest, round_up(product.inner, one.step))
    return None


def _too_large(kernel: k.Kernel, pieces: Sequence[LoadedPiece], sizes: Mapping[PieceKey, int], limits: Limits) -> CapacityError:
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


class ChainGroup:
    """Chains that are computed together, and the statements that concern them. `chain`: the chain to compute in blocks, if any."""

    def __init__(self, kernel: k.Kernel, chains: Chains, blocked: Mapping[int, Blocked], members: frozenset[int], limits: Limits,
                 chain: ProductChain | None = None) -> None:
        self.chain = chain
        self.blocked = {at: one for at, one in blocked.items() if one.product.chain in members}
        pieces = {id(piece.load) for one in self.blocked.values() for piece in (one.product.lhs, one.product.rhs)}
        stores = {at for at, stored in chains.stored.items() if stored in members}
        buffers = {chains.chains[member].buffer for member in members}
        self.body = _only(kernel.body, lambda stmt: id(stmt) in self.blocked or id(stmt) in pieces or id(stmt) in stores
                          or isinstance(stmt, k.Item) or (isinstance(stmt, k.Alloc) and stmt.buffer in buffers))
        outer = () if chain is None else self.loads_first()[0]
        self.residence = reside(kernel, self.body, outer, self.blocked, limits)
        size = next(iter(self.blocked.values()))
        self.rows, self.cols = size.rows, size.cols

    def loads_first(self) -> tuple[Body, Body]:
        """Return the loads and items outside of loops and branches, and the rest of the body."""
        return (tuple(stmt for stmt in self.body if isinstance(stmt, k.Load | k.Item)),
                tuple(stmt for stmt in self.body if not isinstance(stmt, k.Load | k.Item)))


def parts_of(kernel: k.Kernel, chains: Chains, limits: Limits) -> Iterator[ChainGroup]:
    """Yield the parts of a kernel: a single one if all results fit L0C, else one per result.

    Raises: K110 if a result would be stored before other parts have loaded from the same parameter.
    """
    blocked: dict[int, Blocked] = {}
    for chain in chains.chains.values():
        mine = {at: product for at, product in chains.products.items() if product.chain == chain.id}
        if mine:
            (rows, cols), steps = split(tuple(ProductShape(chain.rows, p.inner, chain.cols, p.lhs.dtype) for p in mine.values()), limits)
            blocked |= {at: Blocked(product, rows, cols, step) for (at, product), step in zip(mine.items(), steps, strict=True)}
    if not blocked:
        return
    members = {one.product.chain: one for one in blocked.values()}
    cut = {chain for chain, one in members.items() if one.rows < chains.chains[chain].rows or one.cols < chains.chains[chain].cols}
    sizes: dict[object, int] = {chain: one.rows * one.cols * ACC_BYTES for chain, one in members.items()}
    most, then = peak(sizes, lives(kernel.body, _uses(kernel.body, chains, blocked)))
    if not cut and most <= limits.l0c:
        yield ChainGroup(kernel, chains, blocked, frozenset(members), limits)
        return
    stored = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Store)}
    again = next((stmt for stmt in walk(kernel.body) if isinstance(stmt, k.Load) and stmt.param in stored), None)
    if again is not None:
        too_large = [chains.chains[chain] for chain in members if chain in then or chain in cut]
        raise CapacityError(
            f"kernel `{kernel.name}` has results that do not fit L0C together, and stores to `{again.param}` what it loads", again.span,
            expected=f"at most {limits.l0c} bytes of L0C", found=f"{sum(_bytes(chain) for chain in too_large)} bytes",
            help=f"{_fitting(too_large, limits)}, or store to another parameter: then it is computed in blocks",
            notes=("who lies in L0C then:", *(f"{_bytes(chain):>8}  {chain.name:<12} [{chain.rows}, {chain.cols}] {chain.dtype}"
                                             for chain in too_large)))
    for member in members:
        yield ChainGroup(kernel, chains, blocked, frozenset({member}), limits, chains.chains[member])


def _fitting(chains: Sequence[ProductChain], limits: Limits) -> str:
    """Return the help text: the largest result halved until all results fit together."""
    largest = max(chains, key=_bytes)
    rows, cols, rest = largest.rows, largest.cols, sum(map(_bytes, chains)) - _bytes(largest)
    while rest + rows * cols * ACC_BYTES > limits.l0c and max(rows, cols) > 1:
        rows, cols = (-(-rows // 2), cols) if rows >= cols else (rows, -(-cols // 2))
    return f"make `{largest.name}` [{rows}, {cols}] in place of [{largest.rows}, {largest.cols}]"


def _bytes(chain: ProductChain) -> int:
    return chain.rows * chain.cols * ACC_BYTES


def _uses(body: Body, chains: Chains, blocked: Mapping[int, Blocked]) -> dict[int, list[object]]:
    """Return the chains that statements, by `id()`, allocate, add to or store."""
    of_buffer = {chain.buffer.id: chain.id for chain in chains.chains.values() if chain.buffer is not None}
    uses: dict[int, list[object]] = {}
    for stmt in walk(body):
        if id(stmt) in blocked:
            uses[id(stmt)] = [blocked[id(stmt)].product.chain]
        elif id(stmt) in chains.stored:
            uses[id(stmt)] = [chains.stored[id(stmt)]]
        elif isinstance(stmt, k.Alloc):
            uses[id(stmt)] = [of_buffer[stmt.buffer.id]]
    return uses


def _only(body: Body, wanted: Callable[[k.Stmt], bool]) -> Body:
    """Return the wanted statements, with the loops and branches around them."""
    kept: list[k.Stmt] = []
    for stmt in body:
        if wanted(stmt):
            kept.append(stmt)
        elif bodies_of(stmt):
            inner = map_bodies(stmt, lambda part: _only(part, wanted))
            if any(bodies_of(inner)):
                kept.append(inner)
    return tuple(kept)

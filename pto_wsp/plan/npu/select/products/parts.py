"""Which results of a kernel are computed together, and which one after the other, in blocks, because L0C does not hold them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pto_wsp.errors import CapacityError
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, map_bodies, walk
from pto_wsp.plan.npu.select.products.chains import Chain, Chains
from pto_wsp.plan.npu.select.products.residence import Blocked, lives, peak, reside
from pto_wsp.plan.npu.select.products.tiling import ACC_BYTES, Limits, Shape, split


class Part:
    """Chains that are computed together: a body that holds only what concerns them. `chain`: the one that is cut into blocks."""

    def __init__(self, kernel: k.Kernel, chains: Chains, blocked: Mapping[int, Blocked], members: frozenset[int], limits: Limits,
                 chain: Chain | None = None) -> None:
        self.chain = chain
        self.blocked = {at: one for at, one in blocked.items() if one.product.chain in members}
        pieces = {id(piece.load) for one in self.blocked.values() for piece in (one.product.lhs, one.product.rhs)}
        stores = {at for at, stored in chains.stored.items() if stored in members}
        buffers = {chains.chains[member].buffer for member in members}
        self.body = _only(kernel.body, lambda stmt: id(stmt) in self.blocked or id(stmt) in pieces or id(stmt) in stores
                          or (isinstance(stmt, k.Alloc) and stmt.buffer in buffers))
        outer = () if chain is None else self.loads_first()[0]
        self.residence = reside(kernel, self.body, outer, self.blocked, limits)
        size = next(iter(self.blocked.values()))
        self.rows, self.cols = size.rows, size.cols

    def loads_first(self) -> tuple[Body, Body]:
        """Return the loads that stand in no loop or branch, and the rest of the body."""
        return (tuple(stmt for stmt in self.body if isinstance(stmt, k.Load)),
                tuple(stmt for stmt in self.body if not isinstance(stmt, k.Load)))


def parts_of(kernel: k.Kernel, chains: Chains, limits: Limits) -> Iterator[Part]:
    """Yield the parts of a kernel: one where all results fit L0C, else one for each result.

    Raises: K110 where a result would be stored before the kernel has loaded what others need of that parameter.
    """
    blocked: dict[int, Blocked] = {}
    for chain in chains.chains.values():
        mine = {at: product for at, product in chains.products.items() if product.chain == chain.id}
        if mine:
            (rows, cols), steps = split(tuple(Shape(chain.rows, p.inner, chain.cols, p.lhs.dtype) for p in mine.values()), limits)
            blocked |= {at: Blocked(product, rows, cols, step) for (at, product), step in zip(mine.items(), steps, strict=True)}
    if not blocked:
        return
    members = {one.product.chain: one for one in blocked.values()}
    cut = {chain for chain, one in members.items() if one.rows < chains.chains[chain].rows or one.cols < chains.chains[chain].cols}
    sizes: dict[object, int] = {chain: one.rows * one.cols * ACC_BYTES for chain, one in members.items()}
    most, then = peak(sizes, lives(kernel.body, _uses(kernel.body, chains, blocked)))
    if not cut and most <= limits.l0c:
        yield Part(kernel, chains, blocked, frozenset(members), limits)
        return
    stored = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Store)}
    again = next((stmt for stmt in walk(kernel.body) if isinstance(stmt, k.Load) and stmt.param in stored), None)
    if again is not None:
        found = [chains.chains[chain] for chain in members if chain in then or chain in cut]
        raise CapacityError(
            f"kernel `{kernel.name}` has results that do not fit L0C together, and stores to `{again.param}` what it loads", again.span,
            expected=f"at most {limits.l0c} bytes of L0C", found=f"{sum(_bytes(chain) for chain in found)} bytes",
            help=f"{_fitting(found, limits)}, or store to another parameter: then it is computed in blocks",
            notes=("who lies in L0C then:", *(f"{_bytes(chain):>8}  {chain.name:<12} [{chain.rows}, {chain.cols}] {chain.dtype}"
                                             for chain in found)))
    for member in members:
        yield Part(kernel, chains, blocked, frozenset({member}), limits, chains.chains[member])


def _fitting(chains: Sequence[Chain], limits: Limits) -> str:
    """Say what would fit: the largest result cut in halves until all fit together."""
    largest = max(chains, key=_bytes)
    rows, cols, rest = largest.rows, largest.cols, sum(map(_bytes, chains)) - _bytes(largest)
    while rest + rows * cols * ACC_BYTES > limits.l0c and max(rows, cols) > 1:
        rows, cols = (-(-rows // 2), cols) if rows >= cols else (rows, -(-cols // 2))
    return f"make `{largest.name}` [{rows}, {cols}] in place of [{largest.rows}, {largest.cols}]"


def _bytes(chain: Chain) -> int:
    return chain.rows * chain.cols * ACC_BYTES


def _uses(body: Body, chains: Chains, blocked: Mapping[int, Blocked]) -> dict[int, list[object]]:
    """Return which chains statements (by id()) make, add to or store."""
    of_buffer = {chain.buffer.id: chain.id for chain in chains.chains.values() if chain.buffer is not None}
    found: dict[int, list[object]] = {}
    for stmt in walk(body):
        if id(stmt) in blocked:
            found[id(stmt)] = [blocked[id(stmt)].product.chain]
        elif id(stmt) in chains.stored:
            found[id(stmt)] = [chains.stored[id(stmt)]]
        elif isinstance(stmt, k.Alloc):
            found[id(stmt)] = [of_buffer[stmt.buffer.id]]
    return found


def _only(body: Body, wanted: Callable[[k.Stmt], bool]) -> Body:
    """Return the wanted statements, and the loops and branches around them."""
    kept: list[k.Stmt] = []
    for stmt in body:
        if wanted(stmt):
            kept.append(stmt)
        elif bodies_of(stmt):
            inner = map_bodies(stmt, lambda part: _only(part, wanted))
            if any(bodies_of(inner)):
                kept.append(inner)
    return tuple(kept)

"""Give each part of a kernel the statements, loops and branches that it needs, and what crosses from part to part.

    for i in range(0, n, 16):                        for i in range(0, n, 16):
        %1 = load x[i, 0]                                %1 = load x[i, 0]
        %2 = matmul %1, %0                 part 0:       %2 = matmul %1, %0
        %3 = relu %2                 →                   store product[i // 16 * 16, 0], %2
        store y[i, 0], %3
                                                     for i in range(0, n, 16):
                                           part 1:       %2 = load product[i // 16 * 16, 0]
                                                         %3 = relu %2
                                                         store y[i, 0], %3

Parts run one after the other. What depends on what is in no later part, so each turn finds what it would have found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, result_of
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.kernel.values import fresh_ids
from pto_wsp.plan.npu.split.cores.crossings import Bridge, bridges_of, packed
from pto_wsp.plan.npu.split.cores.flow import Flow
from pto_wsp.plan.npu.split.cores.parts import Crossing
from pto_wsp.plan.npu.split.cores.statements import Leaf, Moving
from pto_wsp.plan.npu.split.limits import MAX_TENSORS
from pto_wsp.source import Span
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op
from pto_wsp.values import dataclass


@dataclass(slots=True)
class Share:
    """What one part runs, by id() of statements: its own, those that it makes again, and those of which it is given the value."""

    unit: Unit
    own: dict[int, Leaf] = field(default_factory=dict)
    again: dict[int, Leaf] = field(default_factory=dict)
    given: dict[int, Leaf] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Distributed:
    """The body of a part, its core, and the values that it is given and hands on."""

    unit: Unit
    kernel: k.Kernel
    takes: tuple[Bridge, ...]
    gives: tuple[Bridge, ...]


def distribute(flow: Flow, levels: Mapping[int, int]) -> tuple[tuple[Distributed, ...], tuple[Crossing, ...]]:
    """Return the parts of a kernel, by level, and all that crosses between them.

    Raises: N102 where nobody can say how often something crosses.
    """
    shares: list[Share] = []
    for level in range(max(levels.values(), default=0) + 1):
        own = {id(leaf.stmt): leaf for leaf in flow.nodes() if levels[id(leaf.stmt)] == level}
        share = Share(next((flow.unit(leaf) for leaf in own.values()), Unit.VECTOR), own)
        for leaf in own.values():
            _gather(flow, share, leaf)
        shares.append(share)
    crossing = sorted({id(leaf.stmt): leaf for share in shares for leaf in share.given.values()}.values(), key=lambda leaf: leaf.at)
    bridges = {id(leaf.stmt): bridge for leaf, bridge in zip(crossing, bridges_of(flow, crossing), strict=True)}
    if any(_n_tensors(share, bridges) > MAX_TENSORS for share in shares):
        for share in shares:
            mine = [key for key in bridges if key in share.own]
            bridges |= dict(zip(mine, packed([bridges[key] for key in mine]), strict=True))
    ids = fresh_ids(flow.of.kernel)
    parts: list[Distributed] = []
    for share in shares:
        body = tuple(_body(flow.of.kernel.body, share, bridges, ids))
        takes = tuple(bridges[key] for key in bridges if key in share.given)
        gives = tuple(bridges[key] for key in bridges if key in share.own)
        parts.append(Distributed(share.unit, replace(flow.of.kernel, body=body), takes, gives))
    return tuple(parts), tuple(dict.fromkeys(bridge.crossing for bridge in bridges.values()))


def _gather(flow: Flow, share: Share, leaf: Leaf) -> None:
    """Add to a share what a leaf of it needs."""
    for _, maker, again in flow.needed(leaf, share.unit):
        key = id(maker.stmt)
        if again and key not in share.own:
            if key not in share.again:
                share.again[key] = maker
                _gather(flow, share, maker)
        elif key not in share.own:
            share.given[key] = maker


def _n_tensors(share: Share, bridges: Mapping[int, Bridge]) -> int:
    """Return how many tensors a part would be given."""
    params = {leaf.stmt.param for leaf in (*share.own.values(), *share.again.values()) if isinstance(leaf.stmt, Moving)}
    return len(params) + sum(key in share.own or key in share.given for key in bridges)


def _body(body: Body, share: Share, bridges: Mapping[int, Bridge], ids: Iterator[int]) -> Iterator[k.Stmt]:
    for stmt in body:
        key = id(stmt)
        if isinstance(stmt, k.For | k.If):
            kept = map_bodies(stmt, lambda inner: tuple(_body(inner, share, bridges, ids)))
            if isinstance(kept, k.For) and kept.body:
                yield kept
            elif isinstance(kept, k.If) and (kept.then or kept.other):
                yield kept if kept.then else _turned(kept)
        elif key in share.own:
            yield stmt
            if key in bridges:
                yield from bridges[key].stored(ids, _span(stmt))
        elif key in share.again:
            yield stmt
        elif key in share.given:
            yield from bridges[key].loaded(ids, _span(stmt))


def _turned(branch: k.If) -> k.If:
    """Return a branch without a first side as one without a second."""
    condition = branch.condition
    holds_not = s.unary(Op.NOT, condition) if s.scalar_dtype(condition).is_bool else s.binary(Op.EQ, condition, s.Const(0))
    return replace(branch, condition=holds_not, then=branch.other, other=())


def _span(stmt: k.Stmt) -> Span:
    result = result_of(stmt)
    assert result is not None and isinstance(stmt, k.Compute | k.Load | k.Gather | k.Read)
    return stmt.span

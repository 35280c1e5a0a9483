"""A loop of constant bounds written out, turn by turn.

    for t in range(0, 2, 1):
        %1 = load x[t * 16, 0]               %1 = load x[0, 0]
        h[:] = %1                    →       h[:] = %1
                                             %2 = load x[16, 0]
                                             h[:] = %2

Branches whose conditions are known in a turn are settled.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, result_of, walk
from pto_wsp.expr.rewrite import rewrite
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.plan.kernel.values import fresh_ids
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass


def turns_of(loop: k.For, access: Mapping[str, ParamAccess]) -> range | None:
    """Return the turns of a loop; None where its bounds are not the same numbers in every task."""
    def known(node: s.Scalar) -> s.Scalar | None:
        if not isinstance(node, s.ParamExtent):
            return None
        extent = (access[node.name].rows, access[node.name].cols)[node.dim]
        return None if extent is None else s.Const(extent)

    bounds = [s.substitute(bound, known) for bound in (loop.start, loop.stop, loop.step)]
    numbers = [int(bound.value) for bound in bounds if isinstance(bound, s.Const)]
    return range(*numbers) if len(numbers) == len(bounds) else None


def unrolled(kernel: k.Kernel, loop: k.For, turns: range) -> k.Kernel:
    """Return the kernel with the loop of that variable written out."""
    names = _Names(kernel)

    def opened(body: Body) -> Body:
        out: list[k.Stmt] = []
        for stmt in body:
            if isinstance(stmt, k.For) and stmt.var == loop.var:
                for turn in turns:
                    out += _settled(names.again(stmt.body, {stmt.var: s.Const(turn)}))
            else:
                out.append(map_bodies(stmt, opened))
        return tuple(out)

    return replace(kernel, body=opened(kernel.body))


@dataclass(slots=True)
class _Names:
    """Values, buffers and loop variables that the kernel does not have yet."""

    kernel: k.Kernel
    values: Iterator[int] = field(init=False)
    buffers: Iterator[int] = field(init=False)
    variables: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self.values = fresh_ids(self.kernel)
        made = list(walk(self.kernel.body))
        self.buffers = itertools.count(1 + max((stmt.buffer.id for stmt in made if isinstance(stmt, k.Alloc)), default=-1))
        self.variables = itertools.count(1 + max((stmt.var.id for stmt in made if isinstance(stmt, k.For)), default=-1))

    def again(self, body: Body, scalars: Mapping[s.Var, s.Scalar]) -> Body:
        """Return a body with names of its own for what it makes, and with these scalars in place of variables."""
        inside = list(walk(body))
        results = [result for stmt in inside if (result := result_of(stmt)) is not None]
        values = {value.id: replace(value, id=next(self.values)) for value in results}
        buffers = {stmt.buffer.id: replace(stmt.buffer, id=next(self.buffers)) for stmt in inside if isinstance(stmt, k.Alloc)}
        loops = {stmt.var: replace(stmt.var, id=next(self.variables)) for stmt in inside if isinstance(stmt, k.For)}

        def change(node: object) -> object | None:
            match node:
                case k.Value(id=key):
                    return values.get(key)
                case k.Buffer(id=key):
                    return buffers.get(key)
                case s.Var():
                    return loops.get(node) or scalars.get(node)
                case _:
                    return folded(node)

        return rewrite(body, change)


def folded(node: object) -> s.Scalar | None:
    """Return a scalar with constants computed, once its operands have changed; None for what is no operation."""
    match node:
        case s.Binary(op, lhs, rhs):
            return s.binary(op, lhs, rhs)
        case s.Unary(op, value):
            return s.unary(op, value)
        case s.Select(condition, then, other):
            return s.select(condition, then, other)
        case _:
            return None


def _settled(body: Body) -> Iterator[k.Stmt]:
    for stmt in body:
        if isinstance(stmt, k.If) and isinstance(stmt.condition, s.Const):
            yield from _settled(stmt.then if stmt.condition.value else stmt.other)
        else:
            yield map_bodies(stmt, lambda inner: tuple(_settled(inner)))

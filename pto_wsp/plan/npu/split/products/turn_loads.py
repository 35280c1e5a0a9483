"""Load turned what a product takes transposed.

    %1 = load keys[start, 0]
    %2 = transpose %1            →      %2 = load keys[start, 0], transpose
    %3 = matmul %0, %2                  %3 = matmul %0, %2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, walk
from pto_wsp.ops.entries.movement import transpose
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.plan.kernel.values import use_counts


def turn_loads(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return a kernel of the cube core with transpositions of loaded tiles as loads, where the tile itself is loaded."""
    del context
    loads: dict[int, k.Load] = {}
    turns: dict[int, list[k.Load]] = {}     # by the value that is loaded
    gone: set[int] = set()                  # results of transpositions
    for stmt in walk(kernel.body):
        match stmt:
            case k.Load(result):
                loads[result.id] = stmt
            case k.Compute(result, transpose.name, (k.Value(id=source),)) if source in loads:
                loads[result.id] = replace(loads[source], result=result, transpose=not loads[source].transpose)
                turns.setdefault(source, []).append(loads[result.id])
                gone.add(result.id)
            case _:
                pass

    used = use_counts(kernel.body)

    def loaded(load: k.Load) -> Iterator[k.Stmt]:
        if used[load.result.id] > len(turns.get(load.result.id, ())):
            yield load
        for turned in turns.get(load.result.id, ()):
            yield from loaded(turned)

    def rebuilt(body: Body) -> Body:
        out: list[k.Stmt] = []
        for stmt in body:
            if isinstance(stmt, k.Load):
                out += loaded(stmt)
            elif not (isinstance(stmt, k.Compute) and stmt.result.id in gone):
                out.append(map_bodies(stmt, rebuilt))
        return tuple(out)

    return replace(kernel, body=rebuilt(kernel.body))

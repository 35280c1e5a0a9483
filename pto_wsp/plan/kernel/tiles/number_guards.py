"""Write each guard's number into the statement that it stands at.

    %0 = load x[row, 0]      →      %0 = load x[row, 0], guard 0

A guard is known to users and to the runtime by its place in the kernel as it was traced; from here on statements may move, merge
and go without changing which error a run ends with.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, guards_of, map_bodies, walk
from pto_wsp.plan.kernel.context import KernelContext


def number_guards(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with its guards numbered in the order of `guards_of`."""
    numbers = {id(guard.stmt): number for number, guard in enumerate(guards_of(kernel))}

    def numbered(body: Body) -> Body:
        return tuple(replace(stmt, guard=numbers[id(stmt)]) if isinstance(stmt, k.Guarded) and id(stmt) in numbers
                     else map_bodies(stmt, numbered) for stmt in body)

    return replace(kernel, body=numbered(kernel.body))


def verify_after_number_guards(kernel: k.Kernel) -> None:
    """Guards are numbered from 0 in the order in which they stand, and nothing else has a number."""
    numbers = [guard.stmt.guard for guard in guards_of(kernel)]
    assert numbers == list(range(len(numbers)))
    assert sum(isinstance(stmt, k.Guarded) and stmt.guard is not None for stmt in walk(kernel.body)) == len(numbers)

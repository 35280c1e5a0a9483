"""Write after write: which arguments are given as INOUT although their kernels only write them.

The runtime looks for earlier writers of what a task is given as IN or INOUT, never of an OUT (rule `wait_output`): where another task may
have written elements of an OUT, the task is given it as INOUT. Its kernel's signature stays OUT.

>>> # for t in P.seq(2): for b in P(4): move[b](X[b], Y[b])       Y[b] is written again in the next turn of t: INOUT
"""

from __future__ import annotations

from typing import TypeAlias

from pto_wsp.expr.kernel import Role
from pto_wsp.plan.npu.edges.places import Place, Resource, Site, meets_later, places_of, resource_of, site_of
from pto_wsp.plan.npu.model import Descriptor, NpuPlan, Passed

Overwrites: TypeAlias = frozenset[tuple[Site, int]]      # launches, and which of their arguments


def overwrites(plan: NpuPlan) -> Overwrites:
    """Return the OUT arguments of a plan that may fall on what another task has written before."""
    known = places_of(plan)
    writes: dict[Resource, list[tuple[Place, Descriptor | Passed]]] = {}
    for place in known.places:
        for argument in place.launch.arguments:
            if argument.role.writes:
                writes.setdefault(resource_of(argument), []).append((place, argument))
    return frozenset((site_of(then.launch), position) for then in known.places for position, late in enumerate(then.launch.arguments)
                     if late.role is Role.OUT and any(meets_later(first, early, then, late, known)
                                                      for first, early in writes[resource_of(late)]))

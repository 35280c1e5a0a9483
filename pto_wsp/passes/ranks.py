"""Put the tasks of a workload over a mesh on the executors of their ranks, and copies between ranks on links.

Every rank has the workers that the schedule asks for, once; keys act within a rank. The links that leave a rank are further pools of its
first worker, of one executor each, so a link takes one copy at a time, in the order in which they become ready. A task has the first link
of its route; the simulator takes it over the others (`Ranks.routes`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pto_wsp.arch.model import Arch, Links
from pto_wsp.errors import ArchError, RankError, ScheduleConflictError, raise_all
from pto_wsp.ir import scalar as s
from pto_wsp.ir.execution_rules import Routes
from pto_wsp.ir.mesh import OnRank
from pto_wsp.ir.plan import Submit, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.scalar import Op
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.values import dataclass

MAX_LINKS = 1 << 10     # that leave one rank


@dataclass(frozen=True, slots=True)
class Ranks:
    """The mesh of a plan, as pairs of an axis and its size, and the links between its ranks."""

    mesh: tuple[tuple[str, int], ...]
    links: Links

    @property
    def n(self) -> int:
        """The number of ranks."""
        return math.prod(size for _, size in self.mesh)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the links that leave a rank, and of the one from a switch to it."""
        match self.links.topology:
            case "all":
                return tuple(f"link to rank {number}" for number in range(self.n))
            case "ring":
                return ("link to the next rank", "link to the rank before")
            case "switch":
                return ("link to the switch", "link from the switch")
            case _:
                return tuple(f"link {way} {name}" for name, size in self.mesh if size > 1 for way in ("up", "down"))

    @property
    def axes(self) -> tuple[int, ...]:
        """The ranks along each axis of a torus; those of a ring are one. Axes of one rank have no links."""
        return (self.n,) if self.links.topology == "ring" else tuple(size for _, size in self.mesh if size > 1)

    @property
    def routes(self) -> Routes | None:
        """The routes of copies; None where each takes one link."""
        if self.links.topology == "all" or (self.links.topology != "switch" and not self.axes):
            return None
        return Routes(() if self.links.topology == "switch" else self.axes, self.links.buffers or 0)

    def link(self, on: OnRank) -> s.Scalar:
        """Return the number of the first link of a copy, among the links of its source rank."""
        assert on.source is not None
        if self.links.topology == "all":
            return on.rank
        link: s.Scalar = s.Const(0)
        for number, (ahead, behind) in reversed(list(enumerate(_ways(on, self.axes if self.links.topology != "switch" else ())))):
            way = s.select(s.binary(Op.LE, ahead, behind), s.Const(2 * number), s.Const(2 * number + 1))
            link = s.select(s.binary(Op.NE, ahead, s.Const(0)), way, link)
        return link


def n_links(on: OnRank, links: Links) -> s.Scalar:
    """Return the number of links on the route of a copy between two ranks; at least 1, also for one within a rank."""
    if links.topology in ("all", "switch"):
        return s.Const(1 if links.topology == "all" else 2)
    total: s.Scalar = s.Const(0)
    for ahead, behind in _ways(on, Ranks(on.mesh, links).axes):
        total = s.add(total, s.binary(Op.MIN, ahead, behind))
    return s.binary(Op.MAX, total, s.Const(1))


def _ways(on: OnRank, axes: Sequence[int]) -> Iterator[tuple[s.Scalar, s.Scalar]]:
    """Yield how far the target of a copy is up and down each axis."""
    assert on.source is not None
    for number, size in enumerate(axes):
        below = s.Const(math.prod(axes[number + 1:]))
        there, back = (s.binary(Op.MOD, s.binary(Op.FLOORDIV, rank, below), s.Const(size)) for rank in (on.rank, on.source))
        yield tuple(s.binary(Op.MOD, s.sub(*pair), s.Const(size)) for pair in ((there, back), (back, there)))  # type: ignore[misc]


def ranks_of(plan: TaskPlan, arch: Arch) -> Ranks | None:
    """Return the mesh of a plan; None if no task is on a rank.

    Raises: M103 for tasks that are on no rank while others are, and for tasks of two meshes; C110 for an arch without links.
    """
    tasks = submits(plan)
    meshes = dict.fromkeys(task.on.mesh for task in tasks if task.on is not None)
    if not meshes:
        return None
    raise_all([RankError("a task of a workload over ranks runs on no rank", task.span, expected="a part, A.on(r), as an argument",
                         found=f"kernel `{plan.kernels[task.kernel].kernel.name}`, made before a mesh was named",
                         help="call it in `for r in P(mesh)`") for task in tasks if task.on is None])
    if len(meshes) > 1:
        raise RankError("a workload is over two meshes", here(), expected="one mesh", found=" and ".join(map(str, meshes)))
    if arch.links is None:
        raise ArchError(f"arch `{arch.name}` does not say how its ranks are linked", here(), expected="links", found="None",
                        help="give what you know: arch.with_links(bandwidth_bytes_per_cycle=..., latency_cycles=...)")
    (mesh,) = meshes
    found = Ranks(mesh, arch.links)
    if len(found.names) > MAX_LINKS:
        raise ArchError(f"{found.n} ranks with a link between each two are too many to simulate", here(),
                        expected=f"at most {MAX_LINKS} links from a rank", help='arch.with_links(topology="ring"), or "torus"')
    return found


def refuse_across_ranks(schedule: Schedule) -> None:
    """Refuse directives that would move tasks between ranks.

    Raises: S105.
    """
    ready = None if schedule.task_graph is None else schedule.task_graph.ready
    said = [text for text, on in (("a calendar", schedule.calendar is not None), ("a spatial map", schedule.spatial_map is not None),
                                  ("ReadyPolicy.work_steal()", ready is not None and ready.kind == "work_steal")) if on]
    raise_all([ScheduleConflictError(f"{text} and a mesh", here(), notes=("it would let a rank run the tasks of another one",),
                                     help="leave one of them out; a dispatch acts within each rank") for text in said])


def on_rank(task: Submit, ranks: Ranks, n_workers: int, n_pools: int) -> tuple[s.Scalar, s.Scalar]:
    """Return the worker and the pool of a task, which has them within its rank.

    `n_workers`: of a rank; `n_pools`: of a worker, without links.
    """
    on = task.on
    assert on is not None
    worker = s.add(s.mul(on.rank, s.Const(n_workers)), task.worker)
    if not on.crosses or on.source is None:
        return worker, task.pool
    is_local = s.binary(Op.EQ, on.source, on.rank)
    return (s.select(is_local, worker, s.mul(on.source, s.Const(n_workers))),
            s.select(is_local, task.pool, s.add(ranks.link(on), s.Const(n_pools))))

"""What each task of a plan is told to wait for, and where many that several tasks wait for are joined.

A task names as many others as it likes. Where several tasks wait for the same many, a task without a kernel joins these: else each pair
would have an edge.
"""

from __future__ import annotations

from dataclasses import field

from pto_wsp.plan.model import AwaitEvent, Receive, RecordEvent, Send, SetSlot
from pto_wsp.plan.npu.edges.order import ProgramOrder, program_order
from pto_wsp.plan.npu.edges.overwrites import Overwrites, overwrites
from pto_wsp.plan.npu.edges.places import site_of
from pto_wsp.plan.npu.edges.readers import RememberedReads, remembered_reads
from pto_wsp.plan.npu.edges.statements import Statement, Task, statements, times, turns_of, turns_of_tokens
from pto_wsp.plan.npu.model import Block, Drain, Fork, Launch, Network, NpuPlan, Repeat, Scope, Unordered
from pto_wsp.plan.waits.handles import HandleTask, HandleUses, Path, TrackedHandle, tracked_uses
from pto_wsp.values import dataclass

WORTH_JOINING = 16     # kWorthJoining in pto_wsp_abi.h


@dataclass(frozen=True, slots=True)
class Waits:
    """Edges that a plan's tasks are told of: program order, handles, reads before writes. `overwrites`: what INOUT makes them wait for."""

    order: ProgramOrder
    handles: HandleUses
    reads: RememberedReads
    overwrites: Overwrites
    sizes: dict[TrackedHandle, int | None] = field(default_factory=dict)      # how many tasks a collection can hold
    shared: frozenset[TrackedHandle] = frozenset()                            # collections that several tasks may wait for

    def tells(self, launch: Launch) -> bool:
        """Tell whether a launch is told to wait for anything."""
        return launch.source in self.order.waits or bool(self.handles.waits(launch.source) or self.reads.waits(launch))

    def looks_up(self, launch: Launch, argument: int) -> bool:
        """Tell whether a launch is given an argument as INOUT, so that it waits for who has written there."""
        return (site_of(launch), argument) in self.overwrites

    def is_named(self, launch: Launch) -> bool:
        """Tell whether somebody may be told to wait for a launch."""
        return launch.source in self.order.counts or bool(self.handles.collects(launch.source) or self.reads.remembered(launch))


def waits_of(plan: NpuPlan) -> Waits:
    """Return what the tasks of a plan are told to wait for."""
    tasks: list[HandleTask] = []
    bodies: dict[int, int] = {}
    loops_of: dict[int, tuple[Repeat, ...]] = {}          # by source
    tasks_of: dict[int, Task] = {}                        # by handle
    opened: dict[int, tuple[Repeat, ...]] = {}            # by the number of a body: the loops around it

    def walk(body: Block | Fork | Unordered | Network, loops: tuple[Repeat, ...], path: Path) -> None:
        number = bodies.setdefault(id(body), len(bodies))
        opened[number] = loops
        match body:
            case Block():
                parts: tuple[Statement, ...] = statements(body)
            case Fork():
                parts = body.bodies
            case Unordered(sides):
                parts = sides
            case Network(stages):
                parts = tuple(stage.body for stage in stages)
        for position, part in enumerate(parts):
            here = (*path, (number, position))
            match part:
                case Task(source):
                    first = part.launches[0]
                    tasks.append(HandleTask(source, first.handle, first.after, here))
                    loops_of[source], tasks_of[first.handle] = loops, part
                case Repeat(body=inner):
                    walk(inner, (*loops, part), here)
                case Scope(body=inner):
                    walk(inner, loops, here)
                case Drain(body=inner):
                    walk(inner, (*loops, turns_of_tokens(part)), here)
                case Block() | Fork() | Unordered() | Network():
                    walk(part, loops, here)
                case SetSlot() | Send() | Receive() | RecordEvent() | AwaitEvent():      # a token waits for what stands before it
                    pass

    walk(plan.body, (), ())
    handles = tracked_uses(tasks, bodies)
    sizes: dict[TrackedHandle, int | None] = {}
    shared: set[TrackedHandle] = set()
    for task in tasks:
        for handle in handles.waits(task.site):
            maker = tasks_of[handle.handle]
            if handle in sizes or len(loops_of[task.site]) > len(opened[handle.body]):
                shared.add(handle)
            sizes[handle] = times(maker.count, *map(turns_of, loops_of[maker.source][len(opened[handle.body]):]))
    return Waits(program_order(plan), handles, remembered_reads(plan), overwrites(plan), sizes,
                 frozenset(shared))

"""What each task of a plan is told to wait for, and whether that takes a kernel for tasks that do nothing but wait.

A task may name so many others at most; where it has to wait for more, tasks that do nothing join them.
"""

from __future__ import annotations

from dataclasses import field, replace

from pto_wsp.expr.kernel import Kernel
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.model import AwaitEvent, Receive, RecordEvent, Send, SetSlot
from pto_wsp.plan.npu.edges.order import ProgramOrder, program_order
from pto_wsp.plan.npu.edges.readers import RememberedReads, remembered_reads
from pto_wsp.plan.npu.edges.statements import Statement, Task, statements, times, total, turns_of, turns_of_tokens
from pto_wsp.plan.npu.model import Block, Drain, Fork, Launch, Network, NpuKernel, NpuPlan, Repeat, Scope, Unordered
from pto_wsp.plan.npu.walk import launches_of
from pto_wsp.plan.waits.handles import HandleTask, HandleUses, Path, TrackedHandle, tracked_uses
from pto_wsp.values import dataclass

MOST_DEPENDENCIES = 16     # kMostDependencies in pto_wsp_abi.h
_JOIN = "join"


@dataclass(frozen=True, slots=True)
class Waits:
    """Edges that a plan's tasks are told of: program order, handles, and reads before writes."""

    order: ProgramOrder
    handles: HandleUses
    reads: RememberedReads
    sizes: dict[TrackedHandle, int | None] = field(default_factory=dict)      # how many tasks a collection can hold

    def bound(self, launch: Launch) -> int | None:
        """Return how many tasks a launch may be told to wait for, None where that is known only at run time."""
        return total((self.order.waits.get(launch.source, 0), *(self.sizes[handle] for handle in self.handles.waits(launch.source)),
                      *(self.reads.bounds[resource] for resource in self.reads.waits(launch))))

    def tells(self, launch: Launch) -> bool:
        """Tell whether a launch is told to wait for anything."""
        return launch.source in self.order.waits or bool(self.handles.waits(launch.source) or self.reads.waits(launch))

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
    for task in tasks:
        for handle in handles.waits(task.site):
            maker = tasks_of[handle.handle]
            sizes[handle] = times(maker.count, *map(turns_of, loops_of[maker.source][len(opened[handle.body]):]))
    return Waits(program_order(plan), handles, remembered_reads(plan), sizes)


def needs_join(plan: NpuPlan, waits: Waits) -> bool:
    """Tell whether some task may have to wait for more others than it can name."""
    return any(bound is None or bound > MOST_DEPENDENCIES for bound in map(waits.bound, launches_of(plan.body)))


def add_join_kernel(plan: NpuPlan) -> NpuPlan:
    """Return the plan with a kernel that does nothing, behind the others, where a task has to wait for more others than it can name."""
    if plan.join is not None or not needs_join(plan, waits_of(plan)):
        return plan
    kernel = NpuKernel(Kernel(_JOIN, (), ()), Unit.VECTOR, ())
    return replace(plan, kernels=(*plan.kernels, kernel), join=len(plan.kernels))

"""Resolve a schedule's keys for the tasks of a plan: names become loop variables, bracket indices and symbols.

A calendar gives each task an executor and a position in that executor's order, from keys or from a table of the plan.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchError, CalendarError, KeyRangeError, KeyTraceError, WindowError, raise_all
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import Loop, walk
from pto_wsp.ir.plan import Check, CheckKind, Submit, TaskPlan
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.waits import has_waits
from pto_wsp.schedule.calendar import MAX_EXECUTORS, Calendar
from pto_wsp.schedule.keys import BY_NAME
from pto_wsp.schedule.policy import OUTSIDE_TABLE, KeyExpr
from pto_wsp.source import here

SCHEDULE_CHECKS = (CheckKind.KEY, CheckKind.ROOM)
LARGEST = (1 << 63) - 1
_LARGE = 1 << 31     # products of indices with larger factors may overflow 64 bits


def schedule_error(check: Check, value: int, upper: int, notes: tuple[str, ...], found: str | None = None) -> KeyRangeError | WindowError:
    """Return the error for a failed schedule check (KEY or ROOM). `found`: the value as text, if not `value`."""
    found = str(value) if found is None else found
    if check.kind is CheckKind.ROOM:
        return WindowError(f"{check.kind.value}: `{check.subject}`", check.span, expected=f"at most {upper}", found=found, notes=notes,
                           help="give the window more room, or take WindowMode.BENCHMARK to count and go on")
    allowed = ">= 0" if value < 0 and upper >= LARGEST - 1 else f"0 .. {upper}"
    return KeyRangeError(f"{check.kind.value}: `{check.subject}`", check.span, expected=allowed, found=found, notes=notes,
                         help="change the key: key.max(0) is never negative, key % n lies in 0 .. n - 1")


# -- keys --------------------------------------------------------------------------------------------------------------
class Keys:
    """The meaning of keys for the tasks of one plan. Collects errors, and the symbols that only keys name."""

    def __init__(self, plan: TaskPlan) -> None:
        self.symbols = list(plan.symbols)
        self._errors: dict[KeyTraceError, None] = {}
        self._said: set[tuple[str, str]] = set()
        self._names = tuple(use.kernel.name for use in plan.kernels)
        self.kernels = tuple(dict.fromkeys(self._names))
        self._starts = {item.var.id: item for item in walk(plan.body) if isinstance(item, Loop)}

    def kernel_of(self, task: Submit) -> str:
        """Return the name of a task's kernel."""
        return self._names[task.kernel]

    def of(self, task: Submit) -> TaskKeys:
        """Return the resolver of keys for one task."""
        return TaskKeys(self, task)

    def raise_errors(self) -> None:
        """Raise S103 for all collected errors together."""
        raise_all(tuple(self._errors))

    def refuse(self, message: str, task: Submit, expected: str, found: str) -> s.Scalar:
        """Collect an error at a task, once; return a placeholder."""
        if (message, found) not in self._said:
            self._said.add((message, found))
            self._errors[KeyTraceError(message, task.span, expected=expected, found=found)] = None
        return s.Const(0)

    def symbol(self, name: s.SymbolRef, task: Submit) -> s.Scalar:
        """Return the plan's symbol that a key names; a new symbol if the workload has none of that name."""
        matches = [symbol for symbol in self.symbols if symbol.name == name.name]
        if len(matches) > 1:
            return self.refuse(f"the schedule's key names the symbol `{name.name}`, and the workload has {len(matches)} of that name", task,
                               "one symbol of a name", name.name)
        if not matches:
            matches = [replace(name, id=1 + max((symbol.id for symbol in self.symbols), default=BY_NAME), dtype=name.dtype or DType.I64)]
            self.symbols.extend(matches)
        return matches[0]

    def is_natural(self, node: s.Scalar) -> bool:
        """Tell whether an expression is never negative, for all bindings with sizes that fit memory."""
        match node:
            case s.Const(value):
                return 0 <= value <= _LARGE
            case s.TaskIndex() | s.ReplicaIndex() | s.DimOf():
                return True
            case s.Var(_, var):
                loop = self._starts.get(var)
                return loop is not None and self.is_natural(loop.start) and isinstance(loop.step, s.Const) and loop.step.value > 0
            case s.Binary(s.Op.MOD, _, s.Const(divisor)):
                return divisor >= 0
            case s.Binary(s.Op.HASHMOD, _, _):
                return True
            case s.Binary(s.Op.MAX, lhs, rhs):
                return self.is_natural(lhs) or self.is_natural(rhs)
            case s.Binary(s.Op.MUL, _, s.Const(factor)) if factor > _LARGE:
                return False
            case s.Binary(s.Op.ADD | s.Op.MUL | s.Op.FLOORDIV | s.Op.MIN, lhs, rhs):
                return self.is_natural(lhs) and self.is_natural(rhs)
            case s.Select(_, then, other):
                return self.is_natural(then) and self.is_natural(other)
            case _:
                return s.scalar_dtype(node).is_bool


class TaskKeys:
    """The keys of a schedule for one task. `checks`: what the run must check before it makes the task."""

    def __init__(self, keys: Keys, task: Submit) -> None:
        self._keys = keys
        self._task = task
        self.checks: list[Check] = []

    def value(self, key: KeyExpr) -> s.Scalar:
        """Return the key's expression with the task's names resolved."""
        resolved = s.substitute(key.node, self._change)
        if isinstance(resolved, s.Const):
            resolved = s.Const(int(resolved.value))      # a key that only compares the kernel is a truth value
        if not (s.scalar_dtype(resolved).is_integer or s.scalar_dtype(resolved).is_bool):
            return self._keys.refuse("the schedule's key takes a symbol for a whole number that the workload takes for a float", self._task,
                                     "a whole number", print_scalar(key.node))
        return resolved

    def natural(self, key: KeyExpr, what: str, largest: int = LARGEST) -> s.Scalar:
        """Return the key's expression; adds a check that the value is in 0 .. `largest` unless that is certain."""
        resolved = self.value(key)
        if largest < LARGEST - 1 or not self._keys.is_natural(resolved):
            self.checks.append(Check(CheckKind.KEY, resolved, s.Const(0), s.Const(largest), f"{what}: {key!r}", span=self._task.span))
        return resolved

    def _change(self, node: s.Scalar) -> s.Scalar | None:
        task = self._task
        match node:
            case s.AxisName(name, default):
                for var in reversed(task.loops):
                    if var.name == name:
                        return var
                if default is not None:
                    return s.substitute(default, self._change)
                if name == OUTSIDE_TABLE:
                    kernel = self._keys.kernel_of(task)
                    return self._keys.refuse(f"the schedule's table has no number for kernel `{kernel}`", task,
                                             f'an entry "{kernel}", or None for all others', "tasks of other kernels")
                known = ", ".join(f"t.{var.name}" for var in task.loops) or "none: no loop is around it"
                if name == "kernel":       # no loop has this name
                    known = 't.kernel == "name" or t.kernel == the kernel: it can be compared, and is no number'
                return self._keys.refuse(f"the schedule's key names `{name}`, which this task does not have", task, known, f"t.{name}")
            case s.BracketIndex(position):
                if position < task.n_brackets:
                    return task.index[position]
                return self._keys.refuse(f"the schedule's key takes t.params[{position}]", task, f"{task.n_brackets} bracket indices",
                                         f"params[{position}]")
            case s.KernelIs(name):
                kernels = self._keys.kernels
                if name in kernels:
                    return s.Const(self._keys.kernel_of(task) == name)
                return self._keys.refuse(f"the schedule's key names the kernel `{name}`, which the workload does not have", task,
                                         ", ".join(kernels), name)
            case s.SymbolRef():
                return self._keys.symbol(node, task)
            case s.Select(condition, then, other):    # the branch not taken may name loops that the task does not have
                asked = s.substitute(condition, self._change)
                if isinstance(asked, s.Const):
                    return s.substitute(then if asked.value else other, self._change)
                return s.select(asked, s.substitute(then, self._change), s.substitute(other, self._change))
            case s.Binary(s.Op.AND | s.Op.OR as op, lhs, rhs) if s.scalar_dtype(node).is_bool:
                first, second = sorted((lhs, rhs), key=_depends_on_more_than_kernels)
                asked = s.substitute(first, self._change)
                if isinstance(asked, s.Const) and bool(asked.value) is (op is s.Op.OR):
                    return asked
                rest = s.substitute(second, self._change)
                return rest if isinstance(asked, s.Const) else s.binary(op, asked, rest)
            case _:
                return None


def _depends_on_more_than_kernels(condition: s.Scalar) -> int:
    """Return 0 for a condition on the kernel alone, 1 for a condition on the kernel and more, 2 for a condition without the kernel."""
    asks = [isinstance(leaf, s.KernelIs) for leaf in s.leaves(condition)]
    return (not all(asks)) + (not any(asks))


# -- calendars ---------------------------------------------------------------------------------------------------------
def calendar_workers(calendar: Calendar, arch: Arch) -> int:
    """Return the number of executors of a calendar; 0 for a calendar by a function, whose executors only a run knows.

    Raises: C110 if the arch has fewer.
    """
    named, most = calendar.n_executors or 0, most_executors(arch)
    if named > most:
        raise ArchError(f"the calendar names more executors than arch `{arch.name}` has", here(), expected=f"at most {most}",
                        found=f"{named}")
    return named


def most_executors(arch: Arch) -> int:
    """Return the most executors that a calendar may name: AICPUs, or cores if there are more; an executor of a pool is a core."""
    if arch.aicpu.count is None:
        return MAX_EXECUTORS
    return min(MAX_EXECUTORS, max(arch.aicpu.count, (arch.cores.cube or 0) + (arch.cores.vector or 0)))


def refuse_reads(plan: TaskPlan) -> None:
    """Refuse a calendar for a plan whose tasks depend on computed values.

    Raises: S106 for such a plan.
    """
    if has_waits(plan):
        raise CalendarError(f"which tasks `{plan.name}` has depends on what its tasks compute", here(),
                            expected="tasks that are all known before the first one runs",
                            help="use dispatch or streams, which place tasks as they are made")


def slot_of(calendar: Calendar, keys: TaskKeys, task: Submit, arch: Arch) -> tuple[s.Scalar, s.Scalar]:
    """Return the executor of one task, and the task's position there."""
    if calendar.worker is None or calendar.position is None:
        keys.checks.append(Check(CheckKind.CALENDAR, s.TaskIndex(), s.Const(0), s.Const(len(calendar.table) - 1), "calendar",
                                 span=task.span))
        return (s.CalendarEntry(0), s.CalendarEntry(1)) if calendar.table else (s.Const(0), s.Const(0))
    return keys.natural(calendar.worker, "calendar worker", most_executors(arch) - 1), keys.value(calendar.position)

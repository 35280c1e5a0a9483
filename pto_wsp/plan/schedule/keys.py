"""Keys of a schedule in terms of a plan: names become the loop variables, bracket indices and symbols of each task."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.errors import KeyRangeError, KeyTraceError, WindowError, raise_all
from pto_wsp.plan.model import Check, CheckKind, Loop, Submit, TaskPlan
from pto_wsp.plan.walk import items_of
from pto_wsp.schedule.keys import BY_NAME
from pto_wsp.schedule.policy import KeyExpr
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar_text import print_scalar

SCHEDULE_CHECKS = (CheckKind.KEY, CheckKind.ROOM)
LARGEST = (1 << 63) - 1
_LARGE = 1 << 31     # indices times more than this might not fit, nor those plus much more


def schedule_error(check: Check, value: int, upper: int, notes: tuple[str, ...], found: str | None = None) -> KeyRangeError | WindowError:
    """Return the error for a check of the schedule, KEY or ROOM, that a task does not pass; `found`: the value as text."""
    found = str(value) if found is None else found
    if check.kind is CheckKind.ROOM:
        return WindowError(f"{check.kind.value}: `{check.subject}`", check.span, expected=f"at most {upper}", found=found, notes=notes,
                           help="give the window more room, or take WindowMode.BENCHMARK to count and go on")
    allowed = ">= 0" if value < 0 and upper >= LARGEST - 1 else f"0 .. {upper}"
    return KeyRangeError(f"{check.kind.value}: `{check.subject}`", check.span, expected=allowed, found=found, notes=notes,
                         help="change the key: key.max(0) is never negative, key % n lies in 0 .. n - 1")


class Keys:
    """What keys mean for the tasks of one plan. Collects what does not fit, and the symbols that only keys name."""

    def __init__(self, plan: TaskPlan) -> None:
        self.symbols = list(plan.symbols)
        self._errors: dict[KeyTraceError, None] = {}
        self._said: set[tuple[str, str]] = set()
        self._names = tuple(use.kernel.name for use in plan.kernels)
        self.kernels = tuple(dict.fromkeys(self._names))
        self._starts = {item.var.id: item for item in items_of(plan) if isinstance(item, Loop)}

    def kernel_of(self, task: Submit) -> str:
        """Return the name of a task's kernel."""
        return self._names[task.kernel]

    def of(self, task: Submit) -> TaskKeys:
        """Return the keys as one task sees them."""
        return TaskKeys(self, task)

    def raise_errors(self) -> None:
        """Raise S103 for what did not fit, all of it together."""
        raise_all(tuple(self._errors))

    def refuse(self, message: str, task: Submit, expected: str, found: str) -> s.Scalar:
        """Note an error at a task, once; return what stands in its place."""
        if (message, found) not in self._said:
            self._said.add((message, found))
            self._errors[KeyTraceError(message, task.span, expected=expected, found=found)] = None
        return s.Const(0)

    def symbol(self, name: s.SymbolRef, task: Submit) -> s.Scalar:
        """Return the symbol of the plan that a key names: a new one where the workload has none of that name."""
        known = [symbol for symbol in self.symbols if symbol.name == name.name]
        if len(known) > 1:
            return self.refuse(f"the schedule's key names the symbol `{name.name}`, and the workload has {len(known)} of that name", task,
                               "one symbol of a name", name.name)
        if not known:
            known = [replace(name, id=1 + max((symbol.id for symbol in self.symbols), default=BY_NAME), dtype=name.dtype or DType.I64)]
            self.symbols.extend(known)
        return known[0]

    def is_natural(self, node: s.Scalar) -> bool:
        """Tell whether an expression is surely not negative, whatever is bound, as far as sizes go that fit memory."""
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
    """The keys of a schedule as one task sees them. `checks`: what a run has to find before it makes the task."""

    def __init__(self, keys: Keys, task: Submit) -> None:
        self._keys = keys
        self._task = task
        self.checks: list[Check] = []

    def value(self, key: KeyExpr) -> s.Scalar:
        """Return the key's expression with the task's names in it."""
        found = s.substitute(key.node, self._change)
        if isinstance(found, s.Const):
            found = s.Const(int(found.value))      # not a truth value, of a key that only asks for the kernel
        if not (s.scalar_dtype(found).is_integer or s.scalar_dtype(found).is_bool):
            return self._keys.refuse("the schedule's key takes a symbol for a whole number that the workload takes for a float", self._task,
                                     "a whole number", print_scalar(key.node))
        return found

    def natural(self, key: KeyExpr, what: str, largest: int = LARGEST) -> s.Scalar:
        """Return the key's expression; a run ends with an error where it is negative, or more than `largest`."""
        found = self.value(key)
        if largest < LARGEST - 1 or not self._keys.is_natural(found):
            self.checks.append(Check(CheckKind.KEY, found, s.Const(0), s.Const(largest), f"{what}: {key!r}", span=self._task.span))
        return found

    def _change(self, node: s.Scalar) -> s.Scalar | None:
        task = self._task
        match node:
            case s.AxisName(name, default):
                for var in reversed(task.loops):
                    if var.name == name:
                        return var
                if default is not None:
                    return s.substitute(default, self._change)
                known = ", ".join(f"t.{var.name}" for var in task.loops) or "none: no loop is around it"
                if name == "kernel":       # a name of a loop would have been found
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
            case s.Select(condition, then, other):    # what is not chosen may name loops that the task does not have
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
    """Return 0 for a condition on the kernel alone, 1 for one on more, 2 for one that does not ask for the kernel."""
    asks = [isinstance(leaf, s.KernelIs) for leaf in s.leaves(condition)]
    return (not all(asks)) + (not any(asks))

"""Trace the loops, branches and groups of a function on tensors: tt.loop, tt.each, tt.when, tt.otherwise, tt.group.

Each body is traced once, whatever its bounds and conditions will be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from pto_wsp.calls import user_call
from pto_wsp.errors import ConditionError, TensorBodyError, TensorControlError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.scalar import Const, print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.source import here, user_frame
from pto_wsp.trace.branch import BranchKind, BranchSide
from pto_wsp.trace.bytecode import NUMBERS, LoopCarried, carried_variable, held_by_names, loop_names, takes_apart_otherwise
from pto_wsp.trace.kernel.control import check_is_condition
from pto_wsp.trace.tensor.trace import TensorTrace, current_trace
from pto_wsp.trace.tensor.value import TensorValue

_TRACKED = NUMBERS | TensorValue


@user_call("tt.loop")
def loop(start: object, stop: object = None, step: object = 1) -> ArrayLoop:
    """Loop in order, like Python's range: tt.loop(stop), tt.loop(start, stop), tt.loop(start, stop, step).

    The body is traced once, with the loop variable as a scalar. Bounds are whole numbers, extents, Scalars and elements of integer tensors;
    the step is a number >= 1.
    Raises: T209 for any other bound.
    """
    trace = current_trace("loop")
    first, last = (0, start) if stop is None else (start, stop)
    bounds = (trace.whole("`tt.loop`: the start", first), trace.whole("`tt.loop`: the stop", last), trace.whole("`tt.loop`: the step",
                                                                                                                step))
    if not isinstance(bounds[2], Const) or bounds[2].value < 1:
        raise TensorControlError("`tt.loop`: the step is not a number >= 1", here(), expected="a whole number >= 1",
                                 found=print_scalar(bounds[2]))
    return ArrayLoop(trace, (bounds,), True)


@user_call("tt.each")
def each(*extents: object) -> ArrayLoop:
    """Loop over positions without an order between iterations: `for h in tt.each(n)`, `for h, b in tt.each(n, m)`.

    Raises: T209 for a bound that is no whole number, T101 for no bound.
    """
    trace = current_trace("each")
    if not extents:
        raise TensorControlError("`tt.each` takes the number of positions", here(), expected="tt.each(n), or tt.each(n, m)", found="none")
    bounds = tuple((Const(0), trace.whole("`tt.each`: the number of positions", n), Const(1)) for n in extents)
    return ArrayLoop(trace, bounds, False)


class ArrayLoop:
    """The iterable of tt.loop and tt.each: a single pass over the body. `bounds`: of a loop for each variable, the outer first."""

    __slots__ = ("bounds", "ordered", "trace")

    def __init__(self, trace: TensorTrace, bounds: Sequence[tuple[s.Scalar, s.Scalar, s.Scalar]], ordered: bool) -> None:
        self.trace = trace
        self.bounds = bounds
        self.ordered = ordered

    def __iter__(self) -> Iterator[Any]:
        return _ArrayLoopIterator(self)

    def __len__(self) -> NoReturn:
        raise TensorControlError(f"`{self!r}` is a loop of the run, not a list", here(), expected=f"for i in {self!r}: ...")

    def __repr__(self) -> str:
        if self.ordered:
            return f"tt.loop({', '.join(print_scalar(bound) for bound in self.bounds[0])})"
        return f"tt.each({', '.join(print_scalar(stop) for _, stop, _ in self.bounds)})"


class _ArrayLoopIterator:
    """The iterator of one `for`: opens the loops, yields their variables, and closes the loops at the next call."""

    __slots__ = ("_before", "_loop", "_over", "_vars")

    def __init__(self, loop: ArrayLoop) -> None:
        self._loop = loop
        self._vars: list[s.Var] = []
        self._over = False
        self._before: Mapping[str, object] = {}

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        frame = user_frame()
        trace, count = self._loop.trace, len(self._loop.bounds)
        if not self._vars:
            self._before = held_by_names(frame, _TRACKED)
            if count > 1 and takes_apart_otherwise(frame, count):
                raise TensorControlError(f"`{self._loop!r}` has {count} variables", here(),
                                         expected=f"for {', '.join('ijklmn'[:count])} in …")
            names = loop_names(frame, count) or tuple("ijklmnop"[:count])
            for name, bounds in zip(names, self._loop.bounds, strict=True):
                self._vars.append(trace.blocks.open_loop(name, bounds, self._loop.ordered))
            made = tuple(map(Symbolic, self._vars))
            return made[0] if count == 1 else made
        if not self._over:
            self._over = True
            _check_carried(carried_variable(frame, frame.f_lasti, None, self._before), "loop", "in every iteration")
            for var in reversed(self._vars):
                trace.close_loop(var)
        raise StopIteration


@user_call("tt.when")
def when(condition: object) -> BranchSide:
    """Run a body where a condition on scalars holds: `with tt.when(n > 4): ...`, then perhaps `with tt.otherwise(): ...`.

    Both sides are traced. What a side makes is known in it alone: results leave it through state and InOut parameters.
    Raises: T210 for what is no condition on scalars.
    """
    trace = current_trace("when")
    if isinstance(condition, TensorValue) and condition.rank:
        raise ConditionError("`tt.when` takes a condition on scalars, not on the elements of a tensor", here(),
                             expected="a comparison of scalars, e.g. n > 4", found=repr(condition),
                             help="one element of whole numbers is a scalar: starts[b] > 0; element by element: np.where(mask, a, b)")
    if not isinstance(condition, Symbolic | TensorValue | bool):
        raise ConditionError("`tt.when` takes a condition on scalars", here(), expected="a comparison of scalars, e.g. n > 4",
                             found=f"{type(condition).__name__}: {condition!r:.60}")
    node = trace.scalar("`tt.when`", condition)
    check_is_condition("`tt.when`", node)
    return BranchSide(_BRANCHES, trace.blocks, node)


@user_call("tt.otherwise")
def otherwise() -> BranchSide:
    """Run a body where the condition of the `with tt.when(...)` directly before it does not hold."""
    return BranchSide(_BRANCHES, current_trace("otherwise").blocks, None)


@contextmanager
def group(name: str) -> Iterator[None]:
    """Name the operations that one kernel computes: `with tt.group("norm"): ...`. The group changes speed, not results.

    Raises: J105 for what is no name.
    """
    trace = current_trace("group")
    if not isinstance(name, str) or not name.isidentifier():
        raise TensorBodyError("`tt.group` takes the name of a kernel", here(), expected="an identifier", found=repr(name))
    trace.blocks.groups.append(name)
    try:
        yield
    finally:
        trace.blocks.groups.pop()


def _check_carried(carried: LoopCarried | None, kind: str, when: str) -> None:
    """Check for a variable that a body reads and then assigns.

    Raises: K109 if `carried` names one.
    """
    if carried is None:
        return
    name, held = carried.name, carried.before
    if isinstance(held, TensorValue):
        help = (f"write it in place: {name} += ..., or {name}[:] = ..., of state made before the {kind} by tt.zeros"
                if held.storage.writable else
                f"keep it in state, made before the {kind}: held = tt.zeros({name}.shape); held[:] = {name}; then held[:] = ... in it")
    else:
        help = f"count with the loop's variable, or keep a tensor of one element: {name} = tt.zeros((1,), DType.I32)"
    raise carried.refusal(kind, when, help)


_BRANCHES = BranchKind("tt", _TRACKED, _check_carried, TensorControlError)

"""Trace the loops and branches of a kernel: pto.range, pto.when, pto.otherwise.

Each body is traced once, whatever its bounds and conditions will be when the kernel runs.

>>> for j in pto.range(n):
...     with pto.when(j == n - 1):
...         pto.store(out, acc)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pto_wsp.calls import user_call
from pto_wsp.errors import ConditionError, LoopBoundError, NumberError, SymbolicControlError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.item_bounds import most
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.source import here, user_frame
from pto_wsp.trace.branch import BranchKind, BranchSide
from pto_wsp.trace.bytecode import NUMBERS, LoopCarried, carried_variable, held_by_names, loop_names
from pto_wsp.trace.kernel.stack import TileStack
from pto_wsp.trace.kernel.tile_value import BufferRef, TileParamRef, TileValue, is_tile
from pto_wsp.trace.kernel.trace import KernelTrace, current_kernel

_TRACKED_TYPES = NUMBERS | TileValue | BufferRef | TileParamRef | TileStack


@user_call("pto.range")
def range_(start: object, stop: object = None, step: object = 1) -> TileLoop:
    """Loop at run time, like Python's range: pto.range(stop), pto.range(start, stop), pto.range(start, stop, step).

    The body is traced once, with the loop variable as a scalar. Bounds are integers or integer scalars of the kernel; the step is an
    integer >= 1. A bound read from data by pto.item needs a limit, e.g. n.min(64).
    Raises: T209 for a bound that is no whole number, K114 for one from data without a limit.
    """
    trace = current_kernel("range")
    first, last = (0, start) if stop is None else (start, stop)
    bounds = (trace.whole("`pto.range`: the start", first), trace.whole("`pto.range`: the stop", last),
              trace.whole("`pto.range`: the step", step))
    if not isinstance(bounds[2], s.Const) or bounds[2].value < 1:
        raise NumberError("`pto.range`: the step is not a number >= 1", here(), expected="a whole number >= 1",
                          found=print_scalar(bounds[2]))
    if most(s.sub(bounds[1], bounds[0])) is None:
        raise LoopBoundError("`pto.range`: the number of iterations comes from data and has no limit", here(),
                             expected="bounds with a limit, which cycles are counted by",
                             found=f"{print_scalar(bounds[0])} .. {print_scalar(bounds[1])}",
                             help="say the most that it can be: n.min(64), n.min(table.shape[1]); and the least of a start: n.max(0)")
    return TileLoop(trace, bounds)


class TileLoop:
    """The iterable of pto.range: a single pass over the body."""

    __slots__ = ("bounds", "trace")

    def __init__(self, trace: KernelTrace, bounds: tuple[s.Scalar, s.Scalar, s.Scalar]) -> None:
        self.trace = trace
        self.bounds = bounds

    def __iter__(self) -> Iterator[Symbolic]:
        return _LoopIterator(self)

    def __repr__(self) -> str:
        return f"pto.range({', '.join(print_scalar(bound) for bound in self.bounds)})"


class _LoopIterator:
    """The iterator of one `for`: opens the loop, yields its variable, and closes the loop at the next call."""

    __slots__ = ("_before", "_loop", "_over", "_var")

    def __init__(self, loop: TileLoop) -> None:
        self._loop = loop
        self._var: s.Var | None = None
        self._over = False
        self._before: Mapping[str, object] = {}

    def __iter__(self) -> Iterator[Symbolic]:
        return self

    def __next__(self) -> Symbolic:
        frame = user_frame()
        if self._var is None:
            self._before = held_by_names(frame, _TRACKED_TYPES)
            names = loop_names(frame, 1)
            self._var = self._loop.trace.blocks.open_loop(names[0] if names else "i", self._loop.bounds, here())
            return Symbolic(self._var)
        if not self._over:
            self._over = True
            _check_carried(carried_variable(frame, frame.f_lasti, None, self._before), "loop", "in every iteration")
            self._loop.trace.blocks.close_loop(self._var)
        raise StopIteration


@user_call("pto.when")
def when(condition: object) -> BranchSide:
    """Run a body where a condition on scalars holds: `with pto.when(n > 4): ...`, then perhaps `with pto.otherwise(): ...`.

    The condition compares Scalar parameters, loop variables and extents, joined by &, | and ~. Both sides are traced; what a
    side makes is known in it alone, so results leave it through buffers and parameters.
    Raises: T210 for what is no condition known when the kernel runs.
    """
    trace = current_kernel("when")
    if is_tile(condition) or isinstance(condition, TileStack):
        raise ConditionError("`pto.when` takes a condition on scalars, not on the elements of a tile", here(),
                             expected="a comparison of scalars, e.g. n > 4", found=repr(condition),
                             help="one element as a scalar: pto.item(x, row, col) > 0; element by element: pto.where(mask, a, b)")
    if not isinstance(condition, Symbolic):
        raise ConditionError("`pto.when` takes a condition that is known only when the kernel runs", here(),
                             expected="a comparison of scalars, e.g. n > 4", found=f"{type(condition).__name__}: {condition!r:.60}",
                             help="what is known while the body is traced is decided by a plain `if`")
    node = trace.number("`pto.when`", condition)
    check_is_condition("`pto.when`", node)
    return BranchSide(_BRANCHES, trace.blocks, node)


def check_is_condition(call: str, node: s.Scalar) -> None:
    """Raise T210 for a scalar that is a number, not a condition."""
    if not s.scalar_dtype(node).is_bool:
        raise ConditionError(f"{call} takes a condition, not a number", here(), expected="a comparison of scalars",
                             found=print_scalar(node), help=f"compare it: {print_scalar(node)} != 0")


@user_call("pto.otherwise")
def otherwise() -> BranchSide:
    """Run a body where the condition of the `with pto.when(...)` directly before it does not hold."""
    return BranchSide(_BRANCHES, current_kernel("otherwise").blocks, None)


def _check_carried(carried: LoopCarried | None, kind: str, when: str) -> None:
    """Check for a variable that a body reads and then assigns.

    Raises: K109 if `carried` names one.
    """
    if carried is None:
        return
    name = carried.name
    held = carried.before
    if isinstance(held, BufferRef) or (held.is_state if isinstance(held, TileStack) else isinstance(held, TileParamRef)
                                       and held.param.role.writes):
        help = f"write it in place: {name} += ..., or {name}[:] = ..."
    elif is_tile(carried.before) or isinstance(carried.before, TileStack):
        extents = ", ".join(map(str, carried.before.shape))
        help = (f"keep it in a buffer, made before the {kind}: held = pto.alloc(({extents}), {carried.before.dtype!r}); "
                f"held[:] = {name}; then held[:] = ... in it")
    else:
        help = (f"count with the loop's variable, or keep a [1, 1] buffer; a variable of the {kind}'s own takes another name")
    raise carried.refusal(kind, when, help)


_BRANCHES = BranchKind("pto", _TRACKED_TYPES, _check_carried, SymbolicControlError)

"""How near to golden.py a package's outputs must be: from the ops that make them, their dtypes, and how many numbers they add up."""

from __future__ import annotations

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import operand_types, walk
from pto_wsp.ops.entry import Identity
from pto_wsp.ops.spec import ColReduce, Elementwise, Expand, Iota, Matmul, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.plan.model import TaskPlan
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

# A device's + - * of floats are NumPy's but for the last digit, which it may round at another place.
_EXACT = 1e-6
# Quotients, roots, exponentials and what is made of them: some units in the last place of f32, with room for one feeding the next.
_FUNCTION = 1e-5
# Each number that is added up: the sum's error grows with how many there are; 256 of a matrix product give 1e-4.
_TERM = 4e-7
# Two units in the last place of a result that was rounded to it: by the device, and by golden.py.
_ROUNDED = {DType.F16: 2e-3, DType.BF16: 1.6e-2, DType.FP8E4M3: 0.25, DType.FP8E5M2: 0.5}
_SMALLEST_HALF = 6e-8   # the step between the smallest numbers of f16
_SOME_TURNS = 16   # of a loop whose length is known at run time


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|found - expected| <= atol + rtol * |expected|. Where results are only scaled, atol lets small rows count too.

    `grows`: results may be what is left of larger terms: golden.py multiplies atol by how large they get.
    """

    rtol: float
    atol: float
    grows: bool = False


def tolerance_of(plan: TaskPlan) -> Tolerance:
    """Return what the plan's kernels need; where kernels feed each other, their errors add up, of four at most."""
    needs = sorted((_body(use.kernel.body, 1) for use in plan.kernels), reverse=True)
    need = float(f"{sum(needs[:4]):.1e}")
    stmts = [stmt for use in plan.kernels for stmt in walk(use.kernel.body)]
    if not need or not all(map(_scales, stmts)):
        return Tolerance(need, need, grows=bool(need))
    least = _SMALLEST_HALF if any(isinstance(stmt, k.Compute) and stmt.result.type.dtype is DType.F16 for stmt in stmts) else 0.0
    return Tolerance(need, float(f"{max(need * 1e-6, least):.1e}"))


def _scales(stmt: k.Stmt) -> bool:
    """Tell whether results are as exact, in digits, as operands, however small these are: nothing cancels."""
    if not isinstance(stmt, k.Compute) or not stmt.result.type.dtype.is_real:
        return not isinstance(stmt, k.Scatter) or not stmt.add
    entry = find(stmt.op)
    return stmt.result.type.dtype in entry.scales or isinstance(entry, Movement | Expand | Iota)


def _body(body: tuple[k.Stmt, ...], turns: int) -> float:
    """Return the most that a statement needs, 0 where numbers are only moved or counted. `turns`: of the loops around."""
    found = 0.0
    for stmt in body:
        match stmt:
            case k.Compute():
                found = max(found, _compute(stmt, turns))
            case k.For(start=start, stop=stop, step=step):
                found = max(found, _body(stmt.body, turns * _turns(start, stop, step)))
            case k.If():
                found = max(found, _body(stmt.then, turns), _body(stmt.other, turns))
            case _:
                pass
    return found


def _turns(start: s.Scalar, stop: s.Scalar, step: s.Scalar) -> int:
    match start, stop, step:
        case s.Const(low), s.Const(high), s.Const(by):
            return max(1, len(range(int(low), int(high), int(by))))
        case _:
            return _SOME_TURNS


def _compute(stmt: k.Compute, turns: int) -> float:
    entry, dtype = find(stmt.op), stmt.result.type.dtype
    if isinstance(entry, Movement | TileFunction | Expand | Iota) or not dtype.is_real:
        return 0.0
    least = _ROUNDED.get(dtype, 0.0)
    match entry:
        case Matmul():
            return max(least, _FUNCTION, _TERM * turns * operand_types(stmt)[0].cols)
        case RowReduce() | ColReduce() if entry.identity not in (Identity.LOWEST, Identity.HIGHEST):
            source = operand_types(stmt)[0]
            return max(least, _FUNCTION, _TERM * turns * (source.cols if isinstance(entry, RowReduce) else source.rows))
        case Elementwise() if not entry.c.simple:
            return max(least, _FUNCTION)
        case _:
            return max(least, _EXACT)

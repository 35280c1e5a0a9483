"""Print what works on whole tiles through C functions: the block copies of movements, and ops that are one call.

>>> moved(env, place, stmt, find("transpose"))
"""

from __future__ import annotations

from typing import assert_never

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.dtypes import memory_type, stored
from pto_wsp.codegen.kernel.env import Env, Place
from pto_wsp.errors import unreachable
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import operand_types
from pto_wsp.ops.whole import CArgument, Copy, Movement, Pointer, RowStep, Slot, TileFunction


def moved(env: Env, result: Place, stmt: k.Compute, entry: Movement) -> list[c.Stmt]:
    """Return the block copies that make a movement's result."""
    env.headers.add("pto_move.h")
    out: list[c.Stmt] = []
    numbers: dict[int, c.Expr] = {}
    for copy in entry.copies(operand_types(stmt), result.type, stmt.attrs):
        operand = stmt.operands[copy.operand]
        if isinstance(operand, k.Value):
            out.append(_copy(env, result, operand, copy))
            continue
        if copy.operand not in numbers:
            declared = env.name(f"{stmt.op}_value")
            value = stored(env.scalar_as(operand.value, operand.dtype), operand.dtype)
            out.append(c.Declare(f"const {memory_type(operand.dtype)}", declared, value))
            numbers[copy.operand] = c.Prefix("&", c.Name(declared))
        out.append(c.Evaluate(c.Call(f"pto_fill_{8 * operand.dtype.nbytes}", (
            _target(result, copy), c.Int(copy.steps[0]), c.Int(copy.rows), c.Int(copy.cols), numbers[copy.operand]))))
    return out


def called(env: Env, result: Place, stmt: k.Compute, entry: TileFunction) -> list[c.Stmt]:
    """Return the call that makes a result, which ends the task where the function finds a fault."""
    call = entry.call(operand_types(stmt), result.type, stmt.attrs)
    env.headers.add(call.header)
    out: list[c.Stmt] = []
    if call.copied is not None:
        env.headers.add("pto_move.h")
        rows, cols = result.type.shape
        out.append(_copy(env, result, stmt.operands[call.copied], Copy(call.copied, rows, cols, (0, 0), (1, 0), (0, 1), 0, (cols, 1))))
    made = c.Call(call.function, tuple(_argument(env, result, stmt, argument) for argument in call.arguments))
    if stmt.guard is None:
        return [*out, c.Evaluate(made)]
    return [*out, c.If(made, (c.Return(c.Int(1 + stmt.guard)),))]


def _argument(env: Env, result: Place, stmt: k.Compute, argument: CArgument) -> c.Expr:
    match argument:
        case Slot.RESULT:
            return c.Name(result.pointer)
        case Slot.WORK:
            return env.work(stmt)
        case Slot.FAULT:
            return c.Prefix("&", c.Member(c.Name("context"), "fault", arrow=True))
        case Pointer(operand):
            return c.Name(place_of(env, stmt.operands[operand]).pointer)
        case RowStep(operand):
            return place_of(env, stmt.operands[operand]).step
        case int():
            return c.Int(argument)
        case _:
            assert_never(argument)


def place_of(env: Env, operand: k.Operand) -> Place:
    """Return where an operand lies, which is no number."""
    if isinstance(operand, k.ScalarOperand):
        unreachable("number where an operation needs a tile")
    return env.values[operand.id]


def _copy(env: Env, result: Place, operand: k.Operand, copy: Copy) -> c.Stmt:
    place = place_of(env, operand)
    source = _plus(c.Name(place.pointer), _elements(place, copy.source))
    return c.Evaluate(c.Call(f"pto_move_{8 * place.type.dtype.nbytes}", (
        _target(result, copy), c.Int(copy.steps[0]), c.Int(copy.steps[1]), source, _elements(place, copy.down),
        _elements(place, copy.across), c.Int(copy.rows), c.Int(copy.cols))))


def _target(result: Place, copy: Copy) -> c.Expr:
    return _plus(c.Name(result.pointer), c.Int(copy.target))


def _elements(place: Place, steps: tuple[int, int]) -> c.Expr:
    """Return how many elements lie between a place's first element and the one so many rows and columns on."""
    rows, cols = steps
    if rows == 0 or place.type.rows == 1:
        return c.Int(cols)
    if isinstance(place.step, c.Int):
        return c.Int(rows * place.step.value + cols)
    down = place.step if rows == 1 else c.Infix("*", c.Int(rows), place.step)
    return _plus(down, c.Int(cols))


def _plus(lhs: c.Expr, rhs: c.Expr) -> c.Expr:
    return lhs if rhs == c.Int(0) else c.Infix("+", lhs, rhs)

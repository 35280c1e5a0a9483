"""Lower the statements of a kernel that are calls of the C library: products, movements, indexed rows, and checks.

>>> moved(env, place, stmt, find("transpose"))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from pto_wsp.c import syntax as c
from pto_wsp.c.kernel_env import CTile, Env
from pto_wsp.c.scalars import as_it_is, memory_literal, memory_type, store_element
from pto_wsp.errors import unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel import Attr
from pto_wsp.ir.kernel_walk import operand_types, valid_of, valid_rows_of
from pto_wsp.ops.whole import CallSlot, CArgument, Copy, Movement, Pointer, RowStep, TileFunction
from pto_wsp.passes.kernel.products import ROWS_OF, SHORT_ROWS, TRANSPOSED, Packing


def emit_finite_check(env: Env, stmt: k.FiniteCheck, place_of: Callable[[k.Value], CTile]) -> list[c.Stmt]:
    """Return the statements of a `check_finite`: the task ends if an element is not finite and no source explains it."""
    env.headers.add("pto_check.h")
    out: list[c.Stmt] = []
    sources: list[c.Expr] = []
    for source in stmt.sources:
        if isinstance(source.operand, k.Value):
            sources.append(_of_tile(place_of(source.operand), source.reach))
        else:
            name = env.name("given")
            out.append(c.Declare("const double", name, c.Cast("double", as_it_is(source.operand.value, env.scalar(source.operand.value)))))
            sources.append(_source(c.Prefix("&", c.Name(name)), "NUMBER", (c.Int(0), c.Int(0)), (c.Int(1), c.Int(0), c.Int(1), c.Int(0))))
    place = place_of(stmt.value)
    call = c.Call("pto_check_finite", (
        c.Name("context"), c.Name(place.pointer), c.Name(f"PTO_FLOAT_{place.type.dtype.name}"), place.step,
        *map(env.scalar, valid_of(stmt)), c.Int(len(sources)), c.Braces(tuple(sources), "pto_source[]") if sources else c.Int(0)))
    return [*out, c.If(call, (c.Return(c.Int(1 + stmt.number)),))]


def _of_tile(place: CTile, reach: k.Reach) -> c.Expr:
    zero, one = c.Int(0), c.Int(1)
    rows, cols = place.type.shape
    by_row = place.step if rows > 1 else zero
    by_col = one if cols > 1 else zero
    data, kind = c.Name(place.pointer), place.type.dtype.name
    match reach:
        case k.Reach.ELEMENT:
            return _source(data, kind, (by_row, by_col), (one, zero, one, zero))
        case k.Reach.ROW:
            return _source(data, kind, (by_row, zero), (c.Int(cols), one, one, zero))
        case k.Reach.COLUMN:
            return _source(data, kind, (zero, by_col), (c.Int(rows), place.step, one, zero))
        case k.Reach.TURNED_ROW:
            return _source(data, kind, (by_col, zero), (c.Int(rows), place.step, one, zero))
        case k.Reach.TURNED_COLUMN:
            return _source(data, kind, (zero, by_row), (c.Int(cols), one, one, zero))
        case k.Reach.ALL:
            return _source(data, kind, (zero, zero), (c.Int(rows), place.step, c.Int(cols), one))
        case _:
            assert_never(reach)


def _source(data: c.Expr, kind: str, by: tuple[c.Expr, c.Expr], reach: tuple[c.Expr, c.Expr, c.Expr, c.Expr]) -> c.Expr:
    return c.Braces((data, c.Name(f"PTO_FLOAT_{kind}"), *by, *reach))


# -- rows named by an index ------------------------------------------------------------------------


_FAULT = c.Prefix("&", c.Member(c.Name("context"), "fault", arrow=True))


def emit_gather(env: Env, stmt: k.Gather, place: CTile) -> list[c.Stmt]:
    """Return the statements that copy the rows named by an index, and fill the rows after the valid ones."""
    tile = stmt.result.type
    env.values[stmt.result.id] = place
    out, count, source = _begin(env, stmt, tile.cols)
    index = env.values[stmt.index.id]
    out.append(_guarded(stmt, c.Call(f"pto_gather_{8 * tile.dtype.nbytes}_{stmt.index.type.dtype}", (
        c.Name(place.pointer), count, c.Int(tile.cols), source, c.Int(0), env.stride(stmt.param, 1), env.stride(stmt.param, 0),
        c.Name(index.pointer), _row_step(index), c.Int(0), env.extent(stmt.param, 0), _FAULT))))
    if count != c.Int(tile.rows):
        env.headers.add("pto_move.h")
        name = env.name(f"{stmt.param}_fill")
        fill_start = c.Infix("+", c.Name(place.pointer), c.Infix("*", count, c.Int(tile.cols)))
        out += [c.Declare(f"const {memory_type(tile.dtype)}", name, memory_literal(stmt.fill, tile.dtype)),
                c.Evaluate(c.Call(f"pto_fill_{8 * tile.dtype.nbytes}", (
                    fill_start, c.Int(tile.cols), c.Infix("-", c.Int(tile.rows), count), c.Int(tile.cols), c.Prefix("&", c.Name(name)))))]
    return out


def emit_scatter(env: Env, stmt: k.Scatter) -> list[c.Stmt]:
    """Return the statements that write or add rows at the places named by an index."""
    tile = stmt.value.type
    out, count, target = _begin(env, stmt, tile.cols)
    index, value = env.values[stmt.index.id], env.values[stmt.value.id]
    kind = f"scatter_add_{tile.dtype}" if stmt.add else f"scatter_{8 * tile.dtype.nbytes}"
    out.append(_guarded(stmt, c.Call(f"pto_{kind}_{stmt.index.type.dtype}", (
        target, c.Int(0), env.stride(stmt.param, 1), env.stride(stmt.param, 0), count, c.Int(tile.cols), c.Name(index.pointer),
        _row_step(index), c.Int(0), c.Name(value.pointer), _row_step(value), c.Int(1), env.extent(stmt.param, 0), _FAULT))))
    return out


def _begin(env: Env, stmt: k.Gather | k.Scatter, cols: int) -> tuple[list[c.Stmt], c.Expr, c.Expr]:
    """Return the statements before, the number of valid rows, and the region's element at row 0 and the first column."""
    env.headers.add("pto_index.h")
    out: list[c.Stmt] = []
    col, count = env.scalar(stmt.col), env.scalar(valid_rows_of(stmt))
    if not isinstance(col, c.Int):
        name = env.name(f"{stmt.param}_col")
        out.append(c.Declare("const int64_t", name, col))
        col = c.Name(name)
    if not isinstance(count, c.Int):
        name = env.name(f"{stmt.param}_rows")
        out.append(c.Declare("const int64_t", name, count))
        count = c.Name(name)
    columns: c.Expr = c.Call("pto_columns_outside", (col, c.Int(cols), env.extent(stmt.param, 1), _FAULT))
    if count != c.Int(0):
        out.append(_guarded(stmt, columns if isinstance(count, c.Int) else c.Infix("&&", c.Infix(">", count, c.Int(0)), columns)))
    dtype = stmt.result.type.dtype if isinstance(stmt, k.Gather) else stmt.value.type.dtype
    first: c.Expr = c.Cast(f"{memory_type(dtype)} *", c.Member(env.argument(stmt.param), "data"))
    if stmt.col != s.Const(0):
        stride = env.stride(stmt.param, 1)
        first = c.Infix("+", first, col if stride == c.Int(1) else c.Infix("*", col, stride))
    return out, count, first


def _guarded(stmt: k.Gather | k.Scatter, fails: c.Expr) -> c.Stmt:
    number = unreachable("rows without a guard's number") if stmt.guard is None else stmt.guard
    return c.If(fails, (c.Return(c.Int(1 + number)),))


def _row_step(place: CTile) -> c.Expr:
    return c.Int(0) if place.type.rows == 1 else place.step


# -- matrix products -------------------------------------------------------------------------------


def multiply(env: Env, pack: c.Expr, to: CTile, lhs: CTile, rhs: CTile, attrs: tuple[tuple[str, Attr], ...], *, accumulate: bool) -> c.Stmt:
    """Return `to = lhs @ rhs`, or `to += lhs @ rhs`, by the attributes of the product. `pack`: scratch for packed operands."""
    chosen = dict(attrs)
    dtype, form = lhs.type.dtype, Packing(chosen["form"])
    inner = lhs.type.rows if "transpose_a" in chosen else lhs.type.cols
    m, n = to.type.shape
    flags = ["PTO_MATMUL_ACCUMULATE"] if accumulate else []
    flags += [f"PTO_MATMUL_{name.upper()}" for name in TRANSPOSED if name in chosen]
    if form is Packing.FEW_ROWS:
        flags.append("PTO_MATMUL_FEW_ROWS")
        env.few_rows = True
    elif form is Packing.FEW_COLUMNS:
        flags.append("PTO_MATMUL_TURN")
    env.matmuls.add(dtype)
    shown: c.Expr = c.Name(flags[0]) if flags else c.Int(0)
    for flag in flags[1:]:
        shown = c.Infix("|", shown, c.Name(flag))
    function = f"pto_matmul_{dtype}"
    height: c.Expr = env.extent(str(chosen[ROWS_OF]), 0) if ROWS_OF in chosen else c.Int(m)
    sizes: tuple[c.Expr, ...] = (height, c.Int(n), c.Int(inner))
    rows: c.Expr = height if lhs.rows is None or SHORT_ROWS not in chosen else lhs.rows
    if rows != height:
        env.short_rows = True
        function, sizes = f"pto_matmul_short_{dtype}", (rows, *sizes)
    return c.Evaluate(c.Call(function, (
        c.Name(to.pointer), to.step, c.Name(lhs.pointer), lhs.step, c.Name(rhs.pointer), rhs.step, *sizes, shown, pack)))


# -- movements and functions of whole tiles --------------------------------------------------------


def emit_movement(env: Env, result: CTile, stmt: k.Compute, entry: Movement) -> list[c.Stmt]:
    """Return the block copies of a movement."""
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
            value = store_element(env.scalar_as(operand.value, operand.dtype), operand.dtype)
            out.append(c.Declare(f"const {memory_type(operand.dtype)}", declared, value))
            numbers[copy.operand] = c.Prefix("&", c.Name(declared))
        out.append(c.Evaluate(c.Call(f"pto_fill_{8 * operand.dtype.nbytes}", (
            _target(result, copy), c.Int(copy.steps[0]), c.Int(copy.rows), c.Int(copy.cols), numbers[copy.operand]))))
    return out


def emit_call(env: Env, result: CTile, stmt: k.Compute, entry: TileFunction) -> list[c.Stmt]:
    """Return the call that computes a result; a fault that the function reports ends the task."""
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


def _argument(env: Env, result: CTile, stmt: k.Compute, argument: CArgument) -> c.Expr:
    match argument:
        case CallSlot.RESULT:
            return c.Name(result.pointer)
        case CallSlot.WORK:
            return env.work(stmt)
        case CallSlot.FAULT:
            return c.Prefix("&", c.Member(c.Name("context"), "fault", arrow=True))
        case Pointer(operand):
            return c.Name(place_of(env, stmt.operands[operand]).pointer)
        case RowStep(operand):
            return place_of(env, stmt.operands[operand]).step
        case int():
            return c.Int(argument)
        case _:
            assert_never(argument)


def place_of(env: Env, operand: k.Operand) -> CTile:
    """Return the memory of a tile operand."""
    if isinstance(operand, k.ScalarOperand):
        unreachable("number where an operation needs a tile")
    return env.values[operand.id]


def _copy(env: Env, result: CTile, operand: k.Operand, copy: Copy) -> c.Stmt:
    place = place_of(env, operand)
    source = _plus(c.Name(place.pointer), _elements(place, copy.source))
    return c.Evaluate(c.Call(f"pto_move_{8 * place.type.dtype.nbytes}", (
        _target(result, copy), c.Int(copy.steps[0]), c.Int(copy.steps[1]), source, _elements(place, copy.down),
        _elements(place, copy.across), c.Int(copy.rows), c.Int(copy.cols))))


def _target(result: CTile, copy: Copy) -> c.Expr:
    return _plus(c.Name(result.pointer), c.Int(copy.target))


def _elements(place: CTile, steps: tuple[int, int]) -> c.Expr:
    """Return the distance in elements from a place's first element to the element `steps` rows and columns further."""
    rows, cols = steps
    if rows == 0 or place.type.rows == 1:
        return c.Int(cols)
    if isinstance(place.step, c.Int):
        return c.Int(rows * place.step.value + cols)
    down = place.step if rows == 1 else c.Infix("*", c.Int(rows), place.step)
    return _plus(down, c.Int(cols))


def _plus(lhs: c.Expr, rhs: c.Expr) -> c.Expr:
    return lhs if rhs == c.Int(0) else c.Infix("+", lhs, rhs)

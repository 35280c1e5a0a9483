"""Lower a kernel to C: one function that computes one task on its tiles.

>>> emit_kernel(kernel, "rmsnorm_tile", {"x": True, "out": True}).text
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from pto_wsp.c import syntax as c
from pto_wsp.c.kernel_calls import emit_call, emit_finite_check, emit_gather, emit_movement, emit_scatter, multiply
from pto_wsp.c.kernel_env import COL, CTile, Env
from pto_wsp.c.kernel_rows import RowRegion
from pto_wsp.c.printer import print_block
from pto_wsp.c.scalars import load_element, memory_literal, memory_type
from pto_wsp.errors import unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import piece_of, valid_of, walk
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.passes.kernel.context import use_counts
from pto_wsp.passes.kernel.products import is_product, short_rows
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class KernelC:
    """A kernel in C. `text` needs `prelude` before it.

    `matmuls`: the dtypes of its matrix products; `headers`: further headers it needs. `few_rows`, `short_rows`: whether it has products of
    few rows, or of operands with some rows missing.
    """

    symbol: str
    text: str
    scratch_bytes: int
    n_guards: int
    matmuls: tuple[DType, ...]
    headers: tuple[str, ...]
    few_rows: bool
    short_rows: bool = False


def emit_kernel(kernel: k.Kernel, symbol: str, unit_inner: Mapping[str, bool]) -> KernelC:
    """Return C for a kernel after its passes. `unit_inner`: whether the columns of a memory parameter are always contiguous.

    The function has the type pto_kernel_fn; arguments follow `kernel.memory_params` and `kernel.scalar_params`.
    """
    emission = _Emission(kernel, unit_inner)
    body = emission.body(kernel.body)
    if "pto_stream.h" in emission.env.headers:
        body.append(c.Evaluate(c.Call("pto_stream_end", ())))
    env = emission.env
    lines = [c.Comment(f"{kernel.name}, {kernel.span.short}")] if kernel.span.line else [c.Comment(kernel.name)]
    inside = print_block([*_early_out(kernel, env), *env.pointers, *body, c.Return(c.Int(0))])
    unused = print_block([c.Evaluate(c.Cast("void", c.Name(name))) for name in ("args", "scalars", "scratch", "context")
                          if not re.search(rf"\b{name}\b", inside)])
    unused += "\n" * bool(unused)
    head = print_block(lines, 0)
    text = (f"{head}\nint32_t {c.c_ident(symbol)}(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)\n{{\n"
            f"{unused}{inside}\n}}\n")
    return KernelC(c.c_ident(symbol), text, env.scratch_bytes, emission.n_guards,
                   tuple(dtype for dtype in DType if dtype in env.matmuls), tuple(sorted(env.headers)), env.few_rows,
                   env.short_rows)


def _early_out(kernel: k.Kernel, env: Env) -> list[c.Stmt]:
    """Return a statement that returns at once if all outputs are empty; none for a kernel with effects other than stores."""
    written: dict[str, None] = {}
    for stmt in walk(kernel.body):
        match stmt:
            case k.Print() | k.FiniteCheck():
                return []
            case k.Load() | k.Store() | k.Compute() | k.Gather() | k.Scatter() | k.Item() | k.WritePart() if stmt.guard is not None:
                return []
            case k.Store(param):
                written[param] = None
            case _:
                pass
    if not written:
        return []
    empty = [c.Infix("||", *(c.Infix("==", env.extent(param, dim), c.Int(0)) for dim in (0, 1))) for param in written]
    condition: c.Expr = empty[0]
    for other in empty[1:]:
        condition = c.Infix("&&", condition, other)
    return [c.If(condition, (c.Return(c.Int(0)),))]


def prelude(kernels: Iterable[KernelC]) -> str:
    """Return the includes that the text of these kernels needs."""
    kernels = tuple(kernels)
    used = {dtype for kernel in kernels for dtype in kernel.matmuls}
    headers = sorted({header for kernel in kernels for header in kernel.headers})
    lines = ['#include "pto_wsp.h"', '#include "pto_math.h"', '#include "pto_tile.h"', *(f'#include "{header}"' for header in headers)]
    if used:
        lines += [f"#define PTO_USES_MATMUL_{dtype.name}" for dtype in DType if dtype in used]
        lines += ["#define PTO_USES_FEW_ROWS"] if any(kernel.few_rows for kernel in kernels) else []
        lines += ["#define PTO_USES_SHORT_ROWS"] if any(kernel.short_rows for kernel in kernels) else []
        lines.append('#include "pto_matmul.h"')
    return "\n".join(lines) + "\n"


class _Emission:
    """Emits one kernel, body by body."""

    def __init__(self, kernel: k.Kernel, unit_inner: Mapping[str, bool]) -> None:
        self.kernel = kernel
        self.env = Env(kernel, dict(unit_inner))
        self.n_guards = 1 + max((s.guard for s in walk(kernel.body) if isinstance(s, k.Guarded) and s.guard is not None),
                                default=-1)
        self.only_written = {p.name for p in kernel.params if isinstance(p, k.TileParam) and not p.role.reads}
        self.tensors = {p.name for p in kernel.params if isinstance(p, k.TensorParam)}
        self.uses = use_counts(kernel.body)
        self.short = short_rows(kernel)
        self.n_loops = 0      # around the current statement

    def body(self, stmts: Sequence[k.Stmt]) -> list[c.Stmt]:
        """Return C for a body."""
        out: list[c.Stmt] = []
        for stmt in stmts:
            self._declare_buffer(stmt)
        at = 0
        while at < len(stmts):
            stored = self._stored(stmts[at:at + 2])
            out += self._statement(stmts[at]) if stored is None else self._product_to(*stored)
            at += 1 if stored is None else 2
        return out

    def _stored(self, stmts: Sequence[k.Stmt]) -> tuple[k.Compute, k.Store] | None:
        """Return a product and the store of all of its rows to a tile that the kernel does not read, if these are the two statements."""
        match stmts:
            case (k.Compute(result, _, (_, _)) as product, k.Rows(of=None) as rows) if is_product(product) and self.uses[result.id] == 1:
                match [stmt for stmt in walk(rows.body) if not isinstance(stmt, k.Columns)]:
                    case [k.Store(param, k.Value(id=stored)) as store] if stored == result.id and param in self.only_written:
                        return product, store
        return None

    def _product_to(self, product: k.Compute, store: k.Store) -> list[c.Stmt]:
        """Return a product whose sums are the stored elements; they are copied only where the output is short or has strided columns."""
        before, place, after = self._target(store, self._kept(k.SlotKind.VALUE, product.result.id), all_rows=True)
        return [*before, *self._product(product, place), *after]

    def _declare_buffer(self, stmt: k.Stmt) -> None:
        if isinstance(stmt, k.Alloc):
            self.env.buffers[stmt.buffer.id] = self._kept(k.SlotKind.BUFFER, stmt.buffer.id)

    def _kept(self, kind: k.SlotKind, key: int) -> CTile:
        return self.env.slot(kind, key) or unreachable(f"{kind.value} {key} without a place in scratch")

    def _rows(self, stmt: k.Rows) -> list[c.Stmt]:
        out: list[c.Stmt] = []
        targets: dict[int, CTile] = {}
        after: list[c.Stmt] = []
        for inner in walk(stmt.body):
            if isinstance(inner, k.Store):
                before, targets[id(inner)], late = self._target(inner, self.env.slot(k.SlotKind.STORE, self.env.number[id(inner)]),
                                                                  all_rows=stmt.of is None)
                out += before
                after += late
            elif isinstance(inner, k.Write):
                targets[id(inner)] = self.env.buffers[inner.buffer.id]
        return out + RowRegion(self.env, stmt, targets).emit() + after

    # -- loads and stores

    def _alloc(self, stmt: k.Alloc) -> list[c.Stmt]:
        if stmt.init is None:
            return []
        place, tile = self.env.buffers[stmt.buffer.id], stmt.buffer.type
        fill = c.Assign(c.Index(c.Name(place.pointer), c.Name(COL)), memory_literal(stmt.init, tile.dtype))
        return [c.For("int64_t", COL, c.Int(0), c.Int(tile.n_elements), c.Int(1), (fill,))]

    def _load(self, stmt: k.Load) -> list[c.Stmt]:
        env, tile = self.env, stmt.result.type
        kind = memory_type(tile.dtype)
        out, source, valid, (short, narrow) = self._piece(stmt)
        partial = narrow if stmt.result.id in self.short else _or(short, narrow)
        if not self.uses[stmt.result.id]:
            return out if stmt.param in self.tensors else []   # without users, only the guard of the load remains
        steps = (env.stride(stmt.param, 0), env.stride(stmt.param, 1))
        if stmt.transpose:
            steps, valid = steps[::-1], valid[::-1]
        staged = env.slot(k.SlotKind.VALUE, stmt.result.id)
        if staged is None:
            return out + self._in_place(stmt, source, steps[0])

        def stage(source: c.Expr, down: c.Expr) -> c.Stmt:
            return c.Evaluate(c.Call(f"pto_stage_{tile.dtype}", (
                c.Name(staged.pointer), c.Int(tile.rows), c.Int(tile.cols), source, down, steps[1], *valid,
                memory_literal(stmt.fill, tile.dtype))))

        copy = stmt.copy or stmt.transpose or not self._has_unit_columns(stmt.param, tile)
        if copy or partial == c.Int(1):
            env.values[stmt.result.id] = staged
            return [*out, stage(source, steps[0])]
        wanted = stmt.result.name or stmt.param
        pointer, step = env.name(wanted), env.name(f"{wanted}_step")
        env.values[stmt.result.id] = CTile(pointer, c.Name(step), tile, valid[0] if stmt.result.id in self.short else None)
        out.append(c.Declare(f"{kind} *", pointer, source))
        instead: list[c.Stmt] = [stage(c.Name(pointer), c.Name(step) if tile.rows > 1 else steps[0]),
                                 c.Assign(c.Name(pointer), c.Name(staged.pointer))]
        if tile.rows > 1:
            out.append(c.Declare("int64_t", step, steps[0]))
            instead.append(c.Assign(c.Name(step), c.Int(tile.cols)))
        else:
            env.values[stmt.result.id] = CTile(pointer, c.Int(tile.cols), tile)
        return [*out, c.If(_or(partial, self._staging(stmt.param)), tuple(instead))]

    def _in_place(self, stmt: k.Load, source: c.Expr, down: c.Expr) -> list[c.Stmt]:
        """Return the declaration of a piece that is never copied."""
        tile, wanted = stmt.result.type, stmt.result.name or stmt.param
        pointer = self.env.name(wanted)
        out: list[c.Stmt] = [c.Declare(f"{memory_type(tile.dtype)} *const", pointer, source)]
        step: c.Expr = c.Int(tile.cols)
        if tile.rows > 1:
            step = c.Name(self.env.name(f"{wanted}_step"))
            out.append(c.Declare("const int64_t", step.text, down))
        self.env.values[stmt.result.id] = CTile(pointer, step, tile)
        return out

    def _target(self, stmt: k.Store, staged: CTile | None, *, all_rows: bool) -> tuple[list[c.Stmt], CTile, list[c.Stmt]]:
        """Return the statements before the rows, the memory that the rows go to, and the statements after the rows.

        `staged`: the memory that they go to if they have to be copied. Not `all_rows`: the row loop itself covers only the rows that are
        stored.
        """
        env, tile = self.env, stmt.value.type
        out, target, valid, (short, narrow) = self._piece(stmt)
        partial = _or(short, narrow) if all_rows else narrow
        steps = (env.stride(stmt.param, 0), env.stride(stmt.param, 1))
        at = env.name(f"{stmt.param}_at")
        kind = memory_type(tile.dtype)
        if staged is None:   # never copied
            out.append(c.Declare(f"{kind} *const", at, target))
            return out, CTile(at, steps[0] if tile.rows > 1 else c.Int(tile.cols), tile), []
        unstage = c.Evaluate(c.Call(f"pto_unstage_{tile.dtype}", (
            c.Name(at), *steps, c.Name(staged.pointer), c.Int(tile.rows), c.Int(tile.cols), *valid)))
        out.append(c.Declare(f"{kind} *const", at, target))
        if not self._has_unit_columns(stmt.param, tile) or partial == c.Int(1):
            return out, staged, [unstage]
        pointer, step, copied = env.name(stmt.param), env.name(f"{stmt.param}_step"), env.name(f"{stmt.param}_staged")
        out += [c.Declare("const int", copied, _or(partial, self._staging(stmt.param))),
                c.Declare(f"{kind} *const", pointer, c.Ternary(c.Name(copied), c.Name(staged.pointer), c.Name(at)))]
        if tile.rows > 1:
            out.append(c.Declare("const int64_t", step, c.Ternary(c.Name(copied), c.Int(tile.cols), steps[0])))
        place = CTile(pointer, c.Name(step) if tile.rows > 1 else c.Int(tile.cols), tile)
        return out, place, [c.If(c.Name(copied), (unstage,))]

    def _has_unit_columns(self, param: str, tile: TileType) -> bool:
        return tile.cols == 1 or self.env.unit_inner.get(param, False)

    def _staging(self, param: str) -> c.Expr:
        return c.Infix("&", c.Member(self.env.argument(param), "flags"), c.Name("PTO_STAGE"))

    def _piece(self, stmt: k.Load | k.Store) -> tuple[list[c.Stmt], c.Expr, tuple[c.Expr, c.Expr], tuple[c.Expr, c.Expr]]:
        """Return (statements before, first element, valid rows and columns, whether rows and columns are partly valid) of a piece."""
        env = self.env
        rows, cols = piece_of(stmt)
        dtype = stmt.result.type.dtype if isinstance(stmt, k.Load) else stmt.value.type.dtype
        out: list[c.Stmt] = []
        partial: list[c.Expr] = []
        valid: list[c.Expr] = []
        offsets: list[c.Expr] = []
        for dim, (node, given, extent) in enumerate(zip((stmt.row, stmt.col), valid_of(stmt), (rows, cols), strict=True)):
            at = env.scalar(node)
            if node != s.Const(0):
                name = env.name(f"{stmt.param}_{'row' if dim == 0 else 'col'}")
                out.append(c.Declare("const int64_t", name, at))
                at = c.Name(name)
            offsets.append(at)
            count = env.scalar(given)
            if stmt.param not in self.tensors:
                bound = env.extent(stmt.param, dim) if node == s.Const(0) else c.Infix("-", env.extent(stmt.param, dim), at)
                count = bound if given == s.Const(extent) else c.Call("pto_scalar_min_i64", (count, bound))
            if not isinstance(count, c.Int):
                if given != s.Const(extent):
                    name = env.name(f"{stmt.param}_{'rows' if dim == 0 else 'cols'}")
                    out.append(c.Declare("const int64_t", name, count))
                    count = c.Name(name)
                partial.append(c.Infix("<", count, c.Int(extent)))
            else:
                partial.append(c.Int(int(count.value < extent)))
            valid.append(count)
        if stmt.param in self.tensors:
            out += self._guard(stmt, (offsets[0], offsets[1]), (valid[0], valid[1]))
        pointer: c.Expr = c.Cast(f"{memory_type(dtype)} *", c.Member(env.argument(stmt.param), "data"))
        for dim, at in enumerate(offsets):
            if at != c.Int(0):
                stride = env.stride(stmt.param, dim)
                pointer = c.Infix("+", pointer, at if stride == c.Int(1) else c.Infix("*", at, stride))
        return out, pointer, (valid[0], valid[1]), (partial[0], partial[1])

    def _guard(self, stmt: k.Load | k.Store, at: tuple[c.Expr, c.Expr], count: tuple[c.Expr, c.Expr]) -> list[c.Stmt]:
        number = unreachable("load without a guard's number") if stmt.guard is None else stmt.guard
        if any(isinstance(extent, c.Int) and extent.value <= 0 for extent in count):
            return []
        piece = (c.Prefix("&", self.env.argument(stmt.param)), at[0], count[0], at[1], count[1])
        report = c.Call("pto_outside", (c.Name("context"), c.Int(1 + number), *piece))
        return [c.If(c.Call("pto_leaves", piece), (c.Return(report),))]

    # -- statements on whole tiles

    def _statement(self, stmt: k.Stmt) -> list[c.Stmt]:
        match stmt:
            case k.Rows():
                return self._rows(stmt)
            case k.Load():
                return self._load(stmt)
            case k.Alloc():
                return self._alloc(stmt)
            case k.Read(result, buffer):
                self.env.values[result.id] = self.env.buffers[buffer.id]
                return []
            case k.For():
                return [self._loop(stmt)]
            case k.If(condition, then, other):
                test = self.env.scalar(condition)
                if not then:
                    return [c.If(c.Prefix("!", test), tuple(self.body(other)))]
                return [c.If(test, tuple(self.body(then)), tuple(self.body(other)))]
            case k.WritePart():
                return self._write_part(stmt)
            case k.Accumulate(buffer, lhs, rhs, attrs):
                return [multiply(self.env, self.env.work(stmt), self.env.buffers[buffer.id], self._tile(lhs), self._tile(rhs), attrs,
                                 accumulate=True)]
            case k.Item():
                return self._item(stmt)
            case k.Print():
                return self._print(stmt)
            case k.FiniteCheck():
                return emit_finite_check(self.env, stmt, self._tile)
            case k.Compute():
                return self._tile_op(stmt)
            case k.Gather():
                return emit_gather(self.env, stmt, self._kept(k.SlotKind.VALUE, stmt.result.id))
            case k.Scatter():
                return emit_scatter(self.env, stmt)
            case k.Store() | k.Write() | k.Columns():
                unreachable(f"{type(stmt).__name__} outside rows")
            case _:
                assert_never(stmt)

    def _loop(self, stmt: k.For) -> c.Stmt:
        """Return a loop; an outermost loop tests in each iteration whether the run is cancelled."""
        name = self.env.variables[stmt.var] = self.env.name(stmt.var.name)
        start, stop, step = (self.env.scalar(bound) for bound in (stmt.start, stmt.stop, stmt.step))
        self.n_loops += 1
        body = self.body(stmt.body)
        self.n_loops -= 1
        if self.n_loops == 0:
            body.insert(0, c.If(c.Prefix("*", c.Member(c.Name("context"), "cancel", arrow=True)), (c.Return(c.Name("PTO_CANCELLED")),)))
        return c.For("int64_t", name, start, stop, step, tuple(body), wraps=c.may_wrap(stop, step))

    def _item(self, stmt: k.Item) -> list[c.Stmt]:
        """Return the declaration of a scalar read from a tile, in the C type of its class, after its guard."""
        dtype, place = stmt.item.dtype, self._tile(stmt.value)
        rows, cols = stmt.value.type.shape
        row, col = self.env.scalar(stmt.row), self.env.scalar(stmt.col)
        out: list[c.Stmt] = []
        if stmt.guard is not None:
            names = self.env.name(f"{stmt.item.name}_row"), self.env.name(f"{stmt.item.name}_col")
            out += [c.Declare("const int64_t", name, at) for name, at in zip(names, (row, col), strict=True)]
            row, col = c.Name(names[0]), c.Name(names[1])
            outside = c.Call("pto_element_leaves", (c.Name("context"), row, c.Int(rows), col, c.Int(cols)))
            out.append(c.If(outside, (c.Return(c.Int(1 + stmt.guard)),)))
        down = c.Int(0) if rows == 1 or row == c.Int(0) else c.Infix("*", row, place.step)
        at = col if down == c.Int(0) else down if cols == 1 or col == c.Int(0) else c.Infix("+", down, col)
        element = load_element(c.Index(c.Name(place.pointer), at), dtype)
        kind = "double" if dtype.is_float else "_Bool" if dtype.is_bool else "int64_t"
        name = self.env.variables[stmt.item] = self.env.name(stmt.item.name)
        return [*out, c.Declare(f"const {kind}", name, element if dtype.is_bool else c.Cast(kind, element))]

    def _write_part(self, stmt: k.WritePart) -> list[c.Stmt]:
        """Return the copy of a value to a part of a buffer, after its guard."""
        self.env.headers.add("pto_move.h")
        to, held = self.env.buffers[stmt.buffer.id], self._tile(stmt.value)
        (rows, cols), (all_rows, all_cols) = held.type.shape, to.type.shape
        out: list[c.Stmt] = []
        offset: c.Expr = c.Int(0)
        at: list[c.Expr] = []
        for what, node in (("row", stmt.row), ("col", stmt.col)):
            start = self.env.scalar(node)
            if not isinstance(start, c.Int):
                name = self.env.name(f"{stmt.buffer.name}_{what}")
                out.append(c.Declare("const int64_t", name, start))
                start = c.Name(name)
            at.append(start)
        if stmt.guard is not None:
            starts = (at[0], c.Int(all_rows - rows + 1), at[1], c.Int(all_cols - cols + 1))
            out.append(c.If(c.Call("pto_element_leaves", (c.Name("context"), *starts)), (c.Return(c.Int(1 + stmt.guard)),)))
        if at[0] != c.Int(0):
            offset = c.Infix("*", at[0], to.step)
        if at[1] != c.Int(0):
            offset = at[1] if offset == c.Int(0) else c.Infix("+", offset, at[1])
        target: c.Expr = c.Name(to.pointer) if offset == c.Int(0) else c.Infix("+", c.Name(to.pointer), offset)
        down = c.Int(0) if rows == 1 else held.step
        out.append(c.Evaluate(c.Call(f"pto_move_{8 * held.type.dtype.nbytes}", (
            target, to.step, c.Int(1), c.Name(held.pointer), down, c.Int(1), c.Int(rows), c.Int(cols)))))
        return out

    def _print(self, stmt: k.Print) -> list[c.Stmt]:
        if isinstance(stmt.value, k.Value):
            place = self._tile(stmt.value)
            rows, cols = map(self.env.scalar, valid_of(stmt))
            return [_shown(stmt.id, c.Name(place.pointer), place.type.dtype, (rows, cols, place.step))]
        dtype, name = stmt.value.dtype, self.env.name("shown")
        held = c.Declare(f"const {memory_type(dtype)}", name, self.env.scalar_as(stmt.value.value, dtype))
        return [held, _shown(stmt.id, c.Prefix("&", c.Name(name)), dtype, (c.Int(1),) * 3)]

    def _tile_op(self, stmt: k.Compute) -> list[c.Stmt]:
        entry, result = find(stmt.op), stmt.result
        place = self._kept(k.SlotKind.VALUE, result.id)
        self.env.values[result.id] = place
        match entry:
            case Matmul():
                return self._product(stmt, place)
            case Movement():
                return emit_movement(self.env, place, stmt, entry)
            case TileFunction():
                return emit_call(self.env, place, stmt, entry)
            case _:
                unreachable(f"operation {stmt.op} on whole tiles")

    def _product(self, stmt: k.Compute, place: CTile) -> list[c.Stmt]:
        lhs, rhs, *start = (self._tile(o) for o in stmt.operands)
        copied = [self._copy(place, start[0], (start[0].step, c.Int(1)))] if start else []
        return [*copied, multiply(self.env, self.env.work(stmt), place, lhs, rhs, stmt.attrs, accumulate=bool(start))]

    def _copy(self, to: CTile, source: CTile, steps: tuple[c.Expr, c.Expr]) -> c.Stmt:
        rows, cols = c.Int(to.type.rows), c.Int(to.type.cols)
        return c.Evaluate(c.Call(f"pto_stage_{to.type.dtype}", (
            c.Name(to.pointer), rows, cols, c.Name(source.pointer), *steps, rows, cols, memory_literal(0, to.type.dtype))))

    def _tile(self, operand: k.Operand) -> CTile:
        if isinstance(operand, k.ScalarOperand):
            unreachable("number where an operation needs a tile")
        return self.env.values[operand.id]


def _shown(number: int, data: c.Expr, dtype: DType, rows_cols_step: tuple[c.Expr, ...]) -> c.Stmt:
    sizes = (c.Int(dtype.nbytes), *rows_cols_step, c.Int(1))
    return c.Evaluate(c.Call("context->print", (c.Name("context"), c.Int(number), data, *sizes)))


def _or(lhs: c.Expr, rhs: c.Expr) -> c.Expr:
    if c.Int(1) in (lhs, rhs):
        return c.Int(1)
    return rhs if lhs == c.Int(0) else lhs if rhs == c.Int(0) else c.Infix("||", lhs, rhs)

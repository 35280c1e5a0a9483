"""A kernel as a function of NumPy: its statements as they were traced, under the user's names.

>>> print("\\n".join(emit_function(kernel, "scale")))
def scale(x, out, s):
    \"\"\"model.py:7\"\"\"
    v0 = _load(x, (0, 0), (4, 8))
    v1 = v0 * np.float32(s)  # model.py:8
    _store(out, v1, (0, 0))
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from pto_wsp.codegen.npu.golden.lines import INDENT, Lines
from pto_wsp.codegen.npu.golden.names import Scope
from pto_wsp.codegen.npu.golden.scalars import spell_scalar
from pto_wsp.codegen.npu.golden.spelling import spell_dtype, spell_op
from pto_wsp.errors import unreachable
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import operand_types, piece_of, uses_of, writes_buffer
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar_text import print_scalar


def emit_function(kernel: k.Kernel, name: str, taken: frozenset[str]) -> tuple[str, ...]:
    """Return the lines of a function `name` of the kernel's memory parameters, then its Scalar parameters.

    A kernel that has a body in another language only becomes a function that says so when it is called.
    """
    return _Function(kernel, taken).whole(name)


class _Function:
    def __init__(self, kernel: k.Kernel, taken: frozenset[str]) -> None:
        self.kernel = kernel
        self.scope = Scope(taken)
        self.params = {param.name: self.scope.take(param.name, "arg") for param in (*kernel.memory_params, *kernel.scalar_params)}
        self.values: dict[int, str] = {}
        self.buffers: dict[int, str] = {}
        self.variables: dict[s.Var, str] = {}
        self.lines = Lines(kernel.span.line)

    def whole(self, name: str) -> tuple[str, ...]:
        """Return the whole function."""
        head = [f"def {name}({', '.join(self.params.values())}):"]
        if self.kernel.span.line:
            head.append(f'{INDENT}"""{self.kernel.span.short}"""')
        if not self.kernel.has_meaning:
            head.append(f"{INDENT}raise RuntimeError(\"kernel `{self.kernel.name}` has a body in C++ alone: "
                        "write here what it computes\")")
        self.body_or_pass(self.kernel.body, 1)
        return tuple(head + (self.lines.out if self.kernel.has_meaning else []))

    def body(self, stmts: tuple[k.Stmt, ...], depth: int) -> None:
        """Add the lines of statements. A buffer is named where it is read, and what is written to it takes its name at once."""
        skipped = -1
        for at, stmt in enumerate(stmts):
            if at == skipped:
                continue
            if isinstance(stmt, k.Read) and _stays(stmt, stmts[at + 1:]):
                self.values[stmt.result.id] = self.buffers[stmt.buffer.id]
                continue
            if isinstance(stmt, k.Compute | k.Load) and (written := _written_at_once(stmt, stmts[at + 1:])) is not None:
                self.values[stmt.result.id] = self.buffers[written.id]
                skipped = at + 1
            self.statement(stmt, depth)

    def statement(self, stmt: k.Stmt, depth: int) -> None:
        """Add the lines of one statement."""
        match stmt:
            case k.Compute(result, op, operands, attrs):
                spelled = [self.operand(operand) for operand in operands]
                self.lines.put(depth, f"{self.name(result)} = {spell_op(op, spelled, operand_types(stmt), result.type, attrs)}", stmt.span)
            case k.Load(result):
                turned = ".T" if stmt.transpose else ""
                fill = self.filled(stmt.fill, result.type.dtype)
                piece = f"{self.place(stmt)}, {piece_of(stmt)}{self.valid(stmt)}{fill}"
                self.lines.put(depth, f"{self.name(result)} = _load({piece}){turned}", stmt.span)
            case k.Store():
                self.lines.put(depth, f"_store({self.params[stmt.param]}, {self.values[stmt.value.id]}, "
                                f"({self.scalar(stmt.row)}, {self.scalar(stmt.col)}){self.valid(stmt)})", stmt.span)
            case k.Gather(result):
                rows = f"{self.params[stmt.param]}, {self.values[stmt.index.id]}, {self.scalar(stmt.col)}, {result.type.cols}"
                fill = self.filled(stmt.fill, result.type.dtype)
                self.lines.put(depth, f"{self.name(result)} = _load_rows({rows}{self.valid_rows(stmt)}{fill})", stmt.span)
            case k.Scatter():
                rows = f"{self.params[stmt.param]}, {self.values[stmt.index.id]}, {self.values[stmt.value.id]}, {self.scalar(stmt.col)}"
                self.lines.put(depth, f"_store_rows({rows}{self.valid_rows(stmt)}{', add=True' if stmt.add else ''})", stmt.span)
            case k.Alloc(buffer, init):
                self.buffers.setdefault(buffer.id, self.scope.take(buffer.name, "buffer"))
                held = self.constant(0 if init is None else init, buffer.type.dtype)
                self.lines.put(depth, f"{self.buffers[buffer.id]} = np.full({buffer.type.shape}, {held})", stmt.span)
            case k.Read(result, buffer):
                self.lines.put(depth, f"{self.name(result)} = {self.buffers[buffer.id]}", stmt.span)
            case k.Write(buffer, value):
                self.lines.put(depth, f"{self.buffers[buffer.id]} = {self.values[value.id]}", stmt.span)
            case k.For(var, start, stop, step, body):
                bounds = f"{self.scalar(start)}, {self.scalar(stop)}" + ("" if step == s.Const(1) else f", {self.scalar(step)}")
                self.variables[var] = self.scope.take(var.name, "i")
                self.lines.put(depth, f"for {self.variables[var]} in range({bounds}):", stmt.span)
                self.body_or_pass(body, depth + 1)
            case k.If(condition, then, other):
                self.lines.put(depth, f"if {self.scalar(condition)}:", stmt.span)
                self.body_or_pass(then, depth + 1)
                if other:
                    self.lines.out.append(f"{INDENT * depth}else:")
                    self.body_or_pass(other, depth + 1)
            case k.Print():
                pass
            case k.Accumulate() | k.Check() | k.Rows() | k.Columns():
                unreachable("a kernel that passes have changed: golden.py is made from what was traced")
            case _:
                assert_never(stmt)

    def body_or_pass(self, stmts: tuple[k.Stmt, ...], depth: int) -> None:
        """Add a body, which Python wants to have a line."""
        before = len(self.lines.out)
        self.body(stmts, depth)
        if len(self.lines.out) == before:
            self.lines.out.append(f"{INDENT * depth}pass")

    def name(self, value: k.Value) -> str:
        """Return the name of a value that is defined here."""
        if value.id not in self.values:
            self.values[value.id] = self.scope.take(value.name, f"v{value.id}")
        return self.values[value.id]

    def operand(self, operand: k.Operand) -> str:
        """Return an operand: a name, or a number of its dtype."""
        match operand:
            case k.Value(id):
                return self.values[id]
            case k.ScalarOperand(s.Const(value), dtype):
                return self.constant(value, dtype)
            case k.ScalarOperand(value, dtype):
                return self.held(value, dtype)
            case _:
                assert_never(operand)

    def held(self, value: s.Scalar, dtype: DType) -> str:
        """Return a scalar known at run time as `dtype` holds it: rounded, or wrapped."""
        text = self.scalar(value)
        if s.scalar_dtype(value).is_integer and dtype.is_integer and dtype is not DType.I64:
            return f"np.int64({text}).astype({spell_dtype(dtype)})"
        return f"{spell_dtype(dtype)}({text})"

    @staticmethod
    def constant(value: s.Number, dtype: DType) -> str:
        """Return a number known now as a scalar of NumPy."""
        if isinstance(value, float) and not np.isfinite(value):
            return f'{spell_dtype(dtype)}("{value!r}")'
        return f"{spell_dtype(dtype)}({value!r})"

    def place(self, stmt: k.Load) -> str:
        """Return the region that a load reads, and where."""
        return f"{self.params[stmt.param]}, ({self.scalar(stmt.row)}, {self.scalar(stmt.col)})"

    def valid(self, stmt: k.Load | k.Store) -> str:
        """Return the valid part of a piece as an argument, nothing where all of it is."""
        if stmt.valid_rows is None and stmt.valid_cols is None:
            return ""
        rows, cols = (str(extent) if given is None else self.scalar(given)
                      for extent, given in zip(piece_of(stmt), (stmt.valid_rows, stmt.valid_cols), strict=True))
        return f", valid=({rows}, {cols})"

    def valid_rows(self, stmt: k.Gather | k.Scatter) -> str:
        """Return how many rows of an index are valid as an argument, nothing where all are."""
        return "" if stmt.valid is None else f", valid={self.scalar(stmt.valid)}"

    def filled(self, fill: s.Number, dtype: DType) -> str:
        """Return what fills the rest as an argument, nothing where it is 0."""
        return "" if not fill else f", fill={self.constant(fill, dtype)}"

    def scalar(self, node: s.Scalar) -> str:
        """Return Python for a scalar of this kernel."""
        return spell_scalar(node, self.leaf)

    def leaf(self, node: s.Scalar) -> str:
        """Return the name of a parameter, an extent or a loop variable."""
        match node:
            case s.ParamScalar(name):
                return self.params[name]
            case s.ParamExtent(name, dim):
                return f"{self.params[name]}.shape[{dim}]"
            case s.Var():
                return self.variables[node]
            case _:
                unreachable(f"scalar in a kernel: {print_scalar(node)}")


def _stays(read: k.Read, rest: tuple[k.Stmt, ...]) -> bool:
    """Tell whether a buffer is what a read found in it for as long as that is used."""
    changes = next((at for at, stmt in enumerate(rest) if writes_buffer(stmt, read.buffer)), len(rest))
    late = rest[changes + 1:] if changes < len(rest) and isinstance(rest[changes], k.Write) else rest[changes:]
    return not any(read.result in uses_of(stmt) for stmt in late)


def _written_at_once(stmt: k.Compute | k.Load, rest: tuple[k.Stmt, ...]) -> k.Buffer | None:
    """Return the buffer that the next statement writes a result to, where nothing else uses the result."""
    match rest:
        case (k.Write(buffer, value), *others) if value == stmt.result and not any(value in uses_of(other) for other in others):
            return buffer
        case _:
            return None

"""Check a kernel read as data, by tracing each of its statements again.

The retraced statement must equal the statement in the data. So every rule of types, bounds and order has one home, and statements that only
passes make (copied pieces, rows, numbers of guards) are refused. The module also has the errors, and the checks of names and scalars, for
all data of a workload.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from keyword import iskeyword
from typing import NoReturn

from pto_wsp.errors import DataFormatError, OwnBodyError, PtoError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.codec import dumps
from pto_wsp.ir.own_text import find_flaw
from pto_wsp.ir.rewrite import rewrite
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tags import WORKLOAD_TAGS
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entries.create import expand
from pto_wsp.ops.entries.index import gather
from pto_wsp.ops.entry import activate, bind
from pto_wsp.ops.rounding import ALL
from pto_wsp.ops.table import TABLE
from pto_wsp.ops.typing import as_dtype, as_shape
from pto_wsp.ops.whole import TileFunction
from pto_wsp.source import Span, here
from pto_wsp.trace.kernel import control, memory, picked_rows
from pto_wsp.trace.kernel.annotations import KernelParam, annotation_of
from pto_wsp.trace.kernel.definition import MOST_SCRATCH, check_names, check_stored, is_number
from pto_wsp.trace.kernel.printing import print_
from pto_wsp.trace.kernel.tile_value import BufferRef, TensorParamRef, TileParamRef, TileValue
from pto_wsp.trace.kernel.trace import KernelTrace

_UNARY = frozenset({s.Op.NEG, s.Op.NOT})
_TILE_OF_STACK = re.compile(r"\[(0|[1-9]\d*)(, (0|[1-9]\d*))*\]\Z")
_I64 = range(-(1 << 63), 1 << 63)


def refuse(found: str, *, expected: str | None = None) -> NoReturn:
    """Raise W113 for data that no trace gives."""
    raise DataFormatError("this JSON is not a workload", here(), expected=expected, found=found)


def refuse_as_traced(where: str, problem: PtoError) -> NoReturn:
    """Raise W113 for data that a trace would refuse, with the trace's message."""
    notes = [f"{label}: {text}" for label, text in (("expected", problem.expected), ("found", problem.found)) if text is not None]
    raise DataFormatError("this JSON is not a workload", here(), found=f"{where}: {problem.code}: {problem.message}",
                          notes=notes) from None


def check_name(what: str, name: str) -> None:
    """Raise W113 unless a name is one that Python's own syntax gives."""
    if not name.isidentifier() or iskeyword(name):
        refuse(f"{what} called {name!r:.60}", expected="a Python identifier")


def check_tile_name(what: str, name: str) -> None:
    """Raise W113 unless a name is an identifier, or that of a tile of a stack: `x[0, 1]`."""
    check_name(what, _TILE_OF_STACK.sub("", name))


def check_text(what: str, text: str) -> None:
    """Raise W113 for text of more than one line, or that shows as something else."""
    if not text.isprintable():
        refuse(f"{what} {text!r:.60}", expected="printable text of one line")


def check_scalar(node: s.Scalar, leaf: Callable[[s.Scalar], None]) -> None:
    """Raise W113 for an expression that no arithmetic gives; `leaf` judges what is no constant and no operation."""
    match node:
        case s.Const(value):
            if isinstance(value, int) and value not in _I64:
                refuse(f"the number {value}", expected="a whole number of 64 bits")
        case s.Unary(op) if op not in _UNARY:
            refuse(f"`{op.value}` of one scalar")
        case s.Binary(op) if op in _UNARY:
            refuse(f"`{op.value}` of two scalars")
        case s.Sum():
            refuse(f"a sum: {print_scalar(node)}", expected="what a body computes")
        case s.Unary() | s.Binary() | s.Select():
            pass
        case _:
            leaf(node)
    for child in s.children(node):
        check_scalar(child, leaf)


_INSIDE = ("inside", True)


def check_kernel(kernel: k.Kernel, *, bodies: bool, door: str = "Workload.from_json") -> None:
    """Raise W113 for a kernel that no trace gives. `bodies`: C and C++ bodies are allowed; `door`: the call that reads the kernel.

    Raises: W102 for any other kernel, K107 for a body that is not allowed.
    """
    try:
        check_as_traced(kernel, bodies=bodies, door=door)
    except RefusedKernelError as refused:
        refuse_as_traced(f"kernel `{kernel.name}`", refused.problem)


class RefusedKernelError(Exception):
    """A kernel that no trace gives: what the trace says, and where the refused statement is written."""

    def __init__(self, problem: PtoError, span: Span) -> None:
        super().__init__(problem.message)
        self.problem, self.span = problem, span


def check_as_traced(kernel: k.Kernel, *, bodies: bool, door: str) -> None:
    """Raise RefusedKernelError for a kernel that no trace gives; arguments are as for `check_kernel`.

    Raises: K107 for a body that is not allowed.
    """
    if kernel.bodies and not bodies:
        raise OwnBodyError(f"kernel `{kernel.name}` has a body in {'C' if kernel.c_body else 'C++'}, and is read as data", here(),
                           expected="kernels of tile ops, which can only compute on what they are given",
                           help=f"{door}(text, bodies=True), for text that you trust as you trust code")
    retrace = _Retrace(kernel)
    try:
        check_name("a kernel", kernel.name)
        _check_params(kernel)
        _check_bodies(kernel)
        retrace.check()
    except PtoError as problem:
        raise RefusedKernelError(problem, retrace.at) from None


def _check_params(kernel: k.Kernel) -> None:
    for param in kernel.params:
        (check_tile_name if isinstance(param, k.TileParam) else check_name)("a parameter", param.name)
        annotation_of(param)
        if isinstance(param, k.TileParam) and param.combine and (param.combine not in k.COMBINES or not param.accumulates):
            refuse(f"the parameter {param!r:.120}", expected=f"an InOut that combines by one of {', '.join(k.COMBINES)}")
    if len({param.name for param in kernel.params}) < len(kernel.params):
        refuse("two parameters of one name")
    if kernel.arena:
        refuse("a plan of scratch memory, which compiling makes")


def _check_bodies(kernel: k.Kernel) -> None:
    check_names(kernel.name, tuple(KernelParam(param.name, annotation_of(param)) for param in kernel.params), kernel.bodies)
    if len([own for own in kernel.bodies if own.form is k.BodyForm.C]) > 1 or len(kernel.bodies) > 2:
        refuse("two bodies for one target")
    names = {param.name for param in kernel.params}
    for own in kernel.bodies:
        if not 0 <= own.scratch_bytes <= MOST_SCRATCH:
            refuse(f"a body with {own.scratch_bytes} bytes of scratch memory")
        flaw = find_flaw(own.text) if own.form is k.BodyForm.C else None
        if flaw is not None or not own.text.strip():
            refuse(f"a body that is no body of a function: {flaw.what if flaw else 'it is empty'}")
        for name, value in own.constants:
            check_name("a constant", name)
            if not is_number(value) or name in names:
                refuse(f"constant `{name}` of a body")


class _Retrace:
    """Traces the statements of a kernel again. Values get new numbers; `_values` maps the data's numbers to them."""

    def __init__(self, kernel: k.Kernel) -> None:
        self._kernel = kernel
        self.at = kernel.span        # of the statement that is checked
        self._trace = KernelTrace(kernel.name, [param.name for param in kernel.params])
        self._params = {param.name: param for param in kernel.params}
        self._values: dict[int, tuple[k.Value, TileValue]] = {}
        self._buffers: dict[int, BufferRef] = {}
        self._columns: dict[int, TileType] = {}     # results of argsort and topk -> type of the tile whose columns they index

    def check(self) -> None:
        """Check all statements.

        Raises: a PtoError for the first statement that differs from its retraced form.
        """
        with activate(self._trace):
            self._body(self._kernel.body)
            self._trace.body()
        check_stored(self._kernel, self._trace.stored)

    def _body(self, body: tuple[k.Stmt, ...]) -> None:
        for stmt in body:
            if not isinstance(stmt, k.Rows | k.Columns):
                self.at = stmt.span
            match stmt:
                case k.For():
                    self._loop(stmt)
                case k.If():
                    self._branch(stmt)
                case _:
                    self._statement(stmt)

    # -- loops and branches --------------------------------------------------------------------------------------------

    def _loop(self, loop: k.For) -> None:
        check_name("a loop variable", loop.var.name)
        bounds = control.range_(*(self._scalar(bound) for bound in (loop.start, loop.stop, loop.step))).bounds
        var = self._trace.blocks.open_loop(loop.var.name, bounds, loop.span)
        self._same("loop", (loop.var, loop.start, loop.stop, loop.step), (var, *bounds))
        self._body(loop.body)
        self._trace.blocks.close_loop(var)

    def _branch(self, branch: k.If) -> None:
        blocks = self._trace.blocks
        side = control.when(self._scalar(branch.condition))
        blocks.awaited.opened(side)
        body = blocks.open_branch(branch.condition, branch.span)
        assert body is not None
        self._body(branch.then)
        blocks.close_branch(body, early=False)
        if branch.other:
            other = blocks.open_branch(None)
            assert other is not None
            self._body(branch.other)
            blocks.close_branch(other, early=False)

    # -- statements ----------------------------------------------------------------------------------------------------

    def _statement(self, stmt: k.Stmt) -> None:
        written = self._trace.blocks.innermost.stmts
        before = len(written)
        result = self._again(stmt)
        if len(written) != before + 1:
            refuse(f"a statement {WORKLOAD_TAGS.name(stmt)} that the trace writes in another way")
        made = written[-1]
        if result is not None:
            new = getattr(made, "result", None)
            if not isinstance(new, k.Value) or result.id in self._values or result.type != new.type:
                refuse(f"a result {result!r:.80}", expected=repr(new))
            self._values[result.id] = (result, TileValue(self._trace, new, self._trace.blocks.innermost.id))
            if result.name:
                check_name("a value", result.name)
        self._same(WORKLOAD_TAGS.name(stmt), rewrite(stmt, self._renumbered), rewrite(made, _unnamed))

    def _again(self, stmt: k.Stmt) -> k.Value | None:
        """Trace a statement again; return its result."""
        match stmt:
            case k.Compute():
                self._compute(stmt)
                return stmt.result
            case k.Load(result, name, row, col):
                rows, cols = result.type.shape[::-1] if stmt.transpose else result.type.shape
                memory.load(self._param(name), (self._scalar(row), self._scalar(col)), (rows, cols),
                            self._extents(stmt.valid_rows, stmt.valid_cols), stmt.fill, stmt.transpose)
                return result
            case k.Store(name, value, row, col):
                param, tile = self._param(name), self._value(value)
                whole = isinstance(param, TileParamRef) and value.type == param.type and row == col == s.Const(0)
                memory.store(param, tile, None if whole else (self._scalar(row), self._scalar(col)),
                             self._extents(stmt.valid_rows, stmt.valid_cols))
            case k.Gather(result, name, index, col, valid, fill):
                picked_rows.gather(self._region(name), self._value(index), cols=(self._scalar(col), result.type.cols),
                                   valid=self._optional(valid), fill=fill)
                return result
            case k.Scatter(name, index, value, col, valid, add):
                scatter = picked_rows.scatter_add if add else picked_rows.scatter
                scatter(self._region(name), self._value(index), self._value(value), cols=(self._scalar(col), value.type.cols),
                        valid=self._optional(valid))
            case k.Alloc(buffer, init):
                check_tile_name("a buffer", buffer.name)
                made = memory.allocate(self._trace, buffer.name, buffer.type.shape, buffer.type.dtype, init)
                self._buffers[buffer.id] = made
            case k.Read(result, buffer):
                self._trace.read(self._buffer(buffer))
                return result
            case k.Write(buffer, value):
                self._trace.assign(self._buffer(buffer), self._value(value))
            case k.WritePart(buffer, value, row, col):
                self._trace.write_part(self._buffer(buffer), (self._scalar(row), self._scalar(col)), self._value(value))
            case k.Item(item, value, row, col):
                check_name("an item", item.name)
                self._trace.item(self._value(value), self._scalar(row).node, self._scalar(col).node, item.name)
            case k.Print(_, label, value, rows, cols):
                shown = self._value(value) if isinstance(value, k.Value) else self._scalar(value.value)
                print_(label, shown, valid=self._extents(rows, cols))
            case _:
                refuse(f"a statement {WORKLOAD_TAGS.name(stmt)}, which compiling makes")
        return None

    def _compute(self, stmt: k.Compute) -> None:
        entry = TABLE.get(stmt.op)
        if entry is None:
            refuse(f"the op {stmt.op!r:.60}", expected="an op of docs/ops.md")
        operands = tuple(self._value(o) if isinstance(o, k.Value) else self._scalar(o.value) for o in stmt.operands)
        types = tuple(o.type if isinstance(o, k.Value) else TileType(1, 1, o.dtype) for o in stmt.operands)
        attrs = stmt.attrs
        if _INSIDE in attrs:      # the attribute is valid only for columns from argsort or topk
            index = stmt.operands[1] if len(operands) == 2 else None
            if stmt.op != gather.name or ("axis", 1) not in attrs \
                    or not isinstance(index, k.Value) or self._columns.get(index.id) != types[0]:
                refuse(f"the op {stmt.op!r} on indices that are said to lie inside", expected="columns that argsort or topk gave")
            attrs = tuple(attr for attr in attrs if attr != _INSIDE)
        if stmt.op == expand.name and len(attrs) == 2:      # an expand that also converts
            again: object = (("shape", as_shape(stmt.op, dict(attrs).get("shape"))),
                             ("dtype", as_dtype(stmt.op, dict(attrs).get("dtype"), ALL)))
            if dict(attrs)["dtype"] is not stmt.result.type.dtype:
                refuse(f"the op {stmt.op!r} with {attrs!r:.80}")
        else:
            try:
                args, kwargs = entry.call_of(types, operands, attrs)
                given, again = entry.split(bind(f"pto.{stmt.op}", entry.signature, args, kwargs))
            except (StopIteration, ValueError, TypeError):
                refuse(f"the op {stmt.op!r} with {len(operands)} operands and {attrs!r:.80}", expected=str(entry.signature))
            if len(given) != len(operands) or any(new is not old for new, old in zip(given, operands, strict=True)):
                refuse(f"the op {stmt.op!r} with {len(operands)} operands", expected=str(entry.signature))
        self._same(f"the op {stmt.op!r}", attrs, again)
        self._trace.emit(stmt.op, operands, stmt.attrs)
        if isinstance(entry, TileFunction) and entry.sorts:
            self._columns[stmt.result.id] = types[0]

    # -- operands ------------------------------------------------------------------------------------------------------

    def _value(self, value: k.Value) -> TileValue:
        entry = self._values.get(value.id)
        if entry is None or entry[0] != value:
            refuse(f"the value {value!r:.80}", expected="a value that a statement before has made, of its type")
        return entry[1]

    def _buffer(self, buffer: k.Buffer) -> BufferRef:
        known_buffer = self._buffers.get(buffer.id)
        if known_buffer is None or known_buffer.buffer != buffer:
            refuse(f"the buffer {buffer!r:.80}", expected="a buffer that a statement before has made, of its type")
        return known_buffer

    def _param(self, name: str) -> TileParamRef | TensorParamRef:
        match self._params.get(name):
            case k.TileParam() as tile:
                return TileParamRef(self._trace, tile)
            case k.TensorParam() as tensor:
                return TensorParamRef(tensor)
            case _:
                refuse(f"the parameter {name!r:.60}", expected="a Tile or Tensor parameter of the kernel")

    def _region(self, name: str) -> TensorParamRef:
        param = self._param(name)
        if not isinstance(param, TensorParamRef):
            refuse(f"rows that are picked of the parameter {name!r:.60}", expected="a Tensor parameter")
        return param

    def _scalar(self, node: s.Scalar) -> Symbolic:
        check_scalar(node, self._check_leaf)
        return Symbolic(node)

    def _check_leaf(self, node: s.Scalar) -> None:
        match node:
            case s.ParamScalar(name, dtype):
                if self._params.get(name) != k.ScalarParamDecl(name, dtype):
                    refuse(f"the scalar {node!r:.80}", expected="a Scalar parameter of the kernel")
            case s.ParamExtent(name, dim):
                if not isinstance(self._params.get(name), k.TileParam | k.TensorParam) or dim not in (0, 1):
                    refuse(f"the extent {node!r:.80}", expected="rows or columns of a Tile or Tensor parameter")
            case s.Var() | s.ItemRef():
                pass      # the trace checks that the loop, or the body of the item, is open
            case _:
                refuse(f"the scalar {node!r:.80}", expected="a scalar of the kernel")

    def _optional(self, node: s.Scalar | None) -> Symbolic | None:
        return None if node is None else self._scalar(node)

    def _extents(self, rows: s.Scalar | None, cols: s.Scalar | None) -> tuple[Symbolic | None, Symbolic | None] | None:
        return None if rows is None and cols is None else (self._optional(rows), self._optional(cols))

    # -- comparison with the trace -------------------------------------------------------------------------------------

    def _renumbered(self, node: object) -> object | None:
        """Return a value of the data with the trace's number and without its name, which has no meaning."""
        return replace(node, id=self._values[node.id][1].value.id, name="") if isinstance(node, k.Value) else None

    def _same(self, what: str, data: object, traced: object) -> None:
        """Raise W113 unless the trace gives what the data says, number for number: 0, 0.0 and False differ."""
        if dumps(data) != dumps(traced):
            refuse(f"{what}: {_shown(data)}", expected=_shown(traced))


def _unnamed(node: object) -> object | None:
    return replace(node, name="") if isinstance(node, k.Value) else None


def _shown(node: object) -> str:
    return f"{json.dumps(json.loads(dumps(node)), separators=(', ', ': ')):.300}"

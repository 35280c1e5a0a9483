"""Read the text of a kernel, as `print_kernel` writes it, and hold it to the rules of a traced kernel.

The text gives statements; the table of ops gives the types that it leaves out, and the dtypes of numbers. What is read is then traced
again, statement by statement (`trace/kernel_data.py`), so a kernel that reads is one that a trace gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

from pto_wsp.errors import PtoError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.names import true_name
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.table import TABLE
from pto_wsp.source import Span
from pto_wsp.trace.kernel.blocks import MOST_NESTED
from pto_wsp.trace.kernel.trace import weak_number, zero_of
from pto_wsp.trace.text.lexer import INNER, IrToken, Reader, unquoted
from pto_wsp.trace.text.scalars import is_dtype, read_dtype, read_number, read_range, read_scalar, read_tile
from pto_wsp.values import dataclass

_ZERO: s.Scalar = s.Const(0)
_ROLES = {role.value: role for role in k.Role}
_FORMS = {form.value: form for form in k.BodyForm}
_MEMORY = ("store", "scatter", "scatter_add")
_OF_PASSES = ("rows", "columns", "check", "scratch")
_STATEMENTS = (*_MEMORY, "print", "for", "when", "otherwise")


def read_kernel(reader: Reader) -> tuple[str, k.Kernel]:
    """Return the kernel that begins at the next token, not yet traced again, and its name as the text has it.

    Raises: W116 for what is no kernel.
    """
    return _KernelReader(reader).read()


@dataclass(slots=True, eq=False)
class _Visible:
    """What names stand for in a body: values by number, buffers, loop variables and items by name."""

    values: dict[str, k.Value] = field(default_factory=dict)
    buffers: dict[str, k.Buffer] = field(default_factory=dict)
    variables: dict[str, s.Var | s.ItemRef] = field(default_factory=dict)

    def inner(self) -> _Visible:
        return _Visible(dict(self.values), dict(self.buffers), dict(self.variables))


class _KernelReader:
    """Reads one kernel."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._params: dict[str, k.Param] = {}
        self._scope = _Visible()
        self._made: set[str] = set()        # values of the whole kernel, by the text of their number
        self._n_buffers = self._n_vars = self._n_items = self._n_prints = self._depth = 0

    def read(self) -> tuple[str, k.Kernel]:
        """Return the kernel and its name in the text."""
        reader = self._reader
        start = reader.take()
        name = reader.name("the kernel")
        reader.expect("(")
        while not reader.sees(")"):
            self._param()
            if not reader.has(","):
                break
        reader.expect(")", "behind the parameters")
        reader.expect(":")
        reader.end_of_line("the head of a kernel")
        body = self._block(start.indent, self._statements)
        bodies = self._bodies(start.indent)
        return name.text, k.Kernel(true_name(name.text), tuple(self._params.values()), body, reader.span(name), bodies)

    # -- parameters ----------------------------------------------------------------------------------------------------
    def _param(self) -> None:
        reader = self._reader
        token = reader.name("a parameter")
        if reader.sees("["):        # a tile of a stack
            token = replace(token, text=token.text + self._reader.index())
        if token.text in self._params:
            reader.fail(f"two parameters are called `{token.text}`", token)
        reader.expect(":")
        kind = reader.name("what the parameter is")
        span = reader.span(token)
        if kind.text == "Scalar":
            reader.expect("[")
            self._params[token.text] = k.ScalarParamDecl(token.text, read_dtype(reader), span)
        elif kind.text == "Acc":
            reader.expect("[")
            tile = read_tile(reader)
            how = reader.name("how it combines").text if reader.has(",") else k.COMBINES[0]
            self._params[token.text] = k.TileParam(token.text, k.Role.INOUT, tile, span, how)
        elif kind.text in _ROLES:
            reader.expect("[")
            role = _ROLES[kind.text]
            self._params[token.text] = (k.TensorParam(token.text, role, read_dtype(reader), span) if reader.has("Tensor")
                                        else k.TileParam(token.text, role, read_tile(reader), span))
        else:
            reader.fail(f"no parameter is `{kind.text}`", kind, expected="In[...], Out[...], InOut[...], Acc[...] or Scalar[dtype]",
                        known=(*_ROLES, "Acc", "Scalar"))
        reader.expect("]")

    def _of_stack(self, token: IrToken) -> IrToken:
        """Return the name of a tile of a stack, if a parameter of the name is one; else the token."""
        if token.text not in self._params and self._reader.sees("[") and any(name.startswith(f"{token.text}[") for name in self._params):
            return replace(token, text=token.text + self._reader.index())
        return token

    def _buffer_of_stack(self, token: IrToken) -> IrToken:
        """Return the name of a buffer of a stack, if an index stands behind the token (`b[0]`, `b[0].1`); else the token."""
        reader = self._reader
        if not reader.index_ahead():
            return token
        text = token.text + reader.index()
        if reader.next.kind == "number" and reader.next.text.startswith("."):      # one of several that are called so
            text += reader.take().text
        return replace(token, text=text)

    # -- bodies --------------------------------------------------------------------------------------------------------
    def _block(self, outer: int, read: Callable[[int], tuple[k.Stmt, ...]]) -> tuple[k.Stmt, ...]:
        """Return the statements of a body whose lines stand further in than `outer`."""
        reader, indent = self._reader, self._reader.next.indent
        if indent <= outer or reader.next.kind == "end":
            reader.fail("a body is missing", expected="lines that stand further in; `(nothing)` for a body without statements")
        if self._at_own_body():
            return ()
        if reader.next.text == "(" and reader.behind.text == "nothing":
            reader.take(), reader.take(), reader.expect(")")
            reader.end_of_line("`(nothing)`")
            if reader.next.indent == indent:
                reader.fail("a body of `(nothing)` has a statement")
            return ()
        return read(indent)

    def _statements(self, indent: int) -> tuple[k.Stmt, ...]:
        reader = self._reader
        out: list[k.Stmt] = []
        while reader.next.indent == indent and reader.next.kind != "end" and not self._at_own_body():
            out.append(self._statement(indent, out[-1] if out else None))
            if isinstance(last := out[-1], k.If) and last.other:
                out.pop(-2)
        if reader.next.indent > indent:
            reader.fail("a line stands further in than the line before", expected=f"{indent} spaces", found=f"{reader.next.indent} spaces")
        return tuple(out)

    def _nested(self, indent: int) -> tuple[k.Stmt, ...]:
        """Return the body of a loop or branch, whose names end with it."""
        reader, outer = self._reader, self._scope
        self._depth += 1
        if self._depth > MOST_NESTED:
            reader.fail(f"more than {MOST_NESTED} loops and branches stand in each other")
        self._scope = outer.inner()
        body = self._block(indent, self._statements)
        self._scope = outer
        self._depth -= 1
        return body

    def _statement(self, indent: int, before: k.Stmt | None) -> k.Stmt:
        reader, start = self._reader, self._reader.next
        if start.kind == "value":
            return self._definition()
        if start.kind != "name":
            reader.fail("a statement is missing", expected="`%n = ...`, a buffer, or one of " + ", ".join(_STATEMENTS))
        reader.take()
        if start.text in _OF_PASSES and not reader.sees("=", "[", "+="):
            reader.fail(f"`{start.text}` is what compiling makes of a kernel", start, expected="a kernel as it is traced: str(k.ir)")
        match start.text:
            case "for" | "when":
                return self._loop(indent, start) if start.text == "for" else self._branch(indent, start)
            case "otherwise":
                return self._other_side(indent, start, before)
            case "print" if not reader.sees("=", "["):
                made: k.Stmt = self._print(start)
            case _ if start.text in _MEMORY and not reader.sees("=", "["):
                made = self._store(start) if start.text == "store" else self._scatter(start)
            case _:
                made = self._buffer(start)
        reader.end_of_line("a statement")
        return made

    def _loop(self, indent: int, start: IrToken) -> k.For:
        reader = self._reader
        token = reader.name("the loop's variable")
        reader.expect("in")
        bounds = read_range(reader, self._name)
        reader.expect(":")
        reader.end_of_line("the head of a loop")
        var = s.Var(true_name(token.text), self._n_vars)
        self._n_vars += 1
        before = self._scope
        self._scope = before.inner()
        self._scope.variables[token.text] = var
        body = self._nested(indent)
        self._scope = before
        return k.For(var, *bounds, body, reader.span(start))

    def _branch(self, indent: int, start: IrToken) -> k.If:
        reader = self._reader
        condition = read_scalar(reader, self._name)
        reader.expect(":")
        reader.end_of_line("the head of a branch")
        return k.If(condition, self._nested(indent), (), reader.span(start))

    def _other_side(self, indent: int, start: IrToken, before: k.Stmt | None) -> k.If:
        reader = self._reader
        if not isinstance(before, k.If) or before.other:
            reader.fail("`otherwise` does not stand behind a `when`", start)
        reader.expect(":")
        reader.end_of_line("`otherwise`")
        other = self._nested(indent)
        if not other:
            reader.fail("`otherwise` has no statement", start, expected="a statement, or no `otherwise`")
        return k.If(before.condition, before.then, other, before.span)

    # -- statements without a result -----------------------------------------------------------------------------------
    def _print(self, start: IrToken) -> k.Print:
        reader = self._reader
        label = reader.string("a label") if reader.next.kind == "string" else ""
        if label:
            reader.expect(",")
        if reader.next.kind == "value":
            shown: k.Operand = self._value()
        else:
            node = read_scalar(reader, self._name)
            shown = k.ScalarOperand(node, s.scalar_dtype(node))
        rows, cols = self._options(valid=self._extents).get("valid", (None, None))
        self._n_prints += 1
        return k.Print(self._n_prints - 1, label, shown, rows, cols, reader.span(start))

    def _store(self, start: IrToken) -> k.Store:
        reader = self._reader
        name = self._memory()
        row, col = self._pair() if reader.has("[") else (_ZERO, _ZERO)
        reader.expect(",")
        value = self._value()
        options = self._options(valid=self._extents)
        rows, cols = options.get("valid", (None, None))
        return k.Store(name, value, row, col, rows, cols, span=reader.span(start))

    def _scatter(self, start: IrToken) -> k.Scatter:
        reader = self._reader
        name = self._memory()
        index, col = self._picked()
        reader.expect(",")
        value = self._value()
        options = self._options(valid=self._scalar)
        return k.Scatter(name, index, value, col, options.get("valid"), start.text == "scatter_add", span=reader.span(start))

    def _item(self, start: IrToken) -> k.Item:
        """Return the read of an element as a scalar: `n = item %0[2, i]`; its dtype is the value's."""
        reader = self._reader
        if start.text in self._scope.variables:
            reader.fail(f"two scalars are called `{start.text}`", start, expected=f"another name, e.g. {start.text}.{self._n_items}")
        value = self._value()
        row, col = self._pair() if reader.has("[") else (_ZERO, _ZERO)
        item = s.ItemRef(true_name(start.text), self._n_items, value.type.dtype)
        self._n_items += 1
        self._scope.variables[start.text] = item
        return k.Item(item, value, row, col, span=reader.span(start))

    def _part(self, buffer: k.Buffer, start: IrToken) -> k.WritePart:
        """Return the write of a part of a buffer; `[` has been read. Both ends of a part are said, and its extent is the value's."""
        reader = self._reader
        starts, ends = [], []
        for mark in (",", "]"):
            starts.append(read_scalar(reader, self._name))
            reader.expect(":", "between the start and the end of a part")
            ends.append(read_scalar(reader, self._name))
            reader.expect(mark, "of a part: `[row : row + n, col : col + n] =`")
        reader.expect("=", "of a part")
        value = self._value()
        for at, end, extent in zip(starts, ends, value.type.shape, strict=True):
            if end != s.add(at, s.Const(extent)):
                reader.fail("the part has another extent than its value", start, expected=f"an end of {print_scalar(at)} + {extent}",
                            found=print_scalar(end))
        return k.WritePart(buffer, value, starts[0], starts[1], span=reader.span(start))

    def _buffer(self, start: IrToken) -> k.Alloc | k.Write | k.WritePart | k.Item:
        """Return the allocation of a buffer, the write of one or of a part, or the read of an element as a scalar."""
        reader, span = self._reader, self._reader.span(start)
        start = self._buffer_of_stack(start)
        if reader.has("="):
            if reader.has("item"):
                return self._item(start)
            reader.expect("alloc", "behind `=`: `alloc` of a buffer, or `item`")
            type = read_tile(reader)
            options = self._options(init=lambda: self._filled("init", type.dtype, start))
            if start.text in self._scope.buffers:
                reader.fail(f"two buffers are called `{start.text}`", start, expected=f"another name, e.g. {start.text}.{self._n_buffers}")
            buffer = k.Buffer(self._n_buffers, true_name(start.text), type)
            self._n_buffers += 1
            self._scope.buffers[start.text] = buffer
            return k.Alloc(buffer, options.get("init"), span)
        if start.text not in self._scope.buffers:
            reader.fail(f"there is no statement `{start.text}`, and no buffer of that name", start,
                        known=(*_STATEMENTS, *self._scope.buffers))
        if reader.sees("+="):
            reader.fail("`+=` is what compiling makes of a kernel", expected=f"{start.text}[:] = %n")
        reader.expect("[", "of `[:] =`")
        if not reader.sees(":"):
            return self._part(self._scope.buffers[start.text], start)
        for mark in (":", "]", "="):
            reader.expect(mark, "of `[:] =`")
        return k.Write(self._scope.buffers[start.text], self._value(), span)

    # -- statements with a result --------------------------------------------------------------------------------------
    def _definition(self) -> k.Stmt:
        reader, start = self._reader, self._reader.take()
        number = start.text.lstrip("%0") or "0"
        if len(number) > 18:
            reader.fail("the number of a value is too large", start)
        if number in self._made:
            reader.fail(f"{start.text} is made twice", start, expected="a number for each value")
        reader.expect("=")
        op = reader.name("what makes the value")
        span = reader.span(op)
        read = {"load": self._load, "read": self._read}.get(op.text, self._compute)
        if op.text == "gather" and reader.next.kind == "name":
            read = self._gather
        make, type = read(op)
        if reader.next.kind == "note":
            note = reader.take()
            told = read_tile(reader)
            if type is not None and told != type:
                reader.fail(f"{start.text} is said to be of another type", note, expected=repr(type), found=repr(told))
            type = told
        elif type is None:
            reader.fail(f"nothing tells the shape of {start.text}", expected="the type behind the statement: `# Tile[rows, cols, dtype]`")
        reader.end_of_line("a statement")
        value = k.Value(int(number), type)
        self._made.add(number)
        self._scope.values[number] = value
        return make(value, span)

    def _read(self, op: IrToken) -> tuple[Callable[[k.Value, Span], k.Stmt], TileType | None]:
        token = self._buffer_of_stack(self._reader.name("a buffer"))
        buffer = self._scope.buffers.get(token.text)
        if buffer is None:
            self._reader.fail(f"there is no buffer `{token.text}` here", token, known=self._scope.buffers)
        return lambda value, span: k.Read(value, buffer, span), buffer.type

    def _load(self, op: IrToken) -> tuple[Callable[[k.Value, Span], k.Stmt], TileType | None]:
        reader = self._reader
        name, whole = self._memory(), not reader.sees("[")
        row, col = self._pair() if reader.has("[") else (_ZERO, _ZERO)
        param = self._params[name]
        dtype = param.dtype
        options = self._options(valid=self._extents, fill=lambda: self._filled("fill", dtype, op), transpose=lambda: True)
        rows, cols = options.get("valid", (None, None))
        transpose = "transpose" in options
        type = param.type if isinstance(param, k.TileParam) and whole and not transpose and reader.next.kind != "note" else None
        fill = options.get("fill", zero_of(dtype))
        return lambda value, span: k.Load(value, name, row, col, rows, cols, fill, transpose, span=span), type

    def _gather(self, op: IrToken) -> tuple[Callable[[k.Value, Span], k.Stmt], TileType | None]:
        name = self._memory()
        index, col = self._picked()
        param = self._params[name]
        dtype = param.dtype
        options = self._options(valid=self._scalar, fill=lambda: self._filled("fill", dtype, op))
        fill = options.get("fill", zero_of(dtype))
        return lambda value, span: k.Gather(value, name, index, col, options.get("valid"), fill, span=span), None

    def _compute(self, op: IrToken) -> tuple[Callable[[k.Value, Span], k.Stmt], TileType | None]:
        reader, entry = self._reader, TABLE.get(op.text)
        if entry is None:
            reader.fail(f"there is no op `{op.text}`", op, expected="an op of docs/ops.md, load, read or gather",
                        known=(*TABLE, "load", "read"))
        given: list[k.Value | s.Scalar] = []
        attrs: list[tuple[str, k.Attr]] = []
        while reader.next.indent == INNER and reader.next.kind != "note":
            if reader.next.kind == "name" and reader.behind.text == "=" and reader.behind.kind == "mark":
                name = reader.take().text
                reader.take()
                attrs.append((name, self._attr()))
            elif attrs:
                reader.fail(f"an operand of `{op.text}` stands behind an attribute")
            else:
                given.append(self._value() if reader.next.kind == "value" else read_scalar(reader, self._name))
            if not reader.has(","):
                break
        try:
            types = [each.type if isinstance(each, k.Value) else None for each in given]
            operands = tuple(each if isinstance(each, k.Value) else self._weak(op, each, entry.weak_dtype(at, types, tuple(attrs)))
                             for at, each in enumerate(given))
            result = entry.infer([each.type if isinstance(each, k.Value) else TileType(1, 1, each.dtype) for each in operands],
                                 tuple(attrs))
        except PtoError as problem:
            reader.fail(problem.message, op, expected=problem.expected, found=problem.found or f"{len(given)} operands")
        except (StopIteration, ValueError, TypeError, IndexError, KeyError, AttributeError):
            reader.fail(f"`{op.text}` does not take this", op, expected=str(entry.signature),
                        found=f"{len(given)} operands and {', '.join(name for name, _ in attrs) or 'no attributes'}")
        return lambda value, span: k.Compute(value, op.text, operands, tuple(attrs), span), result

    def _weak(self, op: IrToken, node: s.Scalar, dtype: DType | None) -> k.ScalarOperand:
        if dtype is None:
            self._reader.fail(f"`{op.text}` takes a tile here, and no number", op, expected="%n")
        return k.ScalarOperand(weak_number(f"`{op.text}`", node, dtype), dtype)

    # -- operands ------------------------------------------------------------------------------------------------------
    def _value(self) -> k.Value:
        token = self._reader.next
        if token.kind != "value" or token.indent != INNER:
            self._reader.fail("a value is missing", expected="%n, a value that a line before has made")
        number = token.text.lstrip("%0") or "0"
        if number not in self._scope.values:
            self._reader.fail(f"{token.text} is not made before this line" if number not in self._made
                              else f"{token.text} is made inside a loop or branch that has ended",
                              expected=f"one of {', '.join(f'%{each}' for each in list(self._scope.values)[-8:])}"
                              if self._scope.values else "a value that a line before has made")
        self._reader.take()
        return self._scope.values[number]

    def _memory(self) -> str:
        token = self._of_stack(self._reader.name("a parameter"))
        if not isinstance(self._params.get(token.text), k.TileParam | k.TensorParam):
            memory = [name for name, param in self._params.items() if not isinstance(param, k.ScalarParamDecl)]
            self._reader.fail(f"`{token.text}` is no Tile or Tensor parameter of the kernel", token,
                              expected=f"one of {', '.join(memory)}" if memory else None, known=memory)
        return token.text

    def _name(self, token: IrToken) -> s.Scalar:
        """Return the scalar that a name stands for: a loop's variable, a Scalar parameter, an extent `x.shape[0]`."""
        reader = self._reader
        if token.text in self._scope.variables and not reader.sees("."):
            return self._scope.variables[token.text]
        token = self._of_stack(token)
        match self._params.get(token.text):
            case k.ScalarParamDecl(name, dtype):
                return s.ParamScalar(name, dtype)
            case k.TileParam() | k.TensorParam():
                reader.expect(".", f"behind `{token.text}`, whose extents are `{token.text}.shape[0]` and `{token.text}.shape[1]`")
                reader.expect("shape")
                reader.expect("[")
                dim = reader.whole("a dimension")
                if dim not in (0, 1):
                    reader.fail(f"`{token.text}` has no dimension {dim}", token, expected="0 or 1")
                reader.expect("]")
                return s.ParamExtent(token.text, dim)
        reader.fail(f"nothing is called `{token.text}` here", token, expected="a Scalar parameter, or the variable of a loop around",
                    known=(*self._scope.variables, *self._params))

    def _scalar(self) -> s.Scalar:
        self._reader.expect("=")
        return read_scalar(self._reader, self._name)

    def _pair(self) -> tuple[s.Scalar, s.Scalar]:
        row = read_scalar(self._reader, self._name)
        self._reader.expect(",", "between row and column")
        col = read_scalar(self._reader, self._name)
        self._reader.expect("]")
        return row, col

    def _picked(self) -> tuple[k.Value, s.Scalar]:
        self._reader.expect("[")
        index = self._value()
        self._reader.expect(",", "between index and column")
        col = read_scalar(self._reader, self._name)
        self._reader.expect("]")
        return index, col

    def _extents(self) -> tuple[s.Scalar | None, s.Scalar | None]:
        reader = self._reader
        reader.expect("=")
        reader.expect("(")
        rows = None if reader.has(":") else read_scalar(reader, self._name)
        reader.expect(",", "between rows and columns")
        cols = None if reader.has(":") else read_scalar(reader, self._name)
        reader.expect(")")
        return rows, cols

    def _filled(self, what: str, dtype: DType, at: IrToken) -> s.Number:
        reader = self._reader
        reader.expect("=")
        number = read_number(reader, what)
        try:
            node = weak_number(f"`{what}`", s.Const(number), dtype)
        except PtoError as problem:
            reader.fail(problem.message, at, expected=problem.expected, found=problem.found)
        return node.value if isinstance(node, s.Const) else number

    def _options(self, **known: Callable[[], Any]) -> dict[str, Any]:
        """Return the options of a statement: `, name=...` or `, name`, each at most once."""
        reader, out = self._reader, {}
        while reader.has(","):
            token = reader.name("an option")
            if token.text in ("guard", "copy", "past"):
                reader.fail(f"`{token.text}` is what compiling makes of a kernel", token, expected="a kernel as it is traced: str(k.ir)")
            if token.text not in known or token.text in out:
                reader.fail(f"`{token.text}` is no option here" if token.text not in known else f"`{token.text}` is said twice", token,
                            expected=", ".join(known), known=known)
            out[token.text] = known[token.text]()
        return out

    def _attr(self) -> k.Attr:
        """Return the value of an attribute: a number, text, a dtype, None, or whole numbers in parentheses."""
        reader = self._reader
        token = reader.next
        if token.kind == "string":
            return reader.string("an attribute")
        if is_dtype(token):
            return read_dtype(reader)
        if reader.has("None"):
            return None
        if not reader.has("("):
            return read_number(reader, "an attribute")
        numbers: list[int] = []
        while not reader.sees(")"):
            numbers.append(reader.whole("a number"))
            if not reader.has(","):
                break
        reader.expect(")")
        return tuple(numbers)

    # -- bodies in C and C++ -------------------------------------------------------------------------------------------
    def _at_own_body(self) -> bool:
        return self._reader.next.text in _FORMS and self._reader.behind.text in (":", "with")

    def _bodies(self, outer: int) -> tuple[k.OwnBody, ...]:
        reader = self._reader
        out: list[k.OwnBody] = []
        while reader.next.indent > outer and self._at_own_body():
            start = reader.take()
            constants: list[tuple[str, int | float | bool]] = []
            if reader.has("with"):
                while True:
                    name = reader.name("a constant")
                    reader.expect("=")
                    constants.append((name.text, read_number(reader, "a constant")))
                    if not reader.has(","):
                        break
            scratch = next((at for at in reversed(range(len(constants))) if constants[at][0] == "scratch_bytes"), None)
            scratch_bytes = 0 if scratch is None else int(constants.pop(scratch)[1])
            reader.expect(":")
            reader.end_of_line("the head of a body")
            lines = []
            while reader.next.kind == "raw":
                raw = reader.take()
                lines.append(_line(reader, raw))
            out.append(k.OwnBody(_FORMS[start.text], "\n".join(lines), scratch_bytes, tuple(constants), reader.span(start)))
        return tuple(out)


def _line(reader: Reader, raw: IrToken) -> str:
    """Return the line of a body: behind `| `, or in quotes behind `|= `."""
    if not raw.text.startswith("= "):
        return raw.text.removeprefix(" ")
    text = unquoted(raw.text[2:].strip())
    if text is None:
        reader.fail("a line in quotes is none", raw, expected="|= 'text'")
    return text

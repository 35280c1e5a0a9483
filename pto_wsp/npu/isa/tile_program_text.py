"""Print tile programs as text for readers: the files in `ir/` and `pto-wsp inspect`.

>>> print(print_program(program))
vector program double(x: In[Tile[4, 8, f32]], y: Out[Tile[4, 8, f32]]):
    buffer x         UB       128 bytes
    buffer mul_1     UB       128 bytes
    x         = f32 4x8 rows in x
    mul_1     = f32 4x8 rows in mul_1
    load x <- x[0, 0]
    TMULS mul_1, x, 2.0
    store y[0, 0] <- mul_1
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, assert_never

from pto_wsp.ir.kernel_text import print_param
from pto_wsp.ir.scalar import Const, Scalar, print_scalar
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.source import Span

_INDENT = "    "


def print_program(program: tp.TileProgram) -> str:
    """Return the program as indented lines: on-chip buffers, then tiles, then steps."""
    return "\n".join(text for text, _ in _lines(program))


_COMMENT_COLUMN = 60


def print_listing(program: tp.TileProgram) -> str:
    """Return the program as `print_program` does, with the user's line behind each step that one made: `TMUL mul_1, x, x  # k.py:6`."""
    return "\n".join(text if span is None or not span.line else f"{text:{_COMMENT_COLUMN}}  # {span.short}"
                     for text, span in _lines(program))


_Line: TypeAlias = "tuple[str, Span | None]"


def _lines(program: tp.TileProgram) -> Iterator[_Line]:
    """Yield the lines of a program, each with the span of the step that begins there."""
    params = ", ".join(print_param(param) for param in program.params)
    yield f"{program.core.value} program {program.name}({params}):", None
    buffer_width = max((len(buffer.name) for buffer in program.buffers), default=0)
    tile_width = max((len(tile.name) for tile in program.tiles), default=0)
    yield from ((_INDENT + _buffer(buffer, buffer_width), None) for buffer in program.buffers)
    yield from ((f"{_INDENT}{tile.name:{tile_width}} = {_tile(program, tile)}", None) for tile in program.tiles)
    yield from _inside(program, program.body)


def _buffer(buffer: tp.ChipBuffer, width: int) -> str:
    copies = f" x {buffer.copies}" if buffer.copies != 1 else ""
    place = "" if buffer.address is None else f" at {buffer.address:#x}"
    return f"buffer {buffer.name:{width}} {buffer.space.value:3} {buffer.size_bytes:7} bytes{copies}{place}"


def _tile(program: tp.TileProgram, tile: tp.TileView) -> str:
    whole = (tile.valid_rows, tile.valid_cols) == (Const(tile.rows), Const(tile.cols))
    valid = "" if whole else f", valid {print_scalar(tile.valid_rows)} x {print_scalar(tile.valid_cols)}"
    offset = f" + {tile.offset}" if tile.offset else ""
    return f"{tile.dtype} {tile.rows}x{tile.cols} {tile.form.value} in {program.buffer(tile.buffer).name}{offset}{valid}"


def _body(program: tp.TileProgram, body: tuple[tp.Step, ...]) -> Iterator[_Line]:
    for step in body:
        span = None if isinstance(step, tp.SetFlag | tp.WaitFlag | tp.Barrier | tp.BindTile) else step.span
        for line in _step(program, step):
            yield (line, span) if isinstance(line, str) else line


def _step(program: tp.TileProgram, step: tp.Step) -> Iterator[str | _Line]:
    def name(tile: int) -> str:
        return program.tile(tile).name

    match step:
        case tp.BindTile(tile, iteration, shift):
            if (iteration, shift) != (Const(0), Const(0)):   # a plain declaration adds no information
                copy = "" if iteration == Const(0) else f", copy {print_scalar(iteration)}"
                further = "" if shift == Const(0) else f", {print_scalar(shift)} bytes further"
                yield f"declare {name(tile)}{copy}{further}"
        case tp.GmLoad(tile, param, row, col, turned):
            yield f"load {name(tile)} <- {param}{_at(row, col)}{', turned' if turned else ''}"
        case tp.GmStore(param, tile, row, col, turned):
            yield f"store {param}{_at(row, col)} <- {name(tile)}{', turned' if turned else ''}"
        case tp.Instr(instruction, args, template):
            kind = f"<{', '.join(template)}>" if template else ""
            yield f"{instruction}{kind} {', '.join(_arg(program, arg) for arg in args)}"
        case tp.Let(var, value):
            yield f"let {var.name} = {print_scalar(value)}"
        case tp.Peek(var, tile, index):
            yield f"let {var.name} = {name(tile)}[{print_scalar(index)}]"
        case tp.GmPeek(var, param, row, col):
            yield f"let {var.name} = {param}{_at(row, col)}"
        case tp.SetFlag(after, before, event):
            yield f"set {after.name} -> {before.name}, event {print_scalar(event)}"
        case tp.WaitFlag(after, before, event):
            yield f"wait {after.name} -> {before.name}, event {print_scalar(event)}"
        case tp.Barrier(pipe):
            yield f"barrier {pipe.name}"
        case tp.For(var, start, stop, by, body):
            yield f"for {var.name} in range({', '.join(print_scalar(bound) for bound in (start, stop, by))}):"
            yield from _inside(program, body)
        case tp.If(condition, then, other):
            yield f"when {print_scalar(condition)}:"
            yield from _inside(program, then)
            if other:
                yield "otherwise:"
                yield from _inside(program, other)
        case tp.Leave(condition):
            yield f"leave when {print_scalar(condition)}"
        case _:
            assert_never(step)


def _inside(program: tp.TileProgram, body: tuple[tp.Step, ...]) -> Iterator[_Line]:
    lines = [(_INDENT + line, span) for line, span in _body(program, body)]
    return iter(lines or [(f"{_INDENT}(nothing)", None)])


def _arg(program: tp.TileProgram, arg: tp.Arg) -> str:
    match arg:
        case tp.TileArg(tile, access):
            return ("&" if access is tp.Access.BOTH else "") + program.tile(tile).name
        case tp.NumberArg(value):
            return print_scalar(value)
        case tp.Word(text):
            return text
        case _:
            assert_never(arg)


def _at(row: Scalar, col: Scalar) -> str:
    return f"[{print_scalar(row)}, {print_scalar(col)}]"

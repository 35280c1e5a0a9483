"""Emit a tile program as a `.pto` file: one function in the MLIR dialect for tiles.

    %a_view = pto.make_tensor_view %a, shape = [%c32, %c256], strides = [%c256, %c1] : !pto.tensor_view<?x?xf32> loc("m.py":9:5)
    %a_part = pto.partition_view %a_view, offsets = [%c0, %k], sizes = [%c32, %c128] : !pto.tensor_view<?x?xf32> -> …
    pto.tload ins(%a_part : …) outs(%a_l1 : …) loc("m.py":9:5)
    pto.tmatmul ins(%left, %right : …, …) outs(%acc : …) loc("m.py":12:9)

The assembler of the text plans memory and orders pipes, so addresses, copies, flags and barriers are left out. The function takes a pointer
for each memory parameter, followed by the extents and steps that the kernel reads at run time, and the scalar parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn, assert_never

from pto_wsp.arch.model import Arch
from pto_wsp.c.syntax import c_ident
from pto_wsp.errors import DialectError, InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import ScalarParamDecl
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.npu.emit.kernel_cpp import geometry
from pto_wsp.npu.emit.mlir_text import Scalars, Text, element, location, part_type, tile_type, view_type
from pto_wsp.npu.emit.mlir_views import part_views
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.instructions import find_instruction
from pto_wsp.source import UNKNOWN, Span

_WORDS = {"RoundMode": "rmode = #pto<round_mode {}>", "CmpMode": "cmpMode = #pto<cmp {}>",
          "MaskPattern": "maskPattern = #pto.mask_pattern<{}>"}
_INDEXED = frozenset({"row", "col"})       # operands that count rows or columns of a tile


def emit_pto(program: tp.TileProgram, arch: Arch) -> str:
    """Return the `.pto` text of a tile program.

    Raises: N105 at the line of a step without a form in the dialect.
    """
    return _FunctionEmitter(part_views(replace(program, body=_work(program.body))), arch).text()


def _work(body: tuple[tp.Step, ...]) -> tuple[tp.Step, ...]:
    """Return the steps without flags and barriers, and without loops and branches that are empty then."""
    kept: list[tp.Step] = []
    for step in body:
        match step:
            case tp.SetFlag() | tp.WaitFlag() | tp.Barrier():
                continue
            case tp.For():
                step = replace(step, body=_work(step.body))
                if step.body:
                    kept.append(step)
            case tp.If():
                step = replace(step, then=_work(step.then), other=_work(step.other))
                if step.then or step.other:
                    kept.append(step)
            case _:
                kept.append(step)
    return tuple(kept)


class _FunctionEmitter:
    """Writes one function."""

    def __init__(self, program: tp.TileProgram, arch: Arch) -> None:
        self.program, self.arch = program, arch
        names = Names()
        self.head, self.body = Text(program.span, 2, names), Text(program.span, 2, names)
        self.tiles = {tile.id: tile for tile in program.tiles}
        self.scalars = Scalars(self.head, self.body, self._leaf)
        self.dtypes = {p.name: p.dtype for p in program.params}
        memory = [p.name for p in program.params if not isinstance(p, ScalarParamDecl)]
        self.access = dict(zip(memory, program.access, strict=True))
        self.names = {p.name: self.head.fresh(p.name) for p in program.params}
        self.vars: dict[s.Var, str] = {}
        self.numbers: dict[str, str] = {}                     # scalar parameters in the type that operations take
        self.asked: dict[tuple[str, str], str] = {}           # extents and steps of parameters, passed as arguments
        self.views: dict[tuple[str, bool, bool], str] = {}    # by parameter, turned, by columns
        self.made: list[dict[int, str]] = [{}]                # tiles by block

    def text(self) -> str:
        """Return the whole file."""
        for step in tp.steps(self.program.body):
            for use in tp.uses_of(step):
                tile = self.tiles[use.tile]
                if tile.id not in self.made[0] and isinstance(tile.valid_rows, s.Const) and isinstance(tile.valid_cols, s.Const):
                    self.made[0][tile.id] = self.head.value(tile.name, f"pto.alloc_tile : {self._type(tile.id, step.span)}", step.span)
        self._block(self.program.body, outermost=True)
        kind, where = self.program.core.value, location(self.program.span)
        lines = [f'module attributes {{pto.target_arch = "{self.arch.family}"}} {{',
                 f"  func.func @{c_ident(self.program.name)}({', '.join(self._arguments())}) attributes "
                 f"{{pto.kernel_kind = #pto.kernel_kind<{kind}>}} {{",
                 *self.head.lines, *self.body.lines, f"    return {where}", f"  }} {where}", f"}} {where}"]
        return "\n".join(lines) + "\n"

    def _arguments(self) -> Iterator[str]:
        for param in self.program.params:
            if isinstance(param, ScalarParamDecl):
                yield f"{self.names[param.name]}: {'f32' if param.dtype.is_float else 'i64'}"
                continue
            yield f"{self.names[param.name]}: !pto.ptr<{self._element(param.name, param.span)}>"
            asked = sorted(what for owner, what in self.asked if owner == param.name)
            yield from (f"{self.asked[param.name, what]}: index" for what in asked)

    # -- steps

    def _block(self, body: tuple[tp.Step, ...], *, outermost: bool = False) -> None:
        """Append steps. Steps after an early return become the body of a branch."""
        for at, step in enumerate(body):
            if isinstance(step, tp.Leave) and outermost:
                stays = self.scalars.condition(s.unary(s.Op.NOT, step.condition), step.span)
                with self.body.region(f"scf.if {stays}", step.span):
                    self._inside(body[at + 1:], outermost=True)
                return
            self._step(step)

    def _inside(self, body: tuple[tp.Step, ...], *, outermost: bool = False) -> None:
        self.made.append({})
        kept = dict(self.views)
        self._block(body, outermost=outermost)
        self.views = kept
        self.made.pop()

    def _step(self, step: tp.Step) -> None:
        match step:
            case tp.BindTile(tile):
                self._tile(tile, step.span)
            case tp.GmLoad(tile):
                moved, held = self._part(step), f"{self._tile(tile, step.span)} : {self._type(tile, step.span)}"
                self.body.op(f"pto.tload ins({moved}) outs({held})", step.span)
            case tp.GmStore(_, tile):
                moved, held = self._part(step), f"{self._tile(tile, step.span)} : {self._type(tile, step.span)}"
                self.body.op(f"pto.tstore ins({held}) outs({moved})", step.span)
            case tp.Instr():
                self._instruction(step)
            case tp.Let(var, value):
                wanted = s.scalar_dtype(value)
                self.vars[var] = self.scalars.condition(value, step.span) if wanted.is_bool else (
                    self.scalars.index(value, step.span) if wanted is DType.I64 else self.scalars.number(value, DType.F32, step.span)[0])
            case tp.For(var, start, stop, by, body):
                bounds = [self.scalars.index(bound, step.span) for bound in (start, stop, by)]
                self.vars[var] = self.body.fresh(var.name)
                with self.body.region(f"scf.for {self.vars[var]} = {bounds[0]} to {bounds[1]} step {bounds[2]}", step.span):
                    self._inside(body)
            case tp.If(condition, then, other):
                with self.body.region(f"scf.if {self.scalars.condition(condition, step.span)}", step.span):
                    self._inside(then)
                    if other:
                        self.body.otherwise()
                        self._inside(other)
            case tp.Peek() | tp.GmPeek():
                self._refuse("a number read from memory by the kernel", step.span)
            case tp.SetFlag() | tp.WaitFlag() | tp.Barrier():
                raise InternalError("a flag in a program for .pto", self.program.name)
            case tp.Leave():
                raise InternalError("the end of a kernel in a branch", self.program.name)
            case _:
                assert_never(step)

    def _instruction(self, step: tp.Instr) -> None:
        """Append `pto.name ins(…) outs(…)`: a tile that is only written is an output, and an accumulator both."""
        ins: list[tuple[str, str]] = []
        outs: list[tuple[str, str]] = []
        words = [*step.template]
        operands = find_instruction(step.name).form(len(step.args)) or ()
        for at, arg in enumerate(step.args):
            match arg:
                case tp.TileArg(tile, access):
                    operand = self._tile(tile, step.span), self._type(tile, step.span)
                    if access is tp.Access.WRITE or (access is tp.Access.BOTH and at == 0):
                        outs.append(operand)
                    if access is not tp.Access.WRITE:
                        ins.append(operand)
                case tp.NumberArg(value, dtype):
                    counts = at < len(operands) and operands[at].name in _INDEXED
                    ins.append((self.scalars.index(value, step.span), "index") if counts else self.scalars.number(value, dtype, step.span))
                case tp.Word(text):
                    words.append(text)
                case _:
                    assert_never(arg)
        attributes = [self._word(word, step.span) for word in words]
        given = f" {{{', '.join(attributes)}}}" if attributes else ""
        mnemonic = step.name.lower().replace("tmatmul_acc", "tmatmul.acc")
        reads = f" ins({', '.join(name for name, _ in ins)}{given} : {', '.join(kind for _, kind in ins)})" if ins else given
        writes = f" outs({', '.join(name for name, _ in outs)} : {', '.join(kind for _, kind in outs)})"
        self.body.op(f"pto.{mnemonic}{reads}{writes}", step.span)

    def _word(self, text: str, span: Span) -> str:
        kind, _, member = text.rpartition("::")
        attribute = _WORDS.get(kind.rpartition("::")[2])
        if attribute is None:
            self._refuse(f"`{text}`", span)
        return attribute.format(member.lower() if kind.endswith("CmpMode") else member)

    # -- tiles and global memory

    def _tile(self, tile_id: int, span: Span) -> str:
        for block in reversed(self.made):
            if tile_id in block:
                return block[tile_id]
        tile = self.tiles[tile_id]
        extents = (("valid_row", tile.valid_rows), ("valid_col", tile.valid_cols))
        given = [f"{word} = {self.scalars.index(valid, span)}" for word, valid in extents if not isinstance(valid, s.Const)]
        self.made[-1][tile_id] = self.body.value(tile.name, f"pto.alloc_tile {' '.join(given)} : {self._type(tile_id, span)}", span)
        return self.made[-1][tile_id]

    def _type(self, tile_id: int, span: Span) -> str:
        if element(self.tiles[tile_id].dtype) is None:
            self._refuse(f"a tile of {self.tiles[tile_id].dtype}", span)
        return tile_type(self.tiles[tile_id], self.arch)

    def _part(self, step: tp.GmLoad | tp.GmStore) -> str:
        """Return the part of a parameter that moves, with its type."""
        tile, param, span = self.tiles[step.tile], step.param, step.span
        by_columns = geometry(tile, self.access[param], step.turned).by_columns
        view = self._view(param, span, turned=step.turned, by_columns=by_columns)
        offsets = [self.scalars.index(at, span) for at in ((step.col, step.row) if step.turned else (step.row, step.col))]
        sizes = [self.scalars.index(size, span) for size in (tile.valid_rows, tile.valid_cols)]
        kind = part_type(tile, self.dtypes[param])
        part = self.body.value(f"{param}_part", f"pto.partition_view {view}, offsets = [{', '.join(offsets)}], "
                               f"sizes = [{', '.join(sizes)}] : {view_type(self.dtypes[param])} -> {kind}", span)
        return f"{part} : {kind}"

    def _view(self, param: str, span: Span, *, turned: bool, by_columns: bool) -> str:
        """Return a parameter as a view of rows and columns, exchanged if `turned`."""
        key = param, turned, by_columns
        if key not in self.views:
            shape, strides = [self._extent(param, dim) for dim in (0, 1)], [self._stride(param, dim) for dim in (0, 1)]
            if turned:
                shape, strides = shape[::-1], strides[::-1]
            layout = " {layout = #pto.layout<dn>}" if by_columns else ""
            self.views[key] = self.body.value(
                f"{param}_view", f"pto.make_tensor_view {self.names[param]}, shape = [{', '.join(shape)}], "
                f"strides = [{', '.join(strides)}]{layout} : {view_type(self.dtypes[param])}", span)
        return self.views[key]

    def _extent(self, param: str, dim: int) -> str:
        access = self.access[param]
        known = ((access.rows, access.cols)[dim], (access.row_dim, access.col_dim)[dim])
        if known[0] is not None or known[1] is None:
            return self.scalars.constant(1 if known[0] is None else known[0])
        return self._argument(param, ("rows", "cols")[dim])

    def _stride(self, param: str, dim: int) -> str:
        access = self.access[param]
        if (access.unit_rows, access.unit_cols)[dim] or (access.row_dim, access.col_dim)[dim] is None:
            return self.scalars.constant(1)
        return self._argument(param, ("row_step", "col_step")[dim])

    def _argument(self, param: str, what: str) -> str:
        if (param, what) not in self.asked:
            self.asked[param, what] = self.head.fresh(f"{param}_{what}")
        return self.asked[param, what]

    # -- scalars

    def _leaf(self, node: s.Scalar) -> str:
        match node:
            case s.Var():
                return self.vars[node]
            case s.ParamExtent(name, dim):
                return self._extent(name, dim)
            case s.ParamScalar(name, dtype):
                if name not in self.numbers:
                    given = self.names[name]
                    self.numbers[name] = given if dtype.is_float else self.head.value(
                        f"{name}_value", f"arith.index_cast {given} : i64 to index", UNKNOWN)
                    if dtype.is_bool:
                        self.numbers[name] = self.head.value(f"{name}_holds", f"arith.trunci {given} : i64 to i1", UNKNOWN)
                return self.numbers[name]
            case _:
                raise InternalError(f"{print_scalar(node)} in a tile program", self.program.name)

    def _element(self, param: str, span: Span) -> str:
        element_type = element(self.dtypes[param])
        if element_type is None:
            self._refuse(f"a parameter of {self.dtypes[param]}", span)
        return element_type

    def _refuse(self, what: str, span: Span) -> NoReturn:
        raise DialectError(f"kernel `{self.program.name}`: {what} has no form in .pto", span if span.line else self.program.span,
                           expected="what the dialect's page shows", help="compile for ascend_npu, which emits C++")

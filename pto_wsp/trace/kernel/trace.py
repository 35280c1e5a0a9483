"""Hold the trace of one kernel: the statements of its body so far, as kernel IR.

Tile values are in SSA form; a value made inside a loop is not available after it. An In parameter is loaded once, at the start of the
kernel, so that its value is available everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Signature
from typing import Any

import numpy as np

from pto_wsp.errors import (
    BufferMisuseError,
    ConditionError,
    EscapedValueError,
    InstructionError,
    LeadingAxesError,
    LoopVariableError,
    MixedDTypeError,
    NumberError,
    OperandKindError,
    OperandShapeError,
    OutsideTraceError,
    UnsupportedDTypeError,
    ValueUseError,
    ViewBoundsError,
    unreachable,
)
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic, as_scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entries.create import expand, iota
from pto_wsp.ops.entries.index import gather
from pto_wsp.ops.entries.movement import slice_
from pto_wsp.ops.entry import Attrs, Operand, active
from pto_wsp.ops.rounding import COMPUTED, print_dtypes
from pto_wsp.ops.slices import WHOLE
from pto_wsp.ops.spec import Elementwise
from pto_wsp.ops.table import find
from pto_wsp.source import here, user_frame
from pto_wsp.trace.bytecode import assigned_name
from pto_wsp.trace.kernel.blocks import Blocks, check_buffers_change
from pto_wsp.trace.kernel.parts_of_tiles import part_of
from pto_wsp.trace.kernel.stack import TileStack
from pto_wsp.trace.kernel.stack_ops import spread, stack_tiles
from pto_wsp.trace.kernel.tile_value import BufferRef, TensorParamRef, TileOperators, TileParamRef, TileValue, is_tile
from pto_wsp.wording import form_elsewhere

_ZERO = s.Const(0)
_HELP_ITEM = "an element as a scalar: pto.item(x, row, col)"
_HELP_INDEX = "a row and a column are both needed"


class KernelTrace:
    """Collects the statements of one kernel while its body runs."""

    def __init__(self, name: str, params: Collection[str] = (), *, instructions: bool = False) -> None:
        self.name = name
        self._instructions_only = instructions
        self._in_instruction = False
        self.params = frozenset(params)
        self.blocks = Blocks()
        self.stored: set[str] = set()
        self._hoisted: list[k.Stmt] = []
        self._loads: dict[str, TileValue] = {}
        self._n_values = 0
        self._n_buffers = 0
        self._n_prints = 0
        self._items: dict[s.ItemRef, int] = {}      # by the id of the body in which they were read

    # -- ops -----------------------------------------------------------------------------------------------------------

    def emit(self, op: str, operands: tuple[object, ...], attrs: Attrs) -> Operand:
        """Append an op of the table on tiles and numbers; return its result.

        Raises: K111 for an op outside an instruction, in a kernel of instructions.
        """
        if self._instructions_only and not self._in_instruction:
            npu = find(op).npu
            raise InstructionError(f"`pto.{op}` makes a value without a destination, in a kernel of instructions", here(),
                                   expected="an instruction that writes a declared tile",
                                   help=None if npu is None else f"ptoisa.{npu}(dst, ...)")
        entry = find(op)
        values = [self.read(operand).value if is_tile(operand) else operand for operand in operands]
        types_of_tiles = [v.type if isinstance(v, k.Value) else None for v in values]
        if isinstance(entry, Elementwise) and entry.mask_first and isinstance(values[0], k.Value) and not any(types_of_tiles[1:]):
            values[1:] = self._filled(values[1:])        # a mask that selects between two numbers
            types_of_tiles = [v.type if isinstance(v, k.Value) else None for v in values]
        ready: list[k.Operand] = []
        for position, value in enumerate(values):
            ready.append(value if isinstance(value, k.Value)
                         else self._weak(op, value, entry.weak_dtype(position, types_of_tiles, attrs)))
        types = [o.type if isinstance(o, k.Value) else TileType(1, 1, o.dtype) for o in ready]
        result = self.fresh(entry.infer(types, attrs))
        self.append(k.Compute(result.value, op, tuple(ready), attrs, here()))
        return result

    def spread(self, name: str, function: Callable[..., Any], expected: Signature, args: tuple[object, ...],
               kwargs: Mapping[str, object]) -> Any:
        """Return what a function gives for tiles of rank 3 and more: see `stack_ops`."""
        return spread(name, function, expected, args, kwargs)

    def stack(self, tiles: object, axis: object) -> TileStack:
        """Return tiles of one type as a tile of one rank more."""
        return stack_tiles(tiles, axis)

    def _filled(self, numbers: Sequence[object]) -> list[object]:
        """Return the two numbers that a mask selects between, the first as a tile: I32, F32 if one is a float, or BOOL.

        Raises: T210 for a scalar of the kernel, whose width is not known where no tile says it.
        """
        kinds = {bool if isinstance(n, bool | np.bool_) else int if isinstance(n, int | np.integer) else float for n in numbers
                 if isinstance(n, bool | int | float | np.generic)}
        if any(isinstance(n, Symbolic) for n in numbers) or not kinds:
            raise ConditionError("`pto.where` chooses between two scalars: nothing says of which dtype", here(),
                                 expected="a tile, or Python numbers", found=", ".join(_print(n) for n in numbers),
                                 help="say it: pto.where(mask, pto.full((1, 1), a, dtype), b)")
        dtype = DType.F32 if float in kinds else DType.I32 if int in kinds else DType.BOOL
        first = weak_number("`pto.where`", self.number("`pto.where`", numbers[0]), dtype)
        tile = self.emit(expand.name, (Symbolic(first),), (("shape", (1, 1)), ("dtype", dtype)))
        return [self.read(tile).value, *numbers[1:]]

    def _weak(self, op: str, value: object, dtype: DType | None) -> k.ScalarOperand:
        """Return a number or scalar as an operand with the dtype of the tile it meets."""
        node = self.number(f"`pto.{op}`", value)
        if dtype is None:
            raise OperandKindError(f"`pto.{op}` takes a tile here", here(), expected="a tile of this kernel",
                                   found=_print(value),
                                   help="make a tile of a number with pto.full(shape, value, dtype); scalars alone take "
                                        "Python's operators")
        return k.ScalarOperand(weak_number(f"`pto.{op}`", node, dtype), dtype)

    def number(self, where: str, value: object) -> s.Scalar:
        """Return a Python number or a scalar of this kernel as a node.

        Raises: T213 for anything else, T206 for a scalar of another kernel or of the workload, W103 for the variable of a loop
        that has ended.
        """
        if isinstance(value, TensorParamRef):
            raise OperandKindError(f"{where}: `{value.param.name}` is a Tensor, not a tile", here(),
                                   expected="a tile or a number",
                                   found=repr(value),
                                   help=f"load a piece: pto.load({value.param.name}, (row, col), shape=(r, c))")
        if isinstance(value, np.ndarray) and value.ndim:
            raise OperandKindError(f"{where}: a NumPy array is no tile", here(), expected="a tile of this kernel or a number",
                                   found=f"an array of shape {value.shape}", help="pass it as an In parameter of the kernel")
        if not isinstance(value, Symbolic | int | float | np.generic | np.ndarray):
            raise OperandKindError(f"{where}: a value that a kernel does not know", here(),
                                   expected="a tile of this kernel, a "
                                   "number, or a scalar of this kernel", found=_print(value))
        node = as_scalar(value)
        if isinstance(value, Symbolic) and any(isinstance(held, KernelTrace) and held is not self for held in value.holds):
            raise EscapedValueError(f"{where}: `{print_scalar(node)}` belongs to another kernel", here(),
                                    help="pass it through a parameter")
        self._check_scalar(node)
        return node

    def whole(self, where: str, value: object) -> s.Scalar:
        """Return an integer or an integer scalar of this kernel as a node, for offsets, extents and bounds.

        Raises: T205 for any other value, W103 for the variable of a loop that has ended.
        """
        if is_tile(value) or isinstance(value, TensorParamRef | bool | str | list | tuple | None):
            raise NumberError(f"{where}: not a whole number", here(), expected="a number or integer scalar",
                              found=_print(value), help=_HELP_ITEM if is_tile(value) else _HELP_INDEX if value is None else None)
        node = self.number(where, value)
        if not s.scalar_dtype(node).is_integer:
            raise NumberError(f"{where}: not a whole number", here(), expected="a number or integer scalar",
                              found=print_scalar(node))
        return node

    def _check_scalar(self, node: s.Scalar) -> None:
        open_vars = self.blocks.open_vars
        for leaf in s.leaves(node):
            match leaf:
                case s.ParamScalar(name) | s.ParamExtent(name) if name in self.params:
                    pass
                case s.ParamScalar(name) | s.ParamExtent(name):
                    raise ValueUseError(f"`{name}` is a parameter of another kernel", here(),
                                        help="give this kernel a parameter of its own and pass it there")
                case s.ItemRef():
                    self._check_item(leaf)
                case s.Var():
                    if leaf not in open_vars:
                        raise LoopVariableError(f"`{leaf.name}` is used where its loop does not run", here(),
                                                help="move the use into the loop")
                case _:
                    raise ValueUseError(f"`{print_scalar(leaf)}` is a scalar of the workload, not of the kernel", here(),
                                        help="give the kernel a Scalar[dtype] parameter and pass it there")

    def _check_item(self, item: s.ItemRef) -> None:
        """Check that the body in which an item was read is open.

        Raises: K104 otherwise.
        """
        block = self._items.get(item)
        if block is None or not self.blocks.is_open(block):
            kind = "kernel" if block is None else self.blocks.kind(block)
            raise EscapedValueError(f"the item `{item.name}` was read inside a {kind} that has ended", here(),
                                    help=f"keep the element in a [1, 1] buffer made before the {kind}, and read the item after it")

    def item(self, tile: TileValue, row: s.Scalar, col: s.Scalar, name: str = "") -> Symbolic:
        """Append the read of an element of a tile as a scalar; return the scalar. `name`: "" for the variable it is assigned to."""
        number = len(self._items)
        item = s.ItemRef(name or assigned_name(user_frame()) or f"item_{number}", number, tile.dtype)
        self._items[item] = self.blocks.innermost.id
        self.append(k.Item(item, tile.value, row, col, span=here()))
        return Symbolic(item, (self,))

    def element(self, tile: Operand | TileOperators, row: object, col: object) -> Symbolic:
        """Append the read of an element of a tile as a scalar, as `pto.item` does; return the scalar.

        Raises: T204, T209, T301 for what does not fit.
        """
        if tile.dtype not in COMPUTED:
            raise UnsupportedDTypeError("`pto.item`: the tile's elements are only moved, not computed on", here(),
                                        expected=print_dtypes(COMPUTED), found=repr(tile), help="convert it: pto.cast(x, DType.F32)")
        rows, cols = tile.shape
        if row is None and col is None and rows * cols == 1:
            row, col = 0, 0
        elif col is None and row is not None and 1 in (rows, cols):
            row, col = (0, row) if rows == 1 else (row, 0)
        at = self._index("row", row, rows), self._index("column", col, cols)
        return self.item(self.read(tile), *at)

    def _index(self, what: str, value: object, extent: int) -> s.Scalar:
        """Return an index into a tile as a scalar; a negative constant counts from the end."""
        node = self.whole(f"`pto.item`: the {what}", value)
        if not isinstance(node, s.Const):
            return node
        index = int(node.value)
        if not -extent <= index < extent:
            raise ViewBoundsError(f"the tile has no {what} {index}", here(), expected=f"{-extent} .. {extent - 1}", found=str(index))
        return s.Const(index % extent)

    @contextmanager
    def instruction(self) -> Iterator[None]:
        """Allow ops for the duration of a `with` block: those of one instruction."""
        self._in_instruction = True
        try:
            yield
        finally:
            self._in_instruction = False

    # -- state ---------------------------------------------------------------------------------------------------------

    def append(self, stmt: k.Stmt) -> None:
        """Append a statement to the body being written."""
        self.blocks.append(stmt)

    def read(self, tile: Operand | TileOperators) -> TileValue:
        """Return the current value of a tile; a buffer is read, a parameter is loaded.

        Raises: K104 for a tile of another kernel or an ended body, K106 for a buffer or parameter not certainly written.
        """
        match tile:
            case TileValue():
                self._check_reach(tile, f"a tile value {tile.type!r}")
                return tile
            case BufferRef(buffer=buffer):
                self._check_reach(tile, f"buffer `{buffer.name}`")
                self._check_written(f"#{buffer.id}", f"buffer `{buffer.name}`", "give it an init, e.g. pto.alloc(..., init=0)")
                result = self.fresh(buffer.type)
                self.append(k.Read(result.value, buffer, here()))
                return result
            case TileParamRef(param=param):
                return self._load_param(param)
            case _:
                unreachable(f"tile {tile!r}")

    def _load_param(self, param: k.TileParam) -> TileValue:
        if param.role is k.Role.IN:
            if param.name not in self._loads:
                value = k.Value(self._next_value(), param.type)
                self._hoisted.append(k.Load(value, param.name, _ZERO, _ZERO, fill=zero_of(param.type.dtype), span=here()))
                self._loads[param.name] = TileValue(self, value, 0)
            return self._loads[param.name]
        self.check_readable(param)
        result = self.fresh(param.type)
        self.append(k.Load(result.value, param.name, _ZERO, _ZERO, fill=zero_of(param.type.dtype), span=here()))
        return result

    def check_readable(self, param: k.TileParam) -> None:
        """Check that a parameter that is read is not Acc and, if Out, was completely stored before.

        Raises: K106 otherwise.
        """
        if param.role is k.Role.OUT and param.combine:
            raise BufferMisuseError(f"Acc parameter `{param.name}` is read", here(), expected="one pto.store of what the task adds",
                                    found=f"declared at {param.span}",
                                    help="the task has only its own part: sum it up in a buffer (pto.alloc), or declare "
                                         f"{param.name} InOut and order the tasks with P.seq")
        if param.role is k.Role.OUT:
            self._check_written(param.name, f"Out parameter `{param.name}`",
                                f"store all of it first, or declare it {param.name}: InOut[...] to read what it held")

    def _check_written(self, key: str, what: str, help: str) -> None:
        if key not in self.blocks.innermost.written:
            raise BufferMisuseError(f"{what} is read before it is certainly written", here(), help=help)

    def _check_reach(self, tile: TileValue | BufferRef, what: str) -> None:
        if tile.trace is not self:
            raise EscapedValueError(f"{what} belongs to another kernel", here(), help="pass it through a parameter")
        if not self.blocks.is_open(tile.block):
            kind = self.blocks.kind(tile.block)
            made = self.blocks.made_at(tile.value) if isinstance(tile, TileValue) else None
            raise EscapedValueError(f"{what} was made inside a {kind} that has ended", here(),
                                    notes=() if made is None else (f"it was made at {made}",),
                                    help=f"keep state in a buffer: acc = pto.alloc(shape, dtype, init=0) before the {kind}, "
                                         "acc[:] = value in it")

    def assign(self, target: BufferRef | TileParamRef, value: object) -> None:
        """Write `value`, broadcast, to the whole of a buffer or parameter."""
        if isinstance(target, TileParamRef):
            self.store_whole(target.param, value)
            return
        self._check_reach(target, f"buffer `{target.buffer.name}`")
        written = self.fitted(f"buffer `{target.buffer.name}`", value, target.buffer.type)
        self.append(k.Write(target.buffer, written.value, here()))
        self.blocks.innermost.written.add(f"#{target.buffer.id}")

    def assign_part(self, target: BufferRef | TileParamRef, item: object, value: object) -> None:
        """Write `value`, broadcast, to the part of a buffer or parameter that the brackets select.

        Raises: T301, T302 for what is no part; T209 for a part of a parameter that starts where only the run tells; as `assign`.
        """
        if isinstance(target, TileParamRef):
            self.check_writable(target.param)
        what = f"buffer `{target.buffer.name}`" if isinstance(target, BufferRef) else f"parameter `{target.param.name}`"
        at, (rows, cols) = part_of(what, item, target.shape, self.whole)
        if target.shape == (rows, cols) and at == (_ZERO, _ZERO):
            self.assign(target, value)
            return
        fixed = all(isinstance(start, s.Const) for start in at)
        if isinstance(target, TileParamRef) and not fixed:
            raise NumberError(f"{what}: a part of a Tile parameter starts where the trace knows it", here(), expected="whole numbers",
                              found=", ".join(map(print_scalar, at)),
                              help="write the part of a buffer, b = pto.alloc(shape, dtype, init=0), and store the buffer")
        written = self.fitted(what, value, TileType(rows, cols, target.dtype))
        if isinstance(target, BufferRef):
            self.write_part(target, tuple(map(Symbolic, at)), written)
        else:
            self.append(k.Store(target.param.name, written.value, *at, span=here()))
            self.stored.add(target.param.name)

    def read_part(self, tile: Operand | TileOperators, item: object) -> Operand:
        """Return the part of a tile that the brackets select, of which a start is known only when the kernel runs."""
        at, extents = part_of("a tile", item, tile.shape, self.whole)
        part: Operand = self.read(tile)
        for axis, (start, extent) in enumerate(zip(at, extents, strict=True)):
            if isinstance(start, s.Const):
                one = slice(int(start.value), int(start.value) + extent)
                part = slice_(part, *((one, WHOLE) if axis == 0 else (WHOLE, one)))
            else:
                places = iota((extent, 1) if axis == 0 else (1, extent), DType.I64, axis)
                part = gather(part, places + Symbolic(start), axis)
        return part

    def write_part(self, target: BufferRef, at: Sequence[object], tile: TileValue) -> None:
        """Append a write of `tile` to the part of a buffer that starts at `at` = (row, col).

        Raises: T203 for another dtype, T301 for a part that leaves the buffer.
        """
        buffer = target.buffer
        where = f"buffer `{buffer.name}`"
        self._check_reach(target, where)
        if tile.dtype is not buffer.type.dtype:
            raise MixedDTypeError(f"{where}: the value has another dtype", here(), expected=str(buffer.type.dtype), found=repr(tile.type),
                                  help=f"convert it: pto.cast(value, {buffer.type.dtype!r})")
        row, col = pair(self, f"{where}: the part", at)
        for what, start, size, extent in zip(("row", "column"), (row, col), tile.shape, buffer.type.shape, strict=True):
            if size > extent or (isinstance(start, s.Const) and not 0 <= int(start.value) <= extent - size):
                raise ViewBoundsError(f"{where}: the part leaves it", here(), expected=f"{what} 0 .. {extent - size}",
                                      found=f"{size} of {extent} {what}s from {print_scalar(start)}")
        self.append(k.WritePart(buffer, tile.value, row, col, span=here()))

    def store_whole(self, param: k.TileParam, value: object, valid: tuple[s.Scalar | None, s.Scalar | None] = (None,
                                                                                                               None)) -> None:
        """Store `value`, broadcast, to a Tile parameter."""
        self.check_writable(param)
        stored = self.fitted(f"parameter `{param.name}`", value, param.type)
        self.append(k.Store(param.name, stored.value, _ZERO, _ZERO, *valid, span=here()))
        self.stored.add(param.name)
        if valid == (None, None):
            self.blocks.innermost.written.add(param.name)

    def check_writable(self, param: k.MemoryParam) -> None:
        """Check that a parameter may be stored to.

        Raises: K106 for an In parameter.
        """
        if not param.role.writes:
            raise BufferMisuseError(f"parameter `{param.name}` is In: it cannot be stored to", here(), expected="Out or InOut",
                                    found=f"declared at {param.span}", help="declare it InOut, if the kernel may change it")

    def fitted(self, what: str, value: object, wanted: TileType) -> TileValue:
        """Return `value` as a tile of type `wanted`: numbers are converted to its dtype, smaller tiles broadcast.

        Raises: T202, T203 if the value does not fit.
        """
        if isinstance(value, TileStack):
            raise LeadingAxesError(f"{what}: the value has more axes", here(), expected=repr(wanted), found=repr(value.type),
                                    help="take one of its tiles: x[0]")
        if is_tile(value):
            tile = self.read(value)
            if tile.dtype is not wanted.dtype:
                raise MixedDTypeError(f"{what}: the value has another dtype", here(), expected=repr(wanted),
                                      found=repr(tile.type),
                                      help=f"convert it: pto.cast(value, {wanted.dtype!r})")
            if tile.shape == wanted.shape:
                return tile
            if tile.type.rows not in (1, wanted.rows) or tile.type.cols not in (1, wanted.cols):
                raise OperandShapeError(f"{what}: the value has another shape", here(), expected=repr(wanted),
                                        found=repr(tile.type))
            value = tile
        else:
            weak_number(what, self.number(what, value), wanted.dtype)
        attrs: Attrs = (("shape", wanted.shape), ("dtype", wanted.dtype))
        return self.read(self.emit(expand.name, (value,), attrs))

    # -- results -------------------------------------------------------------------------------------------------------

    def body(self) -> tuple[k.Stmt, ...]:
        """Return the statements of the whole kernel, loads of In parameters first.

        Raises: K103 if a loop was left by break or return, K106 for a buffer that a loop reads and nothing writes.
        """
        body = (*self._hoisted, *self.blocks.finish())
        check_buffers_change(body)
        return body

    def new_buffer(self, name: str, type: TileType, init: s.Number | None) -> BufferRef:
        """Append the allocation of a buffer; return the buffer."""
        buffer = k.Buffer(self._n_buffers, name, type)
        self._n_buffers += 1
        self.append(k.Alloc(buffer, init, here()))
        if init is not None:
            self.blocks.innermost.written.add(f"#{buffer.id}")
        return BufferRef(self, buffer, self.blocks.innermost.id)

    def next_print(self) -> int:
        """Return the number of the print about to be appended."""
        self._n_prints += 1
        return self._n_prints - 1

    def fresh(self, type: TileType) -> TileValue:
        """Return a new value for the statement about to be appended."""
        name = assigned_name(user_frame()) or ""
        return TileValue(self, k.Value(self._next_value(), type, name), self.blocks.innermost.id)

    def _next_value(self) -> int:
        self._n_values += 1
        return self._n_values - 1


def current_kernel(name: str) -> KernelTrace:
    """Return the trace of the running kernel, for a call of `pto.<name>`.

    Raises: K105 outside a kernel.
    """
    trace = active(name)
    if not isinstance(trace, KernelTrace):
        raise OutsideTraceError(f"`pto.{name}` was called in a function on tensors", here(), help=form_elsewhere(name) or
                                "such a function reads x[i:j], writes y[i:j] = v, keeps state in tt.zeros(shape) and returns its results")
    return trace


def zero_of(dtype: DType) -> s.Number:
    """Return 0 as a number of `dtype`."""
    return False if dtype.is_bool else 0 if dtype.is_integer else 0.0


def weak_number(where: str, node: s.Scalar, dtype: DType) -> s.Scalar:
    """Return a scalar as it meets a tile of `dtype`: constants become numbers of that class.

    Raises: T203 for a float with integers or a number with masks, T209 for a number that the dtype does not hold.
    """
    kind = s.scalar_dtype(node)
    if (dtype.is_integer and kind.is_float) or (dtype.is_bool and not kind.is_bool):
        what = "a float" if kind.is_float else "a number"
        help = "compare first, e.g. x > 0" if dtype.is_bool else "write a whole number, or pto.cast the tile to a float"
        raise MixedDTypeError(f"{where}: {what} meets a tile of {dtype}", here(), expected=f"a number that {dtype} holds",
                              found=print_scalar(node), help=help)
    if not isinstance(node, s.Const) or dtype.is_bool:
        return node
    value = node.value
    try:
        held = int(value) if dtype.is_integer else float(value)
    except OverflowError:
        held = None
    if held is None or not _holds(dtype, held):
        raise NumberError(f"{where}: {value} does not fit {dtype}", here(), expected=f"a number that {dtype} holds",
                          found=repr(value))
    return s.Const(held)


def _holds(dtype: DType, number: float | int) -> bool:
    """Tell whether a number fits: rounding is allowed, overflow to infinity is not."""
    if dtype.is_integer:
        return dtype.holds(int(number))
    with np.errstate(over="ignore"):
        return not math.isfinite(number) or bool(np.isfinite(np.asarray(number).astype(dtype.np)))


def constant(where: str, value: object, dtype: DType) -> s.Number:
    """Return a Python number as one of `dtype`, for a fill or an init.

    Raises: T209 when it is no number known now; else as `weak_number`.
    """
    if not isinstance(value, int | float | np.generic):
        raise NumberError(f"{where}: not a number", here(), expected="a number known when the kernel is traced",
                          found=_print(value))
    node = weak_number(where, as_scalar(value), dtype)
    return node.value if isinstance(node, s.Const) else unreachable("scalar")


def pair(trace: KernelTrace, where: str, value: Sequence[object] | object) -> tuple[s.Scalar, s.Scalar]:
    """Return (row, col) as scalars.

    Raises: T209 unless `value` is two whole numbers or integer scalars.
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise NumberError(f"{where}: not a pair", here(), expected="(rows, columns)", found=_print(value))
    return trace.whole(where, value[0]), trace.whole(where, value[1])


def _print(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__}: {text if len(text) <= 60 else text[:57] + '...'}"

"""Interpret kernels in NumPy: the reference meaning of a kernel.

>>> run_kernel(kernel, {"x": x, "y": y})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import NoReturn, TypeAlias, assert_never

import numpy as np

from pto_wsp.errors import unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import piece_of, valid_of, valid_rows_of
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ops.entries.matmul import matmul
from pto_wsp.ops.guards import guards_of
from pto_wsp.ops.rounding import Array, convert
from pto_wsp.ops.spec import evaluate
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import IndexFault, TileFunction
from pto_wsp.run.failures import Failure, PieceFault
from pto_wsp.run.finite import check_value
from pto_wsp.values import dataclass

Show: TypeAlias = Callable[[k.Print, Array], None]


class _GuardFailed(Exception):
    """Ends a run at a failed guard."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


def run_kernel(kernel: k.Kernel, args: Mapping[str, Array | s.Number]) -> int | None:
    """Run a kernel on its parameters by name; return the number of the failed guard (see `guards_of`), or None.

    Shapes: a Tile parameter takes a rank-2 array no larger than the tile, its valid part; a Tensor parameter a rank-2 array of any size.
    Results are written to the given arrays. Stores before a failed guard stay.
    """
    failed = failure_of(kernel, args)
    return None if failed is None else failed.guard


def failure_of(kernel: k.Kernel, args: Mapping[str, Array | s.Number], show: Show | None = None,
               tick: Callable[[], None] | None = None) -> Failure | None:
    """Run a kernel as `run_kernel` does; return the failed guard with its fault, or None.

    `show` is called for each print. `tick` is called in each loop iteration, and may raise.
    """
    run = _KernelRun(kernel, args, show, tick)
    try:
        run.body(kernel.body)
    except _GuardFailed as failed:
        return failed.failure
    return None


@dataclass(slots=True)
class _KernelRun:
    """One run of a kernel: arrays and numbers by name, values and buffers by id."""

    kernel: k.Kernel
    args: Mapping[str, Array | s.Number]
    show: Show | None = None
    tick: Callable[[], None] | None = None
    arrays: dict[str, Array] = field(init=False)
    numbers: dict[str, s.Number] = field(init=False)
    tensors: frozenset[str] = field(init=False)
    guards: dict[int, int] = field(init=False)
    values: dict[int, Array] = field(default_factory=dict)
    buffers: dict[int, Array] = field(default_factory=dict)
    variables: dict[s.Var, int] = field(default_factory=dict)
    items: dict[s.ItemRef, s.Number] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arrays = {p.name: _as_array(self.args[p.name]) for p in self.kernel.memory_params}
        self.numbers = {p.name: _round_number(self.args[p.name], p.dtype) for p in self.kernel.scalar_params}
        self.tensors = frozenset(p.name for p in self.kernel.params if isinstance(p, k.TensorParam))
        self.guards = {id(guard.stmt): number for number, guard in enumerate(guards_of(self.kernel))}

    def body(self, stmts: tuple[k.Stmt, ...]) -> None:
        """Run statements in order."""
        for stmt in stmts:
            self.statement(stmt)

    def statement(self, stmt: k.Stmt) -> None:
        """Run one statement."""
        match stmt:
            case k.Compute(result, op, operands, attrs):
                inputs = [self.operand(o) for o in operands]
                self.check_indices(stmt, inputs)
                self.values[result.id] = evaluate(find(op), inputs, result.type, attrs)
            case k.Load(result):
                self.values[result.id] = self.load(stmt)
            case k.Store():
                self.store(stmt)
            case k.Gather(result):
                self.values[result.id] = self.gather(stmt)
            case k.Scatter():
                self.scatter(stmt)
            case k.Alloc(buffer, init):
                self.buffers[buffer.id] = _fill_array(buffer.type.shape, 0 if init is None else init, buffer.type.dtype)
            case k.Read(result, buffer):
                self.values[result.id] = self.buffers[buffer.id]
            case k.Write(buffer, value):
                self.buffers[buffer.id] = self.values[value.id]
            case k.WritePart():
                self.write_part(stmt)
            case k.Accumulate(buffer, lhs, rhs, attrs):
                product = (self.values[lhs.id], self.values[rhs.id], self.buffers[buffer.id])
                self.buffers[buffer.id] = evaluate(matmul, product, buffer.type, attrs)
            case k.Item(item):
                self.items[item] = self.element(stmt)
            case k.Print(value=value):
                if self.show is not None:
                    rows, cols = map(self.whole, valid_of(stmt))
                    self.show(stmt, self.operand(value)[:rows, :cols])
            case k.FiniteCheck(number, value, _, sources):
                rows, cols = map(self.whole, valid_of(stmt))
                made_from = [(self.operand(source.operand), source.reach, isinstance(source.operand, k.ScalarOperand))
                             for source in sources]
                check_value(number, self.values[value.id], made_from, (rows, cols))
            case k.For(var, start, stop, step, body):
                for index in range(self.whole(start), self.whole(stop), self.whole(step)):
                    if self.tick is not None:
                        self.tick()
                    self.variables[var] = index
                    self.body(body)
            case k.Rows(_, body) | k.Columns(_, body):
                self.body(body)
            case k.If(condition, then, other):
                self.body(then if self.scalar(condition) else other)
            case _:
                assert_never(stmt)

    def check_indices(self, stmt: k.Compute, operands: Sequence[Array]) -> None:
        """Fail at the first index of an operation that is out of range."""
        entry = find(stmt.op)
        if isinstance(entry, TileFunction) and entry.fault is not None and entry.may_fail(stmt.attrs):
            fault = entry.fault(operands, stmt.attrs)
            if fault is not None:
                self.fail(stmt, fault)

    def fail(self, stmt: k.Guarded, fault: IndexFault | PieceFault | None = None) -> NoReturn:
        """End the run at a statement's guard: by the number that passes wrote into it, otherwise by its position."""
        raise _GuardFailed(Failure(self.guards[id(stmt)] if stmt.guard is None else stmt.guard, fault))

    def element(self, stmt: k.Item) -> s.Number:
        """Return an element of a tile as a number of its class; fails at the guard if it is outside."""
        tile, row, col = self.values[stmt.value.id], self.whole(stmt.row), self.whole(stmt.col)
        rows, cols = stmt.value.type.shape
        if not (0 <= row < rows and 0 <= col < cols):
            self.fail(stmt, PieceFault(row, col, rows - 1, cols - 1))
        element, dtype = tile[row, col], stmt.item.dtype
        return float(element) if dtype.is_real else bool(element) if dtype.is_bool else int(element)

    def write_part(self, stmt: k.WritePart) -> None:
        """Replace a part of a buffer; fails at the guard if the part is not inside."""
        row, col, (rows, cols) = self.whole(stmt.row), self.whole(stmt.col), stmt.value.type.shape
        last_row, last_col = stmt.buffer.type.rows - rows, stmt.buffer.type.cols - cols
        if not (0 <= row <= last_row and 0 <= col <= last_col):
            self.fail(stmt, PieceFault(row, col, last_row, last_col))
        changed = self.buffers[stmt.buffer.id].copy()     # values that were read share the buffer's array
        changed[row:row + rows, col:col + cols] = self.values[stmt.value.id]
        self.buffers[stmt.buffer.id] = changed

    def operand(self, operand: k.Operand) -> Array:
        """Return an operand as an array; a scalar is [1, 1]."""
        match operand:
            case k.Value(id):
                return self.values[id]
            case k.ScalarOperand(value, dtype):
                return _fill_array((1, 1), self.scalar(value), dtype)
            case _:
                assert_never(operand)

    def load(self, stmt: k.Load) -> Array:
        """Return the piece, with `fill` outside its valid part."""
        piece = _fill_array(piece_of(stmt), stmt.fill, stmt.result.type.dtype)
        array, row, col, n_rows, n_cols = self.place(stmt)
        if n_rows and n_cols:
            piece[:n_rows, :n_cols] = array[row:row + n_rows, col:col + n_cols]
        return np.ascontiguousarray(piece.T) if stmt.transpose else piece

    def store(self, stmt: k.Store) -> None:
        """Write the valid part of the piece."""
        array, row, col, n_rows, n_cols = self.place(stmt)
        if n_rows and n_cols:
            array[row:row + n_rows, col:col + n_cols] = self.values[stmt.value.id][:n_rows, :n_cols]

    def gather(self, stmt: k.Gather) -> Array:
        """Return the rows that the index names, with `fill` after the valid ones."""
        rows = np.full(stmt.result.type.shape, stmt.fill, stmt.result.type.dtype.np)
        index, columns = self.picked(stmt, stmt.result.type.cols)
        if index.size:
            rows[:len(index)] = self.arrays[stmt.param][index, columns]
        return rows

    def scatter(self, stmt: k.Scatter) -> None:
        """Write or add rows at the rows that the index names, in order."""
        index, columns = self.picked(stmt, stmt.value.type.cols)
        array, rows = self.arrays[stmt.param], self.values[stmt.value.id][:len(index)]
        if not index.size:
            return
        if stmt.add:
            np.add.at(array, (index[:, None], np.arange(columns.start, columns.stop)[None, :]), rows)
        else:
            array[index, columns] = rows

    def picked(self, stmt: k.Gather | k.Scatter, cols: int) -> tuple[Array, slice]:
        """Return the valid rows of the index and the column slice; fails at the guard if any is out of range."""
        n_rows, col = self.whole(valid_rows_of(stmt)), self.whole(stmt.col)
        index, extent = self.values[stmt.index.id][:n_rows, 0], self.arrays[stmt.param].shape
        if n_rows and not 0 <= col <= extent[1] - cols:
            self.fail(stmt, IndexFault(-1, col, cols, extent[1]))
        for row, value in enumerate(index.tolist()):
            if not 0 <= value < extent[0]:
                self.fail(stmt, IndexFault(row, 0, value, extent[0]))
        return index, slice(col, col + cols)

    def place(self, stmt: k.Load | k.Store) -> tuple[Array, int, int, int, int]:
        """Return array, offset and valid extents of a piece: clipped for a Tile parameter, guarded for a Tensor parameter."""
        array = self.arrays[stmt.param]
        row, col = self.whole(stmt.row), self.whole(stmt.col)
        n_rows, n_cols = (self.whole(extent) for extent in valid_of(stmt))
        if stmt.param not in self.tensors:
            return array, row, col, max(min(n_rows, array.shape[0] - row), 0), max(min(n_cols, array.shape[1] - col), 0)
        inside = row >= 0 and col >= 0 and row + n_rows <= array.shape[0] and col + n_cols <= array.shape[1]
        if n_rows and n_cols and not inside:
            self.fail(stmt, PieceFault(row, col, array.shape[0] - n_rows, array.shape[1] - n_cols))
        return array, row, col, n_rows, n_cols

    def whole(self, node: s.Scalar) -> int:
        """Return the value of an integer scalar."""
        return s.wrap_i64(int(self.scalar(node)))

    def scalar(self, node: s.Scalar) -> s.Number:
        """Return the value of a scalar at this point of the run."""
        return s.evaluate(node, self.leaf)

    def leaf(self, node: s.Scalar) -> s.Number:
        """Return the value of a parameter, an extent, a loop variable or an item."""
        match node:
            case s.ParamScalar(name):
                return self.numbers[name]
            case s.ParamExtent(name, dim):
                return int(self.arrays[name].shape[dim])
            case s.Var():
                return self.variables[node]
            case s.ItemRef():
                return self.items[node]
            case _:
                unreachable(f"scalar in a kernel: {print_scalar(node)}")


def _as_array(value: Array | s.Number) -> Array:
    return value if isinstance(value, np.ndarray) else unreachable("number for a memory parameter")


def _fill_array(shape: tuple[int, int], value: s.Number, dtype: DType) -> Array:
    """Return an array filled with one number, converted to `dtype`."""
    return np.full(shape, _round_array(value, dtype))


def _round_number(value: Array | s.Number, dtype: DType) -> s.Number:
    """Return a number converted to `dtype`: rounded or wrapped."""
    number: s.Number = _round_array(value, dtype).item()
    return number


def _round_array(value: Array | s.Number, dtype: DType) -> Array:
    array = np.asarray(value)
    return convert(array, dtype) if dtype.is_half or dtype.is_storage else array.astype(dtype.np)

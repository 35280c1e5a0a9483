"""Plan matrix products for the cube core: the chains of accumulation in L0C, and the block sizes for its memories.

A chain is a result in L0C to which one or more products are added; `Chains` assigns products, buffers and stores of a kernel to chains:

    %0 = load a                              piece a, as stored
    %1 = load b, transpose                   piece b, transposed
    acc = alloc Tile[16, 16, f32], init=0    a chain
    acc += %0 @ %1                           a product of the chain
    %2 = read acc
    store y, %2                              stores the chain of acc

`split` chooses the block of the result that fits L0C, and the step of the inner dimension of which L0A and L0B hold two, so that one is
filled while the other is multiplied (double buffering).

>>> split((Shape(128, 512, 256, DType.F16),), Limits.of(builtin_arch("ascend_910b")))
((128, 256), (64,))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import NoReturn

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CubeError, InternalError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import Body, bodies_of, touches_buffer, uses_of, walk
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.npu.plan.facts import Facts
from pto_wsp.ops.guards import transposes
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import find
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

# Sizes of every core of the family, for a model whose sources give none.
_LEAST_BYTES = {"L1": 512 << 10, "L0A": 64 << 10, "L0B": 64 << 10, "L0C": 128 << 10}
ACC_BYTES = 4        # sums are f32 or i32
_LEAST_STEP = 128     # bytes of a row in L0A: shorter rows cost more instructions than data


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes of the cube core's memories."""

    l1: int
    l0a: int
    l0b: int
    l0c: int

    @staticmethod
    def of(arch: Arch) -> Limits:
        """Return the sizes of an arch."""
        return Limits(*(arch.memory(name).usable_bytes or least for name, least in _LEAST_BYTES.items()))


@dataclass(frozen=True, slots=True)
class ProductShape:
    """The shape of a product [rows, inner] @ [inner, cols]."""

    rows: int
    inner: int
    cols: int
    dtype: DType


def unit(dtype: DType) -> int:
    """Return the multiple for rows and columns of a product's tiles: both sides of a fractal, in either orientation."""
    return max(16, 32 // dtype.nbytes)


def round_up(n: int, step: int) -> int:
    """Return `n` rounded up to a multiple of `step`."""
    return -(-n // step) * step


def split(shapes: tuple[ProductShape, ...], limits: Limits) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Return the block (rows, cols) that all products of a result share, and the step of each product.

    The block has the least traffic to L0A and L0B of all that fit; the step is the longest of which L0A and L0B hold two.
    """
    rows, cols = _block(shapes, limits)
    return (rows, cols), tuple(_step(shape, rows, cols, limits) for shape in shapes)


def _block(shapes: tuple[ProductShape, ...], limits: Limits) -> tuple[int, int]:
    first = shapes[0]
    size = unit(first.dtype)
    rows, cols = round_up(first.rows, size), round_up(first.cols, size)

    def fits(m: int, n: int) -> bool:
        least = min(_longest(shape, m, n, limits) >= min(round_up(shape.inner, size), round_up(_LEAST_STEP // shape.dtype.nbytes, size))
                    for shape in shapes)
        return m * n * ACC_BYTES <= limits.l0c and least

    fitting = ((m, n) for m in _parts(rows, size) for n in _parts(cols, size) if fits(m, n))
    return min(fitting, key=lambda block: _cost(rows, cols, *block))


def _cost(rows: int, cols: int, m: int, n: int) -> tuple[int, ...]:
    """Return the key of a block size: elements moved per element of the inner dimension, then blocks; ties go to the tallest block."""
    down, across = -(-rows // m), -(-cols // n)
    return down * cols + across * rows, down * across, -m


def _parts(extent: int, size: int) -> Iterator[int]:
    """Yield the distinct block sizes that divide an extent evenly, largest first."""
    last = 0
    for count in range(1, extent // size + 1):
        part = round_up(-(-extent // count), size)
        if part != last:
            yield part
        last = part


def _longest(shape: ProductShape, rows: int, cols: int, limits: Limits) -> int:
    """Return the longest step of which L0A and L0B hold two."""
    size = unit(shape.dtype)
    return min(limits.l0a // 2 // (rows * shape.dtype.nbytes), limits.l0b // 2 // (cols * shape.dtype.nbytes)) // size * size


def _step(shape: ProductShape, rows: int, cols: int, limits: Limits) -> int:
    size, longest = unit(shape.dtype), _longest(shape, rows, cols, limits)
    whole = round_up(shape.inner, size)
    if whole <= longest:
        return whole
    even = next((step for step in range(longest, longest // 2, -size) if shape.inner % step == 0), None)
    return even or round_up(-(-shape.inner // -(-shape.inner // longest)), size)


# -- chains ----------------------------------------------------------------------------------------


MULTIPLIED = {DType.F32: DType.F32, DType.F16: DType.F32, DType.BF16: DType.F32, DType.I8: DType.I32}


@dataclass(frozen=True, slots=True)
class LoadedPiece:
    """A loaded tile as an operand. `turned`: element (r, c) of the operand is element (row + c, col + r) of the parameter."""

    load: k.Load
    turned: bool
    rows: int
    cols: int
    valid_rows: s.Scalar
    valid_cols: s.Scalar

    @property
    def key(self) -> tuple[int, bool]:
        """Return the identity of the piece: its load and orientation."""
        return self.load.result.id, self.turned

    @property
    def dtype(self) -> DType:
        """Return the dtype of the elements."""
        return self.load.result.type.dtype


@dataclass(frozen=True, slots=True)
class Product:
    """A product [m, k] @ [k, n] that is added to a chain; `restarts`: the product replaces the chain's contents."""

    chain: int
    lhs: LoadedPiece
    rhs: LoadedPiece
    restarts: bool
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    @property
    def inner(self) -> int:
        """Return k."""
        return self.lhs.cols


@dataclass(frozen=True, slots=True)
class ProductChain:
    """A result [rows, cols] in L0C, with the valid part that its products have."""

    id: int
    name: str
    rows: int
    cols: int
    dtype: DType
    valid_rows: s.Scalar = s.Const(0)
    valid_cols: s.Scalar = s.Const(0)
    buffer: k.Buffer | None = None


class Chains:
    """The pieces, products and chains of a kernel.

    Raises: N104 for an operation that the cube core cannot do, at its line.
    """

    def __init__(self, kernel: k.Kernel, facts: Facts) -> None:
        self.facts = facts
        self.pieces: dict[int, LoadedPiece] = {}               # by value
        self.products: dict[int, Product] = {}           # by id() of the statement that emits it
        self.chains: dict[int, ProductChain] = {}
        self.stored: dict[int, int] = {}                 # id() of a store -> its chain
        self._of_value: dict[int, tuple[int, int]] = {}  # chain, and its version when the value was defined
        self._of_buffer: dict[int, int] = {}
        self._version: dict[int, int] = {}
        self._kept = {stmt.buffer.id for stmt in walk(kernel.body) if isinstance(stmt, k.Read | k.Accumulate)}
        self._body(kernel.body)

    def made_for(self, buffer: k.Buffer) -> ProductChain:
        """Return the chain of a buffer."""
        return self.chains[self._chain_of(buffer)]

    def _body(self, body: Body) -> None:
        for at, stmt in enumerate(body):
            match stmt:
                case k.Load():
                    self._load(stmt)
                case k.Compute(result, _, (k.Value(source),)) if source in self.pieces and transposes(stmt):
                    self.pieces[result.id] = _transposed(self.pieces[source])
                case k.Compute() if isinstance(find(stmt.op), Matmul):
                    self._product(stmt, body, at)
                case k.Accumulate(buffer, lhs, rhs):
                    self._add(stmt, self._chain_of(buffer), lhs, rhs, restarts=False)
                case k.Alloc(buffer, init):
                    if init not in (0, None):
                        _refuse(f"`{buffer.name}` starts from {init!r}", stmt.span, "an accumulator that starts from 0",
                                "start from 0 and add the number to the result")
                    self._new(buffer.name, buffer.type.rows, buffer.type.cols, buffer.type.dtype, buffer)
                case k.Read(result, buffer):
                    self._of_value[result.id] = self._now(self._chain_of(buffer))
                case k.Write(buffer, value):
                    if buffer.id in self._kept and self._of_value.get(value.id, (-1, 0))[0] != self._chain_of(buffer):
                        _refuse(f"`{buffer.name}` is given what no product of its own made", stmt.span, "a product, or a sum of products",
                                "keep a product and what is moved apart: store it, and load it in another kernel")
                case k.Store(_, value):
                    self.stored[id(stmt)] = self._current(value, stmt.span)
                case k.For() | k.If():
                    for inner in bodies_of(stmt):
                        self._around(stmt, inner)
                        self._body(inner)
                case k.Item():
                    pass
                case _:
                    raise InternalError(f"{type(stmt).__name__} in a kernel for the cube core", "the split leaves products there")

    def _load(self, stmt: k.Load) -> None:
        if not self.facts.has_line(stmt.param):
            _refuse(f"`{stmt.param}` has gaps between neighbours in both directions", stmt.span,
                    "rows or columns that lie without gaps in memory", "bind a contiguous tensor, or every n-th row only")
        rows, cols = self.facts.valid(stmt)
        shape = stmt.result.type.shape
        if stmt.transpose:
            rows, cols = cols, rows
        if stmt.fill != 0 and (rows, cols) != (s.Const(shape[0]), s.Const(shape[1])):
            _refuse(f"a piece of `{stmt.param}` is multiplied that is {stmt.fill!r} outside its valid part", stmt.span, "fill=0",
                    "load it in a vector kernel of its own, and hand the filled tile on")
        self.pieces[stmt.result.id] = LoadedPiece(stmt, stmt.transpose, *shape, rows, cols)

    def _product(self, stmt: k.Compute, body: Body, at: int) -> None:
        lhs, rhs, *start = (value for value in stmt.operands if isinstance(value, k.Value))
        rows, cols = stmt.result.type.shape
        if start and start[0].id in self._of_value:
            chain, restarts = self._current(start[0], stmt.span), False
        elif start:
            _refuse("a product starts from a tile in memory", stmt.span, "a product, or a buffer of products",
                    "multiply first and add the tile to the result")
        else:
            buffer = self._target(stmt.result, body, at)
            chain = self._chain_of(buffer) if buffer is not None else self._new(stmt.result.name or "product", rows, cols,
                                                                               stmt.result.type.dtype)
            restarts = True
        self._add(stmt, chain, lhs, rhs, restarts=restarts)
        self._of_value[stmt.result.id] = self._now(chain)

    def _target(self, value: k.Value, body: Body, at: int) -> k.Buffer | None:
        """Return the buffer to which a product is written, if nothing reads the buffer's previous contents; None otherwise."""
        for later, stmt in enumerate(body[at + 1:], at + 1):
            if isinstance(stmt, k.Write) and stmt.value == value and stmt.buffer.id in self._kept:
                free = not any(touches_buffer(between, stmt.buffer) for between in body[at + 1:later])
                return stmt.buffer if free and stmt.buffer.id in self._of_buffer else None
        return None

    def _add(self, stmt: k.Compute | k.Accumulate, chain: int, lhs: k.Value, rhs: k.Value, *, restarts: bool) -> None:
        one, two = self._operand(lhs, stmt), self._operand(rhs, stmt)
        if lhs.type.dtype not in MULTIPLIED:
            _refuse(f"the cube core does not multiply {lhs.type.dtype}", stmt.span, ", ".join(map(str, MULTIPLIED)),
                    "multiply i8 as it is loaded: the sums are i32, and exact; or convert to floats: a.astype(DType.F32)"
                    if lhs.type.dtype.is_integer else "convert the operands, e.g. a.astype(DType.F32)")
        known = self.chains[chain]
        if any(product.chain == chain for product in self.products.values()):
            if (known.valid_rows, known.valid_cols) != (one.valid_rows, two.valid_cols):
                _refuse(f"products of different valid parts add up in `{known.name}`", stmt.span,
                        f"{_shape_text(known.valid_rows, known.valid_cols)} valid, as the first one has",
                        "load the pieces with the same valid rows of the left and columns of the right operand",
                        found=_shape_text(one.valid_rows, two.valid_cols))
        else:
            self.chains[chain] = replace(known, valid_rows=one.valid_rows, valid_cols=two.valid_cols)
        self.products[id(stmt)] = Product(chain, one, two, restarts, stmt.span)
        self._version[chain] += 1

    def _operand(self, value: k.Value, stmt: k.Compute | k.Accumulate) -> LoadedPiece:
        if value.id not in self.pieces:
            _refuse("a product multiplies what another product gave", stmt.span, "tiles that are loaded",
                    "store the first product to a tensor and multiply it in another kernel")
        return self.pieces[value.id]

    # -- versions of chains

    def _new(self, name: str, rows: int, cols: int, dtype: DType, buffer: k.Buffer | None = None) -> int:
        chain = ProductChain(len(self.chains), name, rows, cols, dtype, buffer=buffer)
        self.chains[chain.id], self._version[chain.id] = chain, 0
        if buffer is not None:
            self._of_buffer[buffer.id] = chain.id
        return chain.id

    def _chain_of(self, buffer: k.Buffer) -> int:
        return self._of_buffer[buffer.id]

    def _now(self, chain: int) -> tuple[int, int]:
        return chain, self._version[chain]

    def _current(self, value: k.Value, span: Span) -> int:
        """Return the chain whose current contents are a value."""
        if value.id not in self._of_value:
            _refuse("a tile is copied in a kernel of products", span, "the result of a product", "copy it in a kernel of its own")
        version = self._of_value[value.id]
        if version != self._now(version[0]):
            _refuse(f"`{self.chains[version[0]].name}` is asked for what it held before it was added to", span,
                    "its value as it is now", "store it before the next product adds to it")
        return version[0]

    def _around(self, stmt: k.For | k.If, body: Body) -> None:
        """Invalidate values from before a loop in the chains that the loop changes: a later iteration sees the changed contents."""
        if isinstance(stmt, k.For):
            touched = {inner.buffer.id for inner in walk(body) if isinstance(inner, k.Accumulate | k.Write)}
            started = {value.id for inner in walk(body) if isinstance(inner, k.Compute) for value in uses_of(inner)[2:]}
            for chain in {self._of_buffer[buffer] for buffer in touched if buffer in self._of_buffer} | {
                    self._of_value[value][0] for value in started if value in self._of_value}:
                self._version[chain] += 1


def _transposed(piece: LoadedPiece) -> LoadedPiece:
    return LoadedPiece(piece.load, not piece.turned, piece.cols, piece.rows, piece.valid_cols, piece.valid_rows)


def _shape_text(rows: s.Scalar, cols: s.Scalar) -> str:
    return f"[{print_scalar(rows)}, {print_scalar(cols)}]"


def _refuse(message: str, span: Span, expected: str, help: str, found: str | None = None) -> NoReturn:
    raise CubeError(message, span, expected=expected, found=found, help=help)

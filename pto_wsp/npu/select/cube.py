"""Select instructions for cube cores: lower a kernel of loads, matrix products and stores to a tile program.

    acc += %0 @ %1     →     a, b in L1
                             for k:  TEXTRACT(left, a, 0, k);  TEXTRACT(right, b, k, 0)        to L0A and L0B
                                     k == 0 ? TMATMUL(acc, left, right) : TMATMUL_ACC(acc, acc, left, right)

Operands are in L1, whole or in chunks of the inner dimension; L0A and L0B hold one step of a chunk; the sum is in L0C. Only the valid part
of a tile is multiplied, also along the inner dimension, so padding never reaches the result. If a result exceeds L0C, or one step exceeds
L0A and L0B, the statements that compute and store the result run once per block of it.

>>> program = select_cube(use, builtin_arch("ascend_910b"))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CubeError, unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import Body, walk
from pto_wsp.ir.rewrite import nodes, rewrite
from pto_wsp.ir.scalar import Op, print_scalar
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.plan.facts import FALSE, TRUE, Change, Facts, conjoin, fresh_before, negate
from pto_wsp.npu.plan.model import NpuKernel
from pto_wsp.npu.rules.builder import Builder, ChipTile, loop_range
from pto_wsp.npu.select.chains import Chains, Limits, LoadedPiece, ProductChain, round_up, unit
from pto_wsp.npu.select.memory import clamp_start, inside_of
from pto_wsp.npu.select.residence import Blocked, ChainGroup, PieceKey, parts_of
from pto_wsp.npu.select.vector import leave_early
from pto_wsp.values import dataclass

ZERO = s.Const(0)


@dataclass(frozen=True, slots=True)
class Panel:
    """A block of a result: first row and column, size, and valid part."""

    row: s.Scalar
    col: s.Scalar
    rows: int
    cols: int
    valid_rows: s.Scalar
    valid_cols: s.Scalar


@dataclass(frozen=True, slots=True)
class InL1:
    """An operand in L1: its tile, and the position in the tile at which the block starts."""

    tile: int
    row: s.Scalar
    col: s.Scalar


def l1_form(facts: Facts, piece: LoadedPiece) -> tp.Form:
    """Return the L1 layout of a piece: NZ, or ZN if rows of the tile are not contiguous in memory."""
    return tp.Form.ZN if piece.turned != facts.lies_turned(piece.load.param) else tp.Form.NZ


class CubeBuffers:
    """On-chip buffers of the cube core, allocated at first use."""

    def __init__(self, b: Builder) -> None:
        self._b = b
        self._held: dict[object, ChipTile] = {}

    def at(self, key: object, rows: int, cols: int, dtype: DType, name: str, space: tp.Space) -> ChipTile:
        """Return the on-chip buffer of a key, with space for a tile of rows x cols."""
        if key not in self._held:
            buffer = self._b.buffer(rows * cols * dtype.nbytes, name, space)
            self._held[key] = ChipTile(buffer, name, rows, cols, dtype, cols, rows, s.Const(rows), s.Const(cols))
        return self._held[key]


class ProductBlock:
    """Emits one product for one block of its result.

    `whole`: L1 tiles of operands that reside whole; `chunk`: length of a chunk of the inner dimension; `starts`: by load, the position of
    its piece.
    """

    def __init__(self, b: Builder, facts: Facts, buffers: CubeBuffers, one: Blocked, block: Panel, chunk: int,
                 whole: Mapping[PieceKey, int], starts: Mapping[int, tuple[s.Scalar, s.Scalar]]) -> None:
        self.b, self.facts, self.buffers, self.one, self.block, self.chunk, self.whole = b, facts, buffers, one, block, chunk, whole
        self.starts = starts
        self.dtype = one.product.lhs.dtype

    def emit(self, acc: int, depth: s.Scalar, fresh: s.Scalar) -> None:
        """Append the steps that add `depth` terms to `acc`, which is empty if `fresh` holds."""
        lhs, rhs = self.one.product.lhs, self.one.product.rhs
        most = round_up(self.one.product.inner, self.one.step)
        for base, length, first in self._cut("chunk", depth, self.chunk, most):
            left, right = self._operand(lhs, base, length, left=True), self._operand(rhs, base, length, left=False)
            for at, width, begins in self._cut("inner", length, self.one.step, min(self.chunk, most)):
                self._step(acc, (left, right), at, width, conjoin(fresh, conjoin(first, begins)))

    def _cut(self, name: str, extent: s.Scalar, size: int, most: int) -> Iterator[tuple[s.Scalar, s.Scalar, s.Scalar]]:
        """Yield (start, length, is-first condition) for consecutive pieces of an extent, at most `size` long.

        Whole pieces share a loop: the steps that the caller emits before it asks for the next piece become the loop body. `most` bounds the
        extent.
        """
        b = self.b
        if not isinstance(extent, s.Const):
            if most <= size:
                yield ZERO, extent, TRUE
                return
            extent = b.named(extent, "depth")
            var = b.var(name)
            with b.inside() as body:
                yield var, s.minimum(s.Const(size), s.sub(extent, var)), s.Binary(s.Op.EQ, var, ZERO)
            b.add(tp.For(var, ZERO, extent, s.Const(size), tuple(body), b.span))
            return
        total = int(extent.value)
        whole = total // size * size
        if whole > size:
            var = b.var(name)
            with b.inside() as body:
                yield var, s.Const(size), s.Binary(s.Op.EQ, var, ZERO)
            b.add(tp.For(var, ZERO, s.Const(whole), s.Const(size), tuple(body), b.span))
        elif whole:
            yield ZERO, s.Const(size), TRUE
        if total > whole:
            yield s.Const(whole), s.Const(total - whole), s.Const(whole == 0)

    def _operand(self, piece: LoadedPiece, base: s.Scalar, length: s.Scalar, *, left: bool) -> InL1:
        """Return an operand in L1, resident or loaded here."""
        row, col = (self.block.row, base) if left else (base, self.block.col)
        if piece.key in self.whole:
            return InL1(self.whole[piece.key], row, col)
        b, size = self.b, unit(self.dtype)
        inner = round_up(int(length.value), size) if isinstance(length, s.Const) else self.chunk
        rows, cols = (self.block.rows, inner) if left else (inner, self.block.cols)
        extents = (self.block.valid_rows, length) if left else (length, self.block.valid_cols)
        most = (self.block.rows, self.chunk) if left else (self.chunk, self.block.cols)
        name = f"{piece.load.result.name or piece.load.param}_l1"
        buffer = self.buffers.at((id(self.one), piece.key), *most, self.dtype, name, tp.Space.L1)
        tile = b.tile(buffer, l1_form(self.facts, piece), rows, cols, *extents)
        b.add(load_of(piece, tile, self.starts[id(piece.load)], (row, col)))
        return InL1(tile, ZERO, ZERO)

    def _step(self, acc: int, operands: tuple[InL1, InL1], at: s.Scalar, width: s.Scalar, fresh: s.Scalar) -> None:
        b, block, (lhs, rhs) = self.b, self.block, operands
        inner = round_up(int(width.value), unit(self.dtype)) if isinstance(width, s.Const) else self.one.step
        in_l0a = self._l0("left", block.rows, self.one.step, tp.Space.L0A)
        in_l0b = self._l0("right", self.one.step, block.cols, tp.Space.L0B)
        left = b.tile(in_l0a, tp.Form.LEFT, block.rows, inner, block.valid_rows, width)
        right = b.tile(in_l0b, tp.Form.RIGHT, inner, block.cols, width, block.valid_cols)
        b.emit("TEXTRACT", left, lhs.tile, _index(lhs.row), _index(s.add(lhs.col, at)))
        b.emit("TEXTRACT", right, rhs.tile, _index(s.add(rhs.row, at)), _index(rhs.col))
        start = tp.Instr("TMATMUL", (_writes(acc), _reads(left), _reads(right)), span=b.span)
        more = tp.Instr("TMATMUL_ACC", (_writes(acc), _reads(acc), _reads(left), _reads(right)), span=b.span)
        if isinstance(fresh, s.Const):
            b.add(start if fresh == TRUE else more)
        else:
            b.add(tp.If(fresh, (start,), (more,), b.span))

    def _l0(self, name: str, rows: int, cols: int, space: tp.Space) -> ChipTile:
        return self.buffers.at((id(self.one), name), rows, cols, self.dtype, name, space)


def load_of(piece: LoadedPiece, tile: int, start: tuple[s.Scalar, s.Scalar], at: tuple[s.Scalar, s.Scalar]) -> tp.GmLoad:
    """Return the load of a part of a piece. `start`: position of the piece; `at`: position of the part in the operand."""
    down, across = reversed(at) if piece.turned else at
    return tp.GmLoad(tile, piece.load.param, s.add(start[0], down), s.add(start[1], across), turned=piece.turned, span=piece.load.span)


def _index(value: s.Scalar) -> tp.NumberArg:
    return tp.NumberArg(value, DType.I32)


def _reads(tile: int) -> tp.TileArg:
    return tp.TileArg(tile, tp.Access.READ)


def _writes(tile: int) -> tp.TileArg:
    return tp.TileArg(tile, tp.Access.WRITE)


# -- kernels ---------------------------------------------------------------------------------------


def select_cube(use: NpuKernel, arch: Arch) -> tp.TileProgram:
    """Return the tile program of a kernel for cube cores.

    Raises: N104 at the line of an operation that the cube core cannot do, K110 if tiles exceed the memories even in pieces.
    """
    kernel, variables = _with_variables(use.kernel)
    use = replace(use, kernel=kernel)
    b = Builder(use, arch, tp.Space.L1)
    b.items |= variables
    facts = Facts(use.kernel, b.access)
    chains = Chains(use.kernel, facts)
    leave_early(b)
    for part in parts_of(use.kernel, chains, Limits.of(arch)):
        selection = _CubeSelection(b, facts, chains, part)
        if part.chain is None:
            selection.body(part.body)
        else:
            selection.blocks(part.chain)
    return b.program()


def _with_variables(kernel: k.Kernel) -> tuple[k.Kernel, dict[s.ItemRef, s.Var]]:
    """Return a kernel whose scalars name a variable in place of each item, and the variables."""
    items = [stmt.item for stmt in walk(kernel.body) if isinstance(stmt, k.Item)]
    if not items:
        return kernel, {}
    first = 1 + max((node.id for node in nodes(kernel.body) if isinstance(node, s.Var)), default=-1)
    variables = {item: s.Var(item.name, first + n) for n, item in enumerate(items)}
    known: dict[object, s.ItemRef] = {var: item for item, var in variables.items()}

    def change(node: object) -> object | None:
        match node:
            case s.ItemRef():
                return variables[node]
            case k.Item(var):      # its own item stays
                return replace(node, item=known[var])
            case _:
                return None

    return rewrite(kernel, change), variables


@contextmanager
def _block_loop(b: Builder, name: str, extent: int, size: int) -> Iterator[s.Scalar]:
    """Emit a loop over the blocks of an extent, if there are several, around the steps that the caller emits."""
    if extent <= size:
        yield ZERO
        return
    var = b.var(name)
    with b.inside() as body:
        yield var
    b.add(tp.For(var, ZERO, s.Const(extent), s.Const(size), tuple(body), b.span))


class _CubeSelection:
    """Selects one part of a kernel. `start`: first row and column of the current block of its result."""

    def __init__(self, b: Builder, facts: Facts, chains: Chains, part: ChainGroup) -> None:
        self.b, self.facts, self.chains, self.part = b, facts, chains, part
        self.start: tuple[s.Scalar, s.Scalar] = (ZERO, ZERO)
        self.fresh = fresh_before(part.body, facts, self._change)
        self.accs: dict[int, ChipTile] = {}
        self.whole: dict[PieceKey, int] = {}            # L1 tiles of operands that reside whole
        self.starts: dict[int, tuple[s.Scalar, s.Scalar]] = {}      # by load: position of its piece
        self.buffers = CubeBuffers(b)

    def blocks(self, chain: ProductChain) -> None:
        """Append the part's steps for every block of its result; loads outside of loops and branches run once before the blocks."""
        loads, rest = self.part.loads_first()
        self.body(loads)
        with _block_loop(self.b, "m", chain.rows, self.part.rows) as row, _block_loop(self.b, "n", chain.cols, self.part.cols) as col:
            self.start = row, col
            self.body(rest)

    def body(self, body: Body) -> None:
        """Append the steps of a body to the current block."""
        for stmt in body:
            if not isinstance(stmt, k.Rows | k.Columns):
                self.b.span = stmt.span
            match stmt:
                case k.Load():
                    self._load(stmt)
                case k.Alloc(buffer):
                    self._start(self.chains.made_for(buffer))
                case k.Compute() | k.Accumulate():
                    self._product(stmt)
                case k.Store():
                    self._store(stmt)
                case k.Item():
                    self._item(stmt)
                case k.For():
                    self._for(stmt)
                case k.If():
                    self._if(stmt)
                case _:
                    unreachable(f"{type(stmt).__name__} in a kernel for cube cores")

    # -- operands and results

    def _item(self, stmt: k.Item) -> None:
        """Append the read of an item from global memory; a place outside reads the nearest."""
        load = self.chains.pieces[stmt.value.id].load
        row, col = clamp_start(self.b, load, self.facts.valid(load))
        self.b.add(tp.GmPeek(self.b.items[stmt.item], load.param, row, col, stmt.span))

    def _load(self, stmt: k.Load) -> None:
        b, facts = self.b, self.facts
        self.starts[id(stmt)] = clamp_start(b, stmt, facts.valid(stmt))
        pieces = {piece.key: piece for one in self.part.blocked.values() for piece in (one.product.lhs, one.product.rhs)
                  if piece.load is stmt}
        for key, piece in pieces.items():
            if key not in self.part.residence.whole:
                continue
            rows, cols = self.part.residence.whole[key]
            buffer = self.buffers.at(key, rows, cols, piece.dtype, f"{stmt.result.name or stmt.param}_l1", tp.Space.L1)
            tile = b.tile(buffer, l1_form(facts, piece), rows, cols, piece.valid_rows, piece.valid_cols)
            self.whole[key] = tile
            b.declare(tile)
            with b.when(conjoin(facts.at_least_one(piece.valid_rows), facts.at_least_one(piece.valid_cols))):
                b.add(load_of(piece, tile, self.starts[id(stmt)], (ZERO, ZERO)))

    def _start(self, chain: ProductChain) -> None:
        """Allocate the L0C buffer of an empty chain."""
        one = self._first(chain)
        self.accs[chain.id] = self.buffers.at(chain.id, one.rows, one.cols, chain.dtype, chain.name, tp.Space.L0C)
        block = self._block(chain)
        if self._known_here(block):
            self.b.declare(self._acc(chain, block.valid_rows, block.valid_cols))

    def _first(self, chain: ProductChain) -> Blocked:
        return next(one for one in self.part.blocked.values() if one.product.chain == chain.id)

    def _known_here(self, block: Panel) -> bool:
        """Return whether the valid part of a result is the same for all products of its chain."""
        return all(not any(isinstance(leaf, s.Var) and leaf in self.facts.loops for leaf in s.leaves(extent))
                   for extent in (block.valid_rows, block.valid_cols))

    def _acc(self, chain: ProductChain, valid_rows: s.Scalar, valid_cols: s.Scalar) -> int:
        held = self.accs[chain.id]
        return self.b.tile(held, tp.Form.ACC, held.rows, held.cols, valid_rows, valid_cols)

    def _block(self, chain: ProductChain) -> Panel:
        one, (row, col) = self._first(chain), self.start
        return Panel(row, col, one.rows, one.cols, self._rest(chain.valid_rows, row, one.rows), self._rest(chain.valid_cols, col, one.cols))

    def _rest(self, extent: s.Scalar, start: s.Scalar, size: int) -> s.Scalar:
        """Return the number of valid elements of an extent in the block at `start`."""
        if start == ZERO:
            return self.facts.settle(s.minimum(extent, s.Const(size)))
        if isinstance(extent, s.Const) and int(extent.value) % size == 0:
            return s.Const(size)
        return s.minimum(s.sub(extent, start), s.Const(size))

    def _some(self, extent: s.Scalar) -> s.Scalar:
        """Return the condition that an extent of a block is at least 1."""
        positive = isinstance(extent, s.Binary) and extent.op is Op.MIN and self._inside(extent.lhs)
        return TRUE if positive else self.facts.at_least_one(extent)

    def _inside(self, rest: s.Scalar) -> bool:
        """Return whether the rest of an extent is surely positive: a constant extent in which each block starts."""
        return all(leaf in self.start for leaf in s.leaves(rest))

    # -- products

    def _change(self, stmt: k.Stmt) -> Change | None:
        """Return the effect of a statement on a chain.

        Empty valid parts do not count: nothing of them is stored.
        """
        if id(stmt) in self.part.blocked:
            one = self.part.blocked[id(stmt)]
            chain = self.chains.chains[one.product.chain]
            return Change(chain.id, chain.name, one.product.restarts, self._terms(one)[1])
        if isinstance(stmt, k.Alloc):
            chain = self.chains.made_for(stmt.buffer)
            return Change(chain.id, chain.name, clears=True)
        return None

    def _terms(self, one: Blocked) -> tuple[s.Scalar, s.Scalar]:
        """Return the number of terms of a product, and the condition that the number is at least 1."""
        depth = self.facts.settle(s.minimum(one.product.lhs.valid_cols, one.product.rhs.valid_rows))
        return depth, self.facts.at_least_one(depth)

    def _product(self, stmt: k.Stmt) -> None:
        one = self.part.blocked[id(stmt)]
        chain = self.chains.chains[one.product.chain]
        if chain.id not in self.accs or (chain.buffer is None and one.product.restarts):
            self._start(chain)
        block = self._block(chain)
        fresh = TRUE if one.product.restarts else self.fresh[id(stmt)][chain.id]
        depth, terms = self._terms(one)
        with self.b.when(conjoin(conjoin(self._some(block.valid_rows), self._some(block.valid_cols)), terms)):
            acc = self._acc(chain, block.valid_rows, block.valid_cols)
            self.b.declare(acc)
            ProductBlock(self.b, self.facts, self.buffers, one, block, self._chunk(one), self.whole, self.starts).emit(acc, depth, fresh)

    def _chunk(self, one: Blocked) -> int:
        return next(chunk for at, chunk in self.part.residence.chunks.items() if self.part.blocked[at] is one)

    # -- stores

    def _store(self, stmt: k.Store) -> None:
        b, chain = self.b, self.chains.chains[self.chains.stored[id(stmt)]]
        (rows, cols), fresh = self.facts.valid(stmt), self.fresh[id(stmt)][chain.id]
        is_guarded = isinstance(rows, s.Select) and rows.then == ZERO    # the extent itself is 0 if there are no terms
        wanted = (rows.other if isinstance(rows, s.Select) and is_guarded and rows != chain.valid_rows else rows), cols
        given = self.facts.settle(s.minimum(wanted[0], chain.valid_rows)), self.facts.settle(s.minimum(wanted[1], chain.valid_cols))
        if given != wanted or not (is_guarded or fresh == FALSE):
            self._refuse_zeros(stmt, chain, wanted, fresh)
        block = self._block(chain)
        extents = self._rest(given[0], block.row, block.rows), self._rest(given[1], block.col, block.cols)
        some = conjoin(self._some(extents[0]), self._some(extents[1]))
        with b.when(conjoin(inside_of(b, stmt, given), conjoin(negate(fresh), some))):
            at = (s.add(b.scalar(stmt.row), block.row), s.add(b.scalar(stmt.col), block.col))
            b.add(tp.GmStore(stmt.param, self._acc(chain, *extents), *at, span=stmt.span))

    def _refuse_zeros(self, stmt: k.Store, chain: ProductChain, wanted: tuple[s.Scalar, s.Scalar], fresh: s.Scalar) -> None:
        given = " x ".join(map(print_scalar, (chain.valid_rows, chain.valid_cols)))
        found = f"{given} from valid parts of its operands" if fresh == FALSE else "a sum that may have no terms"
        raise CubeError(
            f"zeros of `{chain.name}` would be stored that no product makes", stmt.span,
            expected=f"{' x '.join(map(print_scalar, wanted))}, all of them sums of products", found=found,
            help="store the valid part only, pto.store(..., valid=(rows, cols)), or bind views of equal extents")

    # -- loops and branches

    def _for(self, stmt: k.For) -> None:
        b = self.b
        start, stop, step = (self.facts.settle(bound) for bound in (stmt.start, stmt.stop, stmt.step))
        b.ranges[stmt.var] = loop_range(start, stop, step)
        with b.inside() as body:
            self.body(stmt.body)
        b.add(tp.For(stmt.var, start, stop, step, tuple(body), stmt.span))

    def _if(self, stmt: k.If) -> None:
        b = self.b
        with b.inside() as then:
            self.body(stmt.then)
        with b.inside() as other:
            self.body(stmt.other)
        b.add(tp.If(self.facts.settle(stmt.condition), tuple(then), tuple(other), stmt.span))

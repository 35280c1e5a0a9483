"""Selection for cube cores: kernel IR of loads, products and stores to a tile program.

    acc += %0 @ %1     →     a, b in L1; for k: TEXTRACT to L0A and L0B, TMATMUL or TMATMUL_ACC; acc in L0C

Where a result does not fit L0C, or a step of it L0A and L0B, the statements that make and store it run once for each of its blocks.

>>> program = select_cube(use, builtin_arch("ascend_910b"))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CubeError, unreachable
from pto_wsp.expr import kernel as k
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.kernel_walk import Body
from pto_wsp.plan.npu.known.facts import FALSE, TRUE, Facts, both, negated
from pto_wsp.plan.npu.known.fresh import Change, fresh_before
from pto_wsp.plan.npu.model import NpuKernel
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.moves.piece import inside_of, kept_inside
from pto_wsp.plan.npu.select.moves.prove import turns_of
from pto_wsp.plan.npu.select.products.block import ZERO, Block, ProductBlock, Rooms, l1_form, load_of
from pto_wsp.plan.npu.select.products.chains import Chain, Chains
from pto_wsp.plan.npu.select.products.parts import Part, parts_of
from pto_wsp.plan.npu.select.products.residence import Blocked, PieceKey
from pto_wsp.plan.npu.select.products.tiling import Limits
from pto_wsp.plan.npu.select.vector import leave_early
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op
from pto_wsp.types.scalar_text import print_scalar


def select_cube(use: NpuKernel, arch: Arch) -> tp.TileProgram:
    """Return the tile program of a kernel for cube cores.

    Raises: N104 at the line of what the cube core cannot do, K110 where tiles do not fit even in pieces.
    """
    b = Builder(use, arch, tp.Space.L1)
    facts = Facts(use.kernel, b.access)
    chains = Chains(use.kernel, facts)
    leave_early(b)
    for part in parts_of(use.kernel, chains, Limits.of(arch)):
        selection = _Selection(b, facts, chains, part)
        if part.chain is None:
            selection.body(part.body)
        else:
            selection.blocks(part.chain)
    return b.program()


@contextmanager
def _over(b: Builder, name: str, extent: int, size: int) -> Iterator[s.Scalar]:
    """Emit into a loop over the blocks of an extent, where there are several."""
    if extent <= size:
        yield ZERO
        return
    var = b.var(name)
    with b.inside() as body:
        yield var
    b.add(tp.Loop(var, ZERO, s.Const(extent), s.Const(size), tuple(body), b.span))


class _Selection:
    """Selects one part of a kernel. `start`: the first row and column of the block of its result that is at hand."""

    def __init__(self, b: Builder, facts: Facts, chains: Chains, part: Part) -> None:
        self.b, self.facts, self.chains, self.part = b, facts, chains, part
        self.start: tuple[s.Scalar, s.Scalar] = (ZERO, ZERO)
        self.fresh = fresh_before(part.body, facts, self._change)
        self.accs: dict[int, Held] = {}
        self.whole: dict[PieceKey, int] = {}            # L1 tiles of operands that are held whole
        self.starts: dict[int, tuple[s.Scalar, s.Scalar]] = {}      # by load: where its piece starts
        self.rooms = Rooms(b)

    def blocks(self, chain: Chain) -> None:
        """Add the steps of the part's body for every block of its result; what is loaded at its start is loaded once."""
        loads, rest = self.part.loads_first()
        self.body(loads)
        with _over(self.b, "m", chain.rows, self.part.rows) as row, _over(self.b, "n", chain.cols, self.part.cols) as col:
            self.start = row, col
            self.body(rest)

    def body(self, body: Body) -> None:
        """Add the steps of a body to the current block."""
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
                case k.For():
                    self._for(stmt)
                case k.If():
                    self._if(stmt)
                case _:
                    unreachable(f"{type(stmt).__name__} in a kernel for cube cores")

    # ---- operands and results ----

    def _load(self, stmt: k.Load) -> None:
        b, facts = self.b, self.facts
        self.starts[id(stmt)] = kept_inside(b, stmt, facts.valid(stmt))
        pieces = {piece.key: piece for one in self.part.blocked.values() for piece in (one.product.lhs, one.product.rhs)
                  if piece.load is stmt}
        for key, piece in pieces.items():
            if key not in self.part.residence.whole:
                continue
            rows, cols = self.part.residence.whole[key]
            room = self.rooms.at(key, rows, cols, piece.dtype, f"{stmt.result.name or stmt.param}_l1", tp.Space.L1)
            tile = b.tile(room, l1_form(facts, piece), rows, cols, piece.valid_rows, piece.valid_cols)
            self.whole[key] = tile
            b.declare(tile)
            with b.when(both(facts.at_least_one(piece.valid_rows), facts.at_least_one(piece.valid_cols))):
                b.add(load_of(piece, tile, self.starts[id(stmt)], (ZERO, ZERO)))

    def _start(self, chain: Chain) -> None:
        """Make room for a chain that holds nothing yet."""
        one = self._first(chain)
        self.accs[chain.id] = self.rooms.at(chain.id, one.rows, one.cols, chain.dtype, chain.name, tp.Space.L0C)
        block = self._block(chain)
        if self._known_here(block):
            self.b.declare(self._acc(chain, block.valid_rows, block.valid_cols))

    def _first(self, chain: Chain) -> Blocked:
        return next(one for one in self.part.blocked.values() if one.product.chain == chain.id)

    def _known_here(self, block: Block) -> bool:
        """Tell whether the valid part of a result is the same for all products that add up in it."""
        return all(not any(isinstance(leaf, s.Var) and leaf in self.facts.loops for leaf in s.leaves(extent))
                   for extent in (block.valid_rows, block.valid_cols))

    def _acc(self, chain: Chain, valid_rows: s.Scalar, valid_cols: s.Scalar) -> int:
        held = self.accs[chain.id]
        return self.b.tile(held, tp.Form.ACC, held.rows, held.cols, valid_rows, valid_cols)

    def _block(self, chain: Chain) -> Block:
        one, (row, col) = self._first(chain), self.start
        return Block(row, col, one.rows, one.cols, self._rest(chain.valid_rows, row, one.rows), self._rest(chain.valid_cols, col, one.cols))

    def _rest(self, extent: s.Scalar, start: s.Scalar, size: int) -> s.Scalar:
        """Return how much of an extent lies in a block that starts there."""
        if start == ZERO:
            return self.facts.settle(s.minimum(extent, s.Const(size)))
        if isinstance(extent, s.Const) and int(extent.value) % size == 0:
            return s.Const(size)
        return s.minimum(s.sub(extent, start), s.Const(size))

    def _some(self, extent: s.Scalar) -> s.Scalar:
        """Return the condition that an extent of a block is 1 or more."""
        known = isinstance(extent, s.Binary) and extent.op is Op.MIN and self._inside(extent.lhs)
        return TRUE if known else self.facts.at_least_one(extent)

    def _inside(self, rest: s.Scalar) -> bool:
        """Tell whether what is left of an extent is surely something: a constant extent in which each block starts."""
        return all(leaf in self.start for leaf in s.leaves(rest))

    # ---- products ----

    def _change(self, stmt: k.Stmt) -> Change | None:
        """Return what a statement does to a chain. Of a part without rows or columns nothing is stored: what it holds is no matter."""
        if id(stmt) in self.part.blocked:
            one = self.part.blocked[id(stmt)]
            chain = self.chains.chains[one.product.chain]
            return Change(chain.id, chain.name, one.product.restarts, self._terms(one)[1])
        if isinstance(stmt, k.Alloc):
            chain = self.chains.made_for(stmt.buffer)
            return Change(chain.id, chain.name, clears=True)
        return None

    def _terms(self, one: Blocked) -> tuple[s.Scalar, s.Scalar]:
        """Return how many terms a product has, and the condition that there are any."""
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
        with self.b.when(both(both(self._some(block.valid_rows), self._some(block.valid_cols)), terms)):
            acc = self._acc(chain, block.valid_rows, block.valid_cols)
            self.b.declare(acc)
            ProductBlock(self.b, self.facts, self.rooms, one, block, self._chunk(one), self.whole, self.starts).emit(acc, depth, fresh)

    def _chunk(self, one: Blocked) -> int:
        return next(chunk for at, chunk in self.part.residence.chunks.items() if self.part.blocked[at] is one)

    # ---- stores ----

    def _store(self, stmt: k.Store) -> None:
        b, chain = self.b, self.chains.chains[self.chains.stored[id(stmt)]]
        (rows, cols), fresh = self.facts.valid(stmt), self.fresh[id(stmt)][chain.id]
        told = isinstance(rows, s.Select) and rows.then == ZERO    # that nothing is stored of no terms
        wanted = (rows.other if isinstance(rows, s.Select) and told and rows != chain.valid_rows else rows), cols
        given = self.facts.settle(s.minimum(wanted[0], chain.valid_rows)), self.facts.settle(s.minimum(wanted[1], chain.valid_cols))
        if given != wanted or not (told or fresh == FALSE):
            self._refuse_zeros(stmt, chain, wanted, fresh)
        block = self._block(chain)
        extents = self._rest(given[0], block.row, block.rows), self._rest(given[1], block.col, block.cols)
        some = both(self._some(extents[0]), self._some(extents[1]))
        with b.when(both(inside_of(b, stmt, given), both(negated(fresh), some))):
            at = (s.add(b.scalar(stmt.row), block.row), s.add(b.scalar(stmt.col), block.col))
            b.add(tp.GmStore(stmt.param, self._acc(chain, *extents), *at, span=stmt.span))

    def _refuse_zeros(self, stmt: k.Store, chain: Chain, wanted: tuple[s.Scalar, s.Scalar], fresh: s.Scalar) -> None:
        given = " x ".join(map(print_scalar, (chain.valid_rows, chain.valid_cols)))
        found = f"{given} from valid parts of its operands" if fresh == FALSE else "a sum that may have no terms"
        raise CubeError(
            f"zeros of `{chain.name}` would be stored that no product makes", stmt.span,
            expected=f"{' x '.join(map(print_scalar, wanted))}, all of them sums of products", found=found,
            help="store the valid part only, pto.store(..., valid=(rows, cols)), or bind views of equal extents")

    # ---- loops and branches ----

    def _for(self, stmt: k.For) -> None:
        b = self.b
        start, stop, step = (self.facts.settle(bound) for bound in (stmt.start, stmt.stop, stmt.step))
        b.ranges[stmt.var] = turns_of(start, stop, step)
        with b.inside() as body:
            self.body(stmt.body)
        b.add(tp.Loop(stmt.var, start, stop, step, tuple(body), stmt.span))

    def _if(self, stmt: k.If) -> None:
        b = self.b
        with b.inside() as then:
            self.body(stmt.then)
        with b.inside() as other:
            self.body(stmt.other)
        b.add(tp.Branch(self.facts.settle(stmt.condition), tuple(then), tuple(other), stmt.span))

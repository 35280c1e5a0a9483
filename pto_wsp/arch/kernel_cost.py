"""Compute the cost of one task of a kernel as formulas: bytes moved, and cycles.

The cost of a task is fixed when it is submitted, so where a kernel reads a number from a tile, the cost is the most of all its values.

`kernel_traffic`: loads and gathers bring bytes from the shared memory, stores and scatters take bytes back. Caches are not modelled: each
load counts. A kernel of unknown work moves its bound tensors once.

>>> print_scalar(kernel_traffic(scale))
'x.shape[0] * x.shape[1] * 4 + y.shape[0] * y.shape[1] * 4'

`kernel_cost`: on `unit` nothing overlaps: a tile op costs rows * cols of its largest tile, a matmul m * k * n, a load or store the elements
that it moves, a sort of rows rows * cols * log2(cols), and buffers are free. On other archs pipes overlap.

>>> print_scalar(kernel_cost(rmsnorm_tile, unit))
'x.shape[0] * x.shape[1] + out.shape[0] * out.shape[1] + 6160'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from pto_wsp.arch.model import Arch
from pto_wsp.arch.overlap import (
    PIPES,
    PipeStage,
    Stages,
    at_most,
    either,
    elements_moved,
    repeated,
    rows_moved,
    times_of,
    total_of,
    trips_of,
)
from pto_wsp.errors import ExpressionSizeError, ValueUseError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.source import here
from pto_wsp.values import dataclass


def kernel_traffic(kernel: k.Kernel) -> s.Scalar:
    """Return the bytes that one task moves, in terms of `ParamExtent` for bound extents and `ParamScalar` for scalar parameters."""
    if not kernel.has_meaning:
        return total_of(_bound(param) for param in kernel.memory_params)
    tiles = {param.name: param.type for param in kernel.params if isinstance(param, k.TileParam)}
    return at_most(_body(kernel.body, tiles))


def _bound(param: k.TileParam | k.TensorParam) -> s.Scalar:
    dtype = param.dtype
    once = _bytes(s.mul(s.ParamExtent(param.name, 0), s.ParamExtent(param.name, 1)), dtype)
    return s.mul(once, s.Const(int(param.role.reads) + int(param.role.writes)))


def _body(body: Sequence[k.Stmt], tiles: Mapping[str, TileType]) -> s.Scalar:
    return total_of(_bytes_moved(stmt, tiles) for stmt in body)


def _bytes_moved(stmt: k.Stmt, tiles: Mapping[str, TileType]) -> s.Scalar:
    match stmt:
        case k.Load():
            return _bytes(elements_moved(stmt, tiles), stmt.result.type.dtype)
        case k.Store():
            return _bytes(elements_moved(stmt, tiles), stmt.value.type.dtype)
        case k.Gather(result):
            return _bytes(rows_moved(stmt, result.type), result.type.dtype)
        case k.Scatter(_, _, value):
            return _bytes(rows_moved(stmt, value.type), value.type.dtype)
        case k.If(condition, then, other):
            return either(condition, _body(then, tiles), _body(other, tiles))
        case k.For():
            return repeated(stmt, _body(stmt.body, tiles))
        case k.Rows() | k.Columns():
            return _body(stmt.body, tiles)
        case k.Compute() | k.Accumulate() | k.Read() | k.Write() | k.WritePart() | k.Alloc() | k.Item() | k.Print() | k.FiniteCheck():
            return s.Const(0)
        case _:
            assert_never(stmt)


def _bytes(elements: s.Scalar, dtype: DType) -> s.Scalar:
    return s.mul(elements, s.Const(dtype.nbytes))


# -- cycles ----------------------------------------------------------------------------------------


_MAX_ITERATIONS = 1 << 16


def kernel_cost(kernel: k.Kernel, arch: Arch) -> s.Scalar:
    """Return the cycles of one task, in terms of `ParamExtent` for bound extents and `ParamScalar` for scalar parameters.

    Raises: C115 for an arch that does not give the speed of a unit.
    """
    return times_of(kernel, arch).total


@dataclass(frozen=True, slots=True)
class PipeCost:
    """The work of one pipe: cycles as text, a number or a formula, and the source of the arch's numbers."""

    pipe: str
    cycles: str
    source: str


@dataclass(frozen=True, slots=True, repr=False)
class KernelCost:
    """The cost of one task of a kernel on an arch. `total`: cycles as a number; `formula`: the same as text, also if it is no number."""

    kernel: str
    arch: str
    pipes: tuple[PipeCost, ...]
    formula: str
    missing: tuple[str, ...]     # parameters and extents that must be given for a number

    @property
    def total(self) -> int:
        """Return the cycles of one task.

        Raises: T206 if they depend on a value that was not given.
        """
        if self.missing:
            raise ValueUseError(f"the cost of kernel `{self.kernel}` is a formula", here(), expected="a number for " +
                                ", ".join(self.missing), found=self.formula,
                                help=f"give a bound: cost(..., {', '.join(f'{name}=...' for name in self.missing)})")
        return int(self.formula)

    def __repr__(self) -> str:
        rows = [(pipe.pipe, pipe.cycles, pipe.source) for pipe in self.pipes] + [("total", self.formula, "")]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        lines = [f"{name:<{widths[0]}}  {cycles:>{widths[1]}}  {source}".rstrip() for name, cycles, source in rows]
        return "\n".join((f"kernel {self.kernel} on {self.arch}, cycles of one task", *lines))


def cost_table(kernel: k.Kernel, arch: Arch, scalars: Mapping[str, int | float], extents: Mapping[str, tuple[int, int]]) -> KernelCost:
    """Return the cost of a kernel with scalar parameters and extents substituted; Tile parameters are whole by default.

    Raises: C115 for an arch that does not give the speed of a unit; T212 for a loop with too many iterations to sum.
    """
    put_in = _put_in(kernel, scalars, extents)
    times = times_of(kernel, arch)
    busy = {pipe: _fold_constants(put_in(cycles)) for pipe, cycles in times.busy.items()}
    total = _fold_constants(put_in(times.total))
    used = [pipe for pipe in PIPES if busy[pipe] != s.Const(0)]
    shown = tuple(PipeCost(pipe, print_scalar(busy[pipe]), _source(arch, pipe)) for pipe in used)
    return KernelCost(kernel.name, arch.name, shown, print_scalar(total), tuple(dict.fromkeys(_missing(total))))


def _put_in(kernel: k.Kernel, scalars: Mapping[str, int | float],
            extents: Mapping[str, tuple[int, int]]) -> Callable[[s.Scalar], s.Scalar]:
    """Return the function that puts known numbers into a formula; Tile parameters are whole by default."""
    shapes = {**{p.name: p.type.shape for p in kernel.params if isinstance(p, k.TileParam)}, **extents}

    def known(leaf: s.Scalar) -> s.Scalar | None:
        match leaf:
            case s.ParamScalar(name) if name in scalars:
                return s.Const(scalars[name])
            case s.ParamExtent(name, dim) if name in shapes:
                return s.Const(shapes[name][dim])
            case _:
                return None

    return lambda node: s.substitute(node, known)


# -- by line -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class LineCosts:
    """The cycles of one task by source line. `cycles`: (file, line) to pipe to cycles; the scalar pipe only issues and is left out.

    `trips`: (file, line) of a loop to its iterations, None where they are not known: such a loop is counted once. `is_exact`: no such loop,
    and no branch whose side is not known, of which both sides count.
    """

    cycles: Mapping[tuple[str, int], Mapping[str, int]]
    trips: Mapping[tuple[str, int], int | None]
    is_exact: bool


def line_costs(kernel: k.Kernel, arch: Arch, scalars: Mapping[str, int | float], extents: Mapping[str, tuple[int, int]]) -> LineCosts:
    """Return the cycles that each line of a kernel keeps each pipe busy, as far as they are known.

    Raises: C115 for an arch that does not give the speed of a unit.
    """
    put_in = _put_in(kernel, scalars, extents)
    stages = Stages(kernel, arch)
    cycles: dict[tuple[str, int], dict[str, int]] = {}
    trips: dict[tuple[str, int], int | None] = {}
    exact = True

    def number(amount: s.Scalar) -> int | None:
        try:
            known = _fold_constants(put_in(at_most(amount)))
        except ExpressionSizeError:
            return None
        return int(known.value) if isinstance(known, s.Const) else None

    def count(stage: PipeStage, around: Sequence[tuple[k.For | k.If, bool]]) -> int:
        nonlocal exact
        amount = stage.cycles
        if isinstance(amount, s.Const) and not around:
            return int(amount.value)
        for stmt, side in reversed(around):
            amount = repeated(stmt, amount) if isinstance(stmt, k.For) else _on_side(stmt, amount, then=side)
        found = number(amount)
        if found is None:
            exact, found = False, stage.whole
            for stmt, _ in around:
                found *= (number(trips_of(stmt)) if isinstance(stmt, k.For) else None) or 1
        return found

    def walk(body: Sequence[k.Stmt], around: tuple[tuple[k.For | k.If, bool], ...]) -> None:
        for stmt in body:
            match stmt:
                case k.For():
                    trips[stmt.span.file, stmt.span.line] = number(trips_of(stmt))
                    walk(stmt.body, (*around, (stmt, True)))
                case k.If():
                    walk(stmt.then, (*around, (stmt, True)))
                    walk(stmt.other, (*around, (stmt, False)))
                case k.Rows() | k.Columns():
                    walk(stmt.body, around)
                case _:
                    line = stmt.span.file, stmt.span.line
                    for stage in stages.of(stmt):
                        pipes = cycles.setdefault(line, {})
                        pipes[stage.pipe] = pipes.get(stage.pipe, 0) + count(stage, around)

    walk(kernel.body, ())
    return LineCosts(cycles, trips, exact)


def _on_side(stmt: k.If, amount: s.Scalar, *, then: bool) -> s.Scalar:
    return s.select(stmt.condition, amount, s.Const(0)) if then else s.select(stmt.condition, s.Const(0), amount)


def _source(arch: Arch, pipe: str) -> str:
    return "by definition" if arch.neutral else arch.unit(pipe).source


def _fold_constants(node: s.Scalar) -> s.Scalar:
    """Return the number of a formula without unknowns, else the formula."""
    if _missing(node):
        return node
    left = iter(range(_MAX_ITERATIONS))

    def count_summand() -> None:
        if next(left, None) is None:
            raise ExpressionSizeError("the cost of a kernel differs between iterations of a loop with too many iterations", here(),
                                      expected=f"at most {_MAX_ITERATIONS:,} iterations, which are added up one by one",
                                      help="leave the bound out for the formula, or ask for fewer iterations")

    return s.Const(int(s.evaluate(node, lambda leaf: leaf.value if isinstance(leaf, s.Const) else 0, count_summand)))


def _missing(node: s.Scalar) -> tuple[str, ...]:
    return tuple(leaf.name for leaf in s.leaves(node) if isinstance(leaf, s.ParamScalar | s.ParamExtent))

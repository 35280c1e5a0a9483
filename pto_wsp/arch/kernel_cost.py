"""What one task of a kernel costs, in cycles, as a formula in what is known only when it runs.

On `unit` nothing overlaps: a tile op costs rows * cols of its largest tile, a matmul m * k * n, a load or store the elements
that it moves, an order of rows rows * cols * log2(cols); reading, writing and allocating buffers costs nothing. On other archs pipes
overlap.

>>> print_scalar(kernel_cost(rmsnorm_tile, unit))
'x.shape[0] * x.shape[1] + out.shape[0] * out.shape[1] + 6160'
"""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.arch.model import Arch
from pto_wsp.arch.overlap import times_of
from pto_wsp.arch.pipes import PIPES
from pto_wsp.errors import ArgumentKindError
from pto_wsp.expr import kernel as k
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.values import dataclass

_MOST_TURNS = 1 << 16


def kernel_cost(kernel: k.Kernel, arch: Arch) -> s.Scalar:
    """Return the cycles of one task; extents that a binding decides are `ParamExtent`, Scalar parameters `ParamScalar`.

    Raises: C104 for an arch that does not say how fast a unit is.
    """
    return times_of(kernel, arch).total


@dataclass(frozen=True, slots=True)
class PipeCost:
    """The work of one pipe: cycles as text, a number or a formula, and where the arch has its numbers from."""

    pipe: str
    cycles: str
    source: str


@dataclass(frozen=True, slots=True, repr=False)
class KernelCost:
    """What one task of a kernel costs on an arch. `total`: its cycles; `formula`: the same as text, also where it is no number."""

    kernel: str
    arch: str
    pipes: tuple[PipeCost, ...]
    formula: str
    missing: tuple[str, ...]     # what must be known for a number

    @property
    def total(self) -> int:
        """The cycles of one task.

        Raises: T205 when they depend on a value that was not given.
        """
        if self.missing:
            raise ArgumentKindError(f"the cost of kernel `{self.kernel}` is a formula", here(), expected="a number for " +
                                    ", ".join(self.missing), found=self.formula,
                                    help=f"give a bound: cost(..., {', '.join(f'{name}=...' for name in self.missing)})")
        return int(self.formula)

    def __repr__(self) -> str:
        rows = [(pipe.pipe, pipe.cycles, pipe.source) for pipe in self.pipes] + [("total", self.formula, "")]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        lines = [f"{name:<{widths[0]}}  {cycles:>{widths[1]}}  {source}".rstrip() for name, cycles, source in rows]
        return "\n".join((f"kernel {self.kernel} on {self.arch}, cycles of one task", *lines))


def cost_table(kernel: k.Kernel, arch: Arch, scalars: Mapping[str, int | float], extents: Mapping[str, tuple[int, int]]) -> KernelCost:
    """Return the cost of a kernel with Scalar parameters and extents put in; a Tile parameter is bound whole where none are given.

    Raises: C104 for an arch that does not say how fast a unit is; T205 for a loop with too many turns to add up one by one.
    """
    shapes = {**{p.name: p.type.shape for p in kernel.params if isinstance(p, k.TileParam)}, **extents}

    def put_in(node: s.Scalar) -> s.Scalar:
        def known(leaf: s.Scalar) -> s.Scalar | None:
            match leaf:
                case s.ParamScalar(name) if name in scalars:
                    return s.Const(scalars[name])
                case s.ParamExtent(name, dim) if name in shapes:
                    return s.Const(shapes[name][dim])
                case _:
                    return None
        return s.substitute(node, known)

    times = times_of(kernel, arch)
    busy = {pipe: _folded(put_in(cycles)) for pipe, cycles in times.busy.items()}
    total = _folded(put_in(times.total))
    used = [pipe for pipe in PIPES if busy[pipe] != s.Const(0)]
    shown = tuple(PipeCost(pipe, print_scalar(busy[pipe]), _source(arch, pipe)) for pipe in used)
    return KernelCost(kernel.name, arch.name, shown, print_scalar(total), tuple(dict.fromkeys(_missing(total))))


def _source(arch: Arch, pipe: str) -> str:
    return "by definition" if arch.neutral else arch.unit(pipe).source


def _folded(node: s.Scalar) -> s.Scalar:
    """Return the number of a formula that has nothing unknown left, else the formula."""
    if _missing(node):
        return node
    left = iter(range(_MOST_TURNS))

    def turn() -> None:
        if next(left, None) is None:
            raise ArgumentKindError("the cost of a kernel differs from turn to turn of a loop with too many turns", here(),
                                    expected=f"at most {_MOST_TURNS:,} turns, which are added up one by one",
                                    help="leave the bound out for the formula, or ask for fewer turns")

    return s.Const(int(s.evaluate(node, lambda leaf: leaf.value if isinstance(leaf, s.Const) else 0, turn)))


def _missing(node: s.Scalar) -> tuple[str, ...]:
    return tuple(leaf.name for leaf in s.leaves(node) if isinstance(leaf, s.ParamScalar | s.ParamExtent))

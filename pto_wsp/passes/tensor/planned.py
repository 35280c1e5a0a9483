"""Define what the passes of the tensor level run on: a function together with the plan that says how it is cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import IntEnum

from pto_wsp.arch.model import Arch
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.scalar import Scalar, SymbolRef
from pto_wsp.ir.tensor_function import Statement, TensorFunction
from pto_wsp.ir.tensor_layout import TensorLayout
from pto_wsp.passes.tensor.effects import named_by
from pto_wsp.passes.tensor.groups import KernelGroup
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.values import dataclass

USUAL_SIZE = 1024             # that a symbol is planned for
_DEVICES = ("ascend_npu", "pto")
_WITHOUT_PARTS = ("pto",)      # buffers have no addresses there


@dataclass(frozen=True, slots=True)
class PlannedFunction:
    """A function and its plan. Each pass returns a function of the same meaning, and the plan with the choices that it made.

    `groups`: what `partition` found out about the groups of its function, by name, for the passes behind it.
    """

    function: TensorFunction
    plan: TilePlan
    groups: Mapping[str, KernelGroup] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name

    def __str__(self) -> str:
        return f"{self.function}\n\n{self.plan}"


@dataclass(frozen=True, slots=True)
class WholeArray:
    """An array over all ranks: its extents, and the part of each rank."""

    shape: tuple[int, ...]
    layout: TensorLayout


@dataclass(frozen=True, slots=True, eq=False)
class LocalArrays:
    """What the parts of a function that each rank runs are of: `whole`, by the id of a part.

    `scalars`: the symbols of a rank, by number, each as a scalar of the positions along the mesh's axes, which are symbols, too: `at`.
    `sizes`: the most that each symbol of a rank can be, by name.
    """

    mesh: Mesh
    whole: Mapping[int, WholeArray]
    scalars: Mapping[SymbolRef, Scalar]
    at: Mapping[str, SymbolRef]
    sizes: Mapping[str, int]


class Fineness(IntEnum):
    """How finely a value is cut, at least. A default plan tries the next where the kernel of a value has no form as tiles."""

    ANY = 0
    APART = 1            # a kernel computes no other value
    SUMS = 2             # a tile has several positions along the last axis, and along the axis that a sum walks
    COLUMNS = 3          # along the last axis
    POSITIONS = 4        # along no axis

    @property
    def reason(self) -> str:
        """Why values are cut so, in a line of a plan; "" where any cut has a form."""
        if not self:
            return ""
        held = {Fineness.APART: "alone in a kernel", Fineness.SUMS: "several positions of the last axis and of the sum's alone",
                Fineness.COLUMNS: "several positions of the last axis alone", Fineness.POSITIONS: "one position of every axis"}[self]
        return f"cut finer, {held}: coarser tiles have no form in a kernel"


@dataclass(frozen=True, slots=True)
class TensorContext:
    """What the passes know beside: the arch, the target, and the numbers that stand for symbols in costs, by name.

    `ranks`: of a function that each rank of a mesh runs on its parts, what the parts are of. `shares`: by group and memory, the part of
    the memory that tiles may take, 1 where nothing is said; the rest is the working memory of instructions. `fineness`: how finely values
    are cut at least, by name: those of kernels that had no form as tiles. `of_tasks`: loops that look up elements, in vain in a kernel.
    `bounds`: the most that symbols may be, where tiles are chosen.
    """

    arch: Arch
    target: str
    sizes: Mapping[str, int]
    ranks: LocalArrays | None = None
    shares: Mapping[tuple[str, str], float] = field(default_factory=dict)
    fineness: Mapping[str, Fineness] = field(default_factory=dict)
    of_tasks: frozenset[str] = frozenset()
    bounds: Mapping[str, int] = field(default_factory=dict)

    def fineness_of(self, statements: Iterable[Statement]) -> Fineness:
        """Return how finely the values of statements are cut, at least."""
        if not self.fineness:
            return Fineness.ANY
        return max((self.fineness.get(array.name, Fineness.ANY) for one in statements for array in named_by(one)), default=Fineness.ANY)

    def arch_of_tiles(self, group: str) -> Arch:
        """Return the arch with as much memory as the tiles of a group may take."""
        found = self.arch
        for (name, memory), share in self.shares.items():
            usable = self.arch.memory(memory).usable_bytes
            if name == group and usable is not None:
                found = found.with_memory(memory, capacity_bytes=int(usable * share), reserved_bytes=0)
        return found

    @property
    def makes_package(self) -> bool:
        """Whether the target makes a package for a device, where kernels address their memories by constants."""
        return self.target in _DEVICES

    @property
    def has_parts(self) -> bool:
        """Whether kernels of the target may take a part of the columns of a buffer."""
        return self.target not in _WITHOUT_PARTS

    def reads_entries(self, dtype: DType) -> bool:
        """Tell whether kernels of the target read entries of a table of a dtype: cores of a device compute on no 8 bytes."""
        return self.has_parts and not (self.makes_package and dtype.nbytes == 8)

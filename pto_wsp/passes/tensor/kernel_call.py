"""A printed kernel and its call: lines, parameters, and the views of memory that a call binds to them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from math import prod

from pto_wsp.ir import scalar
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Scalar
from pto_wsp.ir.tensor_function import Array
from pto_wsp.passes.tensor.flatten import DimPart, DimSlice, Flat
from pto_wsp.passes.tensor.scalar_text import FUNCTIONS
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

# names of the module that kernels use
RESERVED = frozenset({*keyword.kwlist, "pto", *FUNCTIONS.values(), "ceildiv", "math", "In", "Out", "InOut", "Tile", "Tensor", "Scalar",
                      "DType", *(dtype.name for dtype in DType)})


def identifier(name: str) -> str:
    """Return a value's name as a Python identifier: `normed.mean` is normed_mean, `out[1]` out_1."""
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "value"
    return f"v{text}" if text[0].isdigit() else text


@dataclass(frozen=True, slots=True)
class ModuleLine:
    """A line of the module: the text without indentation, the depth of indentation, and the span of the user's line behind the text."""

    text: str
    depth: int = 0
    span: Span = UNKNOWN


@dataclass(slots=True, eq=False)
class PrintedParam:
    """A parameter that binds memory: a tile, or a region of any size."""

    name: str
    array: Array
    argument: str
    flat: Flat
    shape: tuple[int, ...] | None     # None: In[Tensor]
    reads: bool = False
    writes: bool = False

    @property
    def n_tiles(self) -> int:
        """The number of tiles: that of a stack, else 1."""
        return 1 if self.shape is None else prod(self.shape[:-2])

    @property
    def annotation(self) -> str:
        """The annotation of the parameter."""
        role = "InOut" if self.reads and self.writes else "Out" if self.writes else "In"
        if self.shape is None:
            return f"{role}[Tensor]"
        return f"{role}[Tile[{', '.join(map(str, self.shape))}, {self.array.dtype.name}]]"


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel, and the call of it: the text of the function without its name, its lines, and the arguments in order."""

    params: tuple[str, ...]
    body: tuple[ModuleLine, ...]
    arguments: tuple[str, ...]
    locals: frozenset[str]
    dtypes: frozenset[DType]
    span: Span

    @property
    def shape(self) -> tuple[str, ...]:
        """The kernel with its names numbered: equal for kernels that differ in names alone."""
        numbers: dict[str, str] = {}

        def number(found: re.Match[str]) -> str:
            name = found.group()
            return numbers.setdefault(name, f"_{len(numbers)}") if name in self.locals else name

        texts = (*self.params, *(f"{'    ' * line.depth}{line.text}" for line in self.body))
        return tuple(re.sub(r"(?<![\w.\"'])[A-Za-z_]\w*", number, text) for text in texts)


def binding(flat: Flat, tensor: str, text_of: Callable[[Scalar], str], varies: Callable[[Scalar], bool]) -> str:
    """Return the view that a task binds, as text of the workload; what varies inside of the task stays whole."""
    text = tensor
    if not flat.dims:
        return f"{text}.reshape(1, 1)"
    if flat.shape is not None:
        text += f".reshape({', '.join(map(text_of, flat.shape))})"
    if any(one.within is not None for one in flat.dims):
        text += _bracket([":" if one.within is None else _part_text(one.within, text_of) for one in flat.dims])
    bound = flat.bound or (len(flat.dims) - 1,)
    entries: list[str] = []
    limits: list[str] = []
    for at, one in enumerate(flat.dims):
        moves = varies(one.start) or varies(one.extent)
        if at not in bound:
            entries.append(text_of(one.start))
            continue
        if one.is_open:
            entries.append(":" if one.is_all else f"{text_of(one.start)}:{text_of(scalar.add(one.start, one.extent))}")
            limits.append("None")
            continue
        entries.append(":" if moves else _slice(one, text_of))
        natural = one.ends_with_axis or one.size == 1
        limits.append("None" if moves or not (one.is_short or one.size == 1) else str(one.size) if natural else text_of(one.extent))
        if not moves and not one.is_short:
            limits[-1] = "None"
    text += _bracket(entries)
    if any(limit != "None" for limit in limits):
        text += f".clip({', '.join(limits)})"
    if len(flat.bound) == 1 and flat.dims[flat.bound[0]].is_open:
        text += f".reshape({text_of(flat.dims[flat.bound[0]].extent)}, 1)"
    return text


def _part_text(part: DimPart, text_of: Callable[[Scalar], str]) -> str:
    return f"{text_of(part.start)}:{text_of(part.stop)}" + (f":{part.step}" if part.step != 1 else "")


def _slice(one: DimSlice, text_of: Callable[[Scalar], str]) -> str:
    start = "" if one.start == Const(0) else text_of(one.start)
    if one.is_all:
        return ":"
    if one.is_short:
        return f"{start}:"
    stop = scalar.add(one.start, Const((one.size - 1) * one.step + 1))
    end = "" if stop == one.counted else text_of(stop)
    return f"{start}:{end}" + (f":{one.step}" if one.step != 1 else "")


def _bracket(entries: Sequence[str]) -> str:
    kept = list(entries)
    while kept and kept[-1] == ":":
        kept.pop()
    return f"[{', '.join(kept)}]" if kept else ""


def certainly_apart(one: Flat, other: Flat) -> bool:
    """Tell whether two parts of one tensor are certainly disjoint: along some dimension, one part ends before the other begins."""
    if one.shape != other.shape:
        return False
    for a, b in zip(one.dims, other.dims, strict=True):
        if a.within != b.within or a.step != 1 or b.step != 1:
            continue
        gap, back = scalar.sub(b.start, a.start), scalar.sub(a.start, b.start)
        if (isinstance(gap, Const) and gap.value >= a.size) or (isinstance(back, Const) and back.value >= b.size):
            return True
    return False

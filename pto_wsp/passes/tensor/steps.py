"""Say in which steps a task takes its tile, as the plan's `batch` and `inner` have it: loops of the kernel, around tiles that fit.

    batch={"normed": 4}                                four tiles of 16 rows a task: 64 rows, 16 at a time
    inner={"out": {"m": 32, "n": 64}}                  a task's tile of 128 rows and 256 columns, 32 rows and 64 columns at a time
    inner={"out": {"n": 64, "m": 32, "stay": "right"}} the columns outside, so that the block of the right operand stays for all rows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pto_wsp.errors import PlanConflictError
from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Const
from pto_wsp.ir.tensor_function import Apply
from pto_wsp.ops.spec import Convert, Elementwise, Expand, Matmul
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.axes import AxisRole, Dim
from pto_wsp.passes.tensor.group_costs import axis_names, said_of
from pto_wsp.passes.tensor.groups import KernelGroup, bound_of
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tiling_entries import STAY, PlanEntry
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class TaskStep:
    """The steps along one axis of a task's tile. `tile`: positions that the task computes; `step`: positions of each step.

    `name`: of the loop; `said`: the entry of the plan.
    """

    tile: int
    step: int
    name: str
    said: PlanEntry


def steps_of(name: str, group: KernelGroup, plan: TilePlan, order: Sequence[Dim], bounds: Mapping[str, int]) -> dict[Dim, TaskStep]:
    """Return the steps of a group's tasks by axis, the outermost loop first. `order`: the axes of the loops of tasks.

    Raises: J303 for entries that contradict each other.
    """
    batch = said_of(plan, "batch", name, group)
    batched = batch is not None and batch.first != 1
    if not batched and not _said_steps(name, group, plan):
        return {}
    tiles = {axis: said.first for axis in order if (said := said_of(plan, "tiles", name, group, axis)) is not None
             and isinstance(said.first, int)}
    found = _of_product(name, group, plan, tiles, bounds)
    if batch is None or not isinstance(batch.first, int) or batch.first == 1:
        return found
    axis = batched_axis(group, tiles, order)
    if axis is None:
        raise PlanConflictError(f"`{name}` has no neighbouring tiles", group.statements[-1].span, expected="an axis that is cut into tiles",
                                found=f"{batch}, and one task", help="take a smaller tile, or leave the entry out")
    if axis in found:
        raise PlanConflictError(f"two entries are for steps of `{name}` along one axis", group.statements[-1].span,
                                expected="one of the two", found=f"{batch} and {found[axis].said}")
    tile = tiles[axis]
    return {axis: TaskStep(tile * batch.first, tile, "tile", batch), **found}


def batched_axis(group: KernelGroup, tiles: Mapping[Dim, int], order: Sequence[Dim]) -> Dim | None:
    """Return the axis along which a task computes neighbouring tiles: the innermost loop of tasks with more than one iteration."""
    return next((axis for axis in reversed(order) if axis in tiles and group.axes.extent(axis) != Const(tiles[axis])), None)


def product_steps(name: str, group: KernelGroup, plan: TilePlan) -> dict[Dim, int]:
    """Return the m and n steps of a group's product by axis, the outermost loop first: the operand that stays is loaded there."""
    found = _said_steps(name, group, plan)
    stay = None if len(found) < 2 else said_of_product(plan, name, group, STAY)
    letters = "nm" if stay is not None and stay.first == "right" else "mn"
    return {found[letter][0]: int(str(found[letter][1].first)) for letter in letters if letter in found}


def steps_to_try(name: str, group: KernelGroup, plan: TilePlan, *, by_hand: bool) -> Iterator[tuple[str, Dim, int]]:
    """Yield (m or n, axis, step) for the steps of a group's product that may pay: along one axis, with the operand without it in place.

    Nothing where the group does more than multiply and compute element by element, or where the plan says something of the steps, but
    `by_hand`: whatever the plan says of them.
    """
    said = not by_hand and any(said_of_product(plan, name, group, word, counts=False) is not None for word in ("m", "n", STAY))
    if said or not all(
            isinstance(item, flow.Do) and isinstance(item.leaf, Apply)
            and isinstance(TABLE.get(item.leaf.op), Elementwise | Convert | Expand | Matmul) for item in group.items):
        return
    for letter, axis in _product_axes(group).items():
        if letter not in axis_names(group).values() and said_of(plan, "tails", name, group, axis, counts=False) is None:
            yield from ((letter, axis, step) for step in _STEPS)


_STEPS = (64, 128)      # positions: shorter steps pay more start-ups, longer ones leave less of a tile to overlap


def said_of_product(plan: TilePlan, name: str, group: KernelGroup, word: str, *, counts: bool = True) -> PlanEntry | None:
    """Return what the plan says under `inner` of a group's product: m, n, or which operand stays. A symbol of that name goes first."""
    product = _product_of(group)
    if product is None or word in axis_names(group).values():
        return None
    return plan.said("inner", name, word, [(product.results[0].name, word)], counts=counts)


def _product_of(group: KernelGroup) -> Apply | None:
    return next((one for one in group.statements if isinstance(one, Apply) and isinstance(TABLE.get(one.op), Matmul)), None)


def _said_steps(name: str, group: KernelGroup, plan: TilePlan) -> dict[str, tuple[Dim, PlanEntry]]:
    """Return the axis and the entry of each step by hand: of m, the product's rows, and n, its columns, or of the axis by its name."""
    found: dict[str, tuple[Dim, PlanEntry]] = {}
    for letter, axis in _product_axes(group).items():
        said = said_of_product(plan, name, group, letter) or said_of(plan, "inner", name, group, axis)
        if said is not None and isinstance(said.first, int):
            found[letter] = axis, said
    return found


def _product_axes(group: KernelGroup) -> dict[str, Dim]:
    """Return the axes of a group's product that tasks cut: m, its rows, and n, its columns."""
    product = _product_of(group)
    axes = () if product is None else group.axes.of_array(product.results[0])[-2:]
    return {letter: axis for letter, axis in zip("mn", axes, strict=False)
            if axis is not None and axis in group.tiled and len(axes) == 2}


def _of_product(name: str, group: KernelGroup, plan: TilePlan, tiles: Mapping[Dim, int], bounds: Mapping[str, int]) -> dict[Dim, TaskStep]:
    found = _said_steps(name, group, plan)
    for letter, (axis, entry) in found.items():
        if isinstance(entry.first, int) and entry.first > tiles[axis]:
            raise PlanConflictError(f"the step of {letter} is no part of the tile of `{name}`", group.statements[-1].span,
                                    expected=f"at most the tile of {tiles[axis]}", found=str(entry),
                                    help="give the tile too: tiles={...} is what a task computes, inner what a step of it does")
    stay = said_of_product(plan, name, group, STAY) if len(found) == 2 else None
    walked = None if stay is None else next(
        (said for axis in group.whole if AxisRole.SUMMED in group.axes.roles(axis)
         and (said := said_of(plan, "inner", name, group, axis)) is not None and isinstance(said.first, int)
         and ((bound := bound_of(group.axes, axis, bounds)) is None or bound > said.first)), None)
    if stay is not None and walked is not None:
        raise PlanConflictError(f"no operand of `{name}` can stay while its sum is walked in steps", group.statements[-1].span,
                                expected="the whole of the summed axis in a task", found=f"{walked} and {stay}",
                                help="give inner k the extent of the axis, and smaller m and n so that the operands fit")
    return {axis: TaskStep(tiles[axis], step, "m" if "m" in found and found["m"][0] == axis else "n",
                           next(said for one, said in found.values() if one == axis))
            for axis, step in product_steps(name, group, plan).items() if step < tiles[axis]}

"""Tile plans that a seed draws: changes by hand of a function's default plan, one on the other, each legal where `but` takes it."""

from __future__ import annotations

import random

from pto_wsp.errors import PtoError
from pto_wsp.schedule.tiling import TilePlan

KEPT = ("task", "whole", "again")
STEPS_OF_TILES = ("m", "n", "stay")      # of a task's tile, whatever the sums are
OF_SUMS = frozenset({"inner", "split", "allow"})      # keys that may change the order of sums


def changed(plan: TilePlan, draw: random.Random, n_changes: int = 4) -> TilePlan:
    """Return the plan with some entries by hand. A change that the plan refuses, as one that does not fit, is left out."""
    for _ in range(n_changes):
        key, said = _change(plan, draw)
        try:
            plan = plan.but(**{key: said})
        except PtoError as problem:
            if not problem.code.startswith("J3"):
                raise
    return plan


def _change(plan: TilePlan, draw: random.Random) -> tuple[str, dict[str, object]]:
    sized = [entry for entry in plan.entries if entry.key in ("tiles", "inner") and entry.axis and type(entry.value) is int]
    groups = [(entry.name, entry.value) for entry in plan.entries if entry.key == "groups" and isinstance(entry.value, tuple)]
    loops = [entry for entry in plan.entries if entry.key == "loops"]
    kind = draw.choice(("tiles", "tiles", "tiles", "tails", "order", "keep", "groups", "loops", "split", "batch", "steps"))
    if kind == "batch" and groups:
        return "batch", {draw.choice(groups)[0]: draw.choice((2, 3, 5))}
    if kind == "steps" and groups:
        return "inner", {draw.choice(groups)[0]: {"m": draw.choice((1, 2, 3)), "n": draw.choice((1, 4)),
                                                  **draw.choice(({}, {"stay": "left"}, {"stay": "right"}))}}
    if kind == "tiles" and sized:
        entry = draw.choice(sized)
        return entry.key, {entry.name: {entry.axis: draw.choice((1, 2, 3, 4, 5, 8, 16))}}
    if kind == "tails" and sized:
        axis = draw.choice(sized).axis
        name = draw.choice(sized).name
        sizes = draw.choice(((4, 1), (8, 2, 1), (2, 1), "short"))
        return "tails", {axis: sizes} if not axis.isdigit() else {name: {axis: sizes}}
    if kind == "order" and sized:
        name = draw.choice(sized).name
        axes = [entry.axis for entry in sized if entry.name == name and entry.key == "tiles"]
        draw.shuffle(axes)
        return "order", {name: tuple(axes)}
    if kind == "loops" and loops:
        return "loops", {draw.choice(loops).name: draw.choice(("kernel", "tasks"))}
    if kind == "groups" and len(groups) > 1:
        at = draw.randrange(len(groups) - 1)
        (name, first), (_, second) = groups[at], groups[at + 1]
        return "groups", {name: (*first, *second)}
    values = [value for _, names in groups for value in names]
    if kind == "split" and values:
        return "split", {draw.choice(values): draw.choice((2, 3))}
    if values:
        return "keep", {draw.choice(values): draw.choice(KEPT)}
    return "allow", {"row_scale": True}


def sums_of(plan: TilePlan) -> frozenset[tuple[str, str, str, object]]:
    """Return the entries that may change the order of sums: plans that agree in them give the same bits."""
    return frozenset((*entry.place, entry.value) for entry in plan.entries
                     if entry.key in OF_SUMS and entry.axis not in STEPS_OF_TILES)

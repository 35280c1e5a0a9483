"""What a race looks like, as data: the regions of two accesses in their tensor, and where the user wrote both.

The error of a race carries it (`error.picture`), and `view` draws it.
"""

from __future__ import annotations

from pto_wsp.check.races.witness import Shared, Witness
from pto_wsp.ir.flow import Loop
from pto_wsp.ir.plan import PlanLoop, PlanPipeline, PlanProcess, PlanSides
from pto_wsp.ir.view import print_view
from pto_wsp.source import Span
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class RacingAccess:
    """One of two accesses that race. `iteration`: of the loops around the call, as text; `box`: the elements, a range a dimension."""

    who: str
    verb: str
    view: str
    iteration: str
    box: Shared
    span: Span


@dataclass(frozen=True, slots=True, repr=False)
class RaceRegions:
    """Two accesses of one tensor without an order, with the elements that both touch.

    `loop`: the variable of the loop whose iterations have no order, "" for sides and processes; `loop_span`: its line; `others`: for each
    of its values, what both accesses touch, empty where that is not known.
    """

    tensor: str
    shape: tuple[int, ...]
    elements: str
    shared: Shared
    sides: tuple[RacingAccess, RacingAccess]
    loop: str
    loop_span: Span | None
    others: tuple[tuple[int, Shared, Shared], ...]

    def __repr__(self) -> str:
        return f"RaceRegions({self.elements} by {self.sides[0].who} and {self.sides[1].who})"


def race_regions(witness: Witness, node: PlanLoop | PlanSides | PlanPipeline | PlanProcess) -> RaceRegions | None:
    """Return the picture of a witness; None for regions that are no boxes. `node`: what leaves the two without an order."""
    if witness.boxes is None or not witness.shape:
        return None
    first, second = (RacingAccess(access.who, access.verb, print_view(access.view), witness.iteration(side), box, access.span)
                     for side, (access, box) in enumerate(zip(witness.pair.accesses, witness.boxes, strict=True)))
    loop, span = (node.known_var.name, node.span) if isinstance(node, Loop) else ("", None)
    return RaceRegions(witness.pair.first.view.tensor.shown, witness.shape, witness.elements, witness.shared, (first, second), loop, span,
                       witness.others)

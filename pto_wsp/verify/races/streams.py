"""Order that the schedule adds: tasks of one of its streams run one after another, in the order of their submission."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.plan.model import Submit
from pto_wsp.types.scalar import Scalar
from pto_wsp.verify.races.filters import is_apart
from pto_wsp.verify.races.question import Data, Pair, Question


def ordered_by_streams(pair: Pair, data: Data, lanes: Mapping[int, Scalar]) -> bool:
    """Tell whether it is proved that two accesses are of one stream wherever they touch the same element."""
    statements = [access.statement for access in pair.accesses]
    found = [lanes.get(statement.site) for statement in statements if isinstance(statement, Submit)]
    if len(found) < 2 or found[0] is None or found[1] is None:
        return False
    question = Question(pair, data, pinned=False)
    question.guard()
    question.differ(found[0], found[1])
    return is_apart(question)

"""Outputs of one task on the same elements: the error, for the check of a plan and for the run that finds two on one memory."""

from __future__ import annotations

from pto_wsp.errors import OverlappingOutputsError
from pto_wsp.source import Span, argument_span


def outputs_clash(who: str, span: Span, params: tuple[str, str], views: tuple[str, str], what: str,
                  notes: tuple[str, ...] = ()) -> OverlappingOutputsError:
    """Return the error for two parameters that a task writes; `what` they share."""
    return OverlappingOutputsError(
        f"{who} writes the same elements twice: `{params[0]}` and `{params[1]}` share {what}", argument_span(span, params[1]),
        expected="outputs of a task that have no element in common", found=f"{params[0]} is {views[0]}, {params[1]} is {views[1]}",
        help="give each output elements of its own", notes=notes)

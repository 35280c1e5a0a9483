"""The digest of a plan: equal for plans that give the same files, in any process and any folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum

from pto_wsp.expr.rewrite import field_names
from pto_wsp.plan.model import TaskPlan
from pto_wsp.source import Span


def plan_digest(plan: TaskPlan) -> str:
    """Return the SHA-256 over everything that a plan says; of spans the basename and line, which comments cite."""
    return hashlib.sha256("\n".join(_canonical(plan)).encode()).hexdigest()


def _canonical(node: object) -> Iterator[str]:
    if isinstance(node, tuple):
        yield f"({len(node)}"
        for item in node:
            yield from _canonical(item)
    elif isinstance(node, Span):
        yield f"@{node.short}"
    elif isinstance(node, Enum):
        yield f"{type(node).__name__}.{node.name}"
    elif is_dataclass(node) and not isinstance(node, type):
        yield f"{type(node).__name__} {{"
        for name in field_names(type(node)):
            yield from _canonical(getattr(node, name))
        yield "}"
    else:
        yield f"{type(node).__name__} {node!r}"

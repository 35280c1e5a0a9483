"""The digest of a plan: equal for plans that give the same files, in any process and any folder."""

from __future__ import annotations

import hashlib
from enum import Enum

from pto_wsp.expr.rewrite import field_names
from pto_wsp.plan.model import TaskPlan
from pto_wsp.source import Span


def plan_digest(plan: TaskPlan) -> str:
    """Return the SHA-256 over everything that a plan says; of spans the basename and line, which comments cite."""
    words: list[str] = []
    _spell(plan, words)
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _spell(node: object, words: list[str]) -> None:
    """Append one word a leaf, and one at each end of a node or tuple, so that no two trees give the same text."""
    kind: type = type(node)
    if kind is tuple:
        words.append(f"({len(node)}")  # type: ignore[arg-type]
        for item in node:  # type: ignore[attr-defined]
            _spell(item, words)
    elif kind is Span:
        words.append(f"@{node.short}")  # type: ignore[attr-defined]
    elif hasattr(kind, "__dataclass_fields__"):
        words.append(f"{kind.__name__} {{")
        for name in field_names(kind):
            _spell(getattr(node, name), words)
        words.append("}")
    elif isinstance(node, Enum):
        words.append(f"{kind.__name__}.{node.name}")
    else:
        words.append(f"{kind.__name__} {node!r}")

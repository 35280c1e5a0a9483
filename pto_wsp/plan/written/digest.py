"""The digest of a plan: equal for plans that give the same files, in any process and any folder."""

from __future__ import annotations

import hashlib
from enum import Enum

from pto_wsp.expr.tags import PLAIN, Tags
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.written.tags import PLAN_TAGS
from pto_wsp.source import Span


def plan_digest(plan: TaskPlan, tags: Tags = PLAN_TAGS) -> str:
    """Return the SHA-256 over everything that a plan says; of spans the basename and line, which comments cite.

    `tags`: what classes and fields are called.
    """
    words: list[str] = []
    _spell(plan, tags, words)
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _spell(node: object, tags: Tags, words: list[str]) -> None:
    """Append one word a leaf, and one at each end of a node or tuple, so that no two trees give the same text."""
    kind: type = type(node)
    if isinstance(node, tuple):
        words.append(f"({len(node)}")
        for item in node:
            _spell(item, tags, words)
    elif isinstance(node, Span):
        words.append(f"@{node.short}")
    elif kind in PLAIN:
        words.append(f"{PLAIN[kind]} {node!r}")
    elif isinstance(node, Enum):
        words.append(tags.member_text(node))
    elif isinstance(node, frozenset):     # of enums, in an order that is the same in every process
        members = sorted(node, key=tags.member_text)
        shown = ", ".join(f"<{tags.member_text(member)}: {member.value!r}>" for member in members)
        words.append(f"frozenset frozenset({{{shown}}})" if members else "frozenset frozenset()")
    else:
        node = tags.unwrapped(node)
        entry = tags.of_node(node)
        words.append(f"{entry.tag} {{")
        for field in entry.fields:
            _spell(getattr(node, field.attribute), tags, words)
        words.append("}")

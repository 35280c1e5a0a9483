"""Compute content digests of kernels, plans and functions on tensors.

A kernel's or function's digest is equal for equal IR, wherever it was written. A plan's digest is equal for plans that generate the
same files. All are the same in every process and folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import Enum

from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_tags import PLAN_TAGS
from pto_wsp.ir.tags import KERNEL_TAGS, PLAIN, Tags, value_of
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.ir.tensor_tags import TENSOR_TAGS
from pto_wsp.source import Span


def kernel_digest(kernel: Kernel, tags: Tags = KERNEL_TAGS) -> str:
    """Return the SHA-256 of the kernel's canonical form: no spans; values, buffers and loops numbered by first use.

    `tags`: what classes and fields are called.
    """
    text = "\n".join(_canonical(kernel, tags, {"Value": {}, "Buffer": {}, "Var": {}}))
    return hashlib.sha256(text.encode()).hexdigest()


def tensor_digest(function: TensorFunction, tags: Tags = TENSOR_TAGS) -> str:
    """Return the SHA-256 of a function's canonical form: no spans; arrays, loops and symbols numbered by first use.

    Names count: plans and programs are keyed by them. `tags`: what classes and fields are called.
    """
    arrays: dict[int, int] = {}       # an array and the element of it that a scalar reads have one number
    text = "\n".join(_canonical(function, tags, {"Array": arrays, "TensorRef": arrays, "Var": {}, "SymbolRef": {}}))
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(node: object, tags: Tags, ids: dict[str, dict[int, int]]) -> Iterator[str]:
    """Yield one line for each leaf and for each end of a node, so that different trees have different texts."""
    kind: type = type(node)
    if isinstance(node, tuple):
        yield f"({len(node)}"
        for item in node:
            yield from _canonical(item, tags, ids)
    elif isinstance(node, Enum):
        yield tags.member_text(node)
    elif kind in PLAIN:
        yield f"{PLAIN[kind]} {node!r}"
    elif isinstance(node, bytes):
        yield f"bytes {hashlib.sha256(node).hexdigest()}"
    else:
        node = tags.unwrapped(node)
        entry = tags.of_node(node)
        yield f"{entry.tag} {{"
        for field in entry.fields:
            if field.tag == "id" and entry.tag in ids:
                seen = ids[entry.tag]
                yield f"#{seen.setdefault(getattr(node, field.attribute), len(seen))}"
            elif field.counts and (not field.optional or value_of(node, field)):
                yield from _canonical(value_of(node, field), tags, ids)
        yield "}"


def plan_digest(plan: TaskPlan, tags: Tags = PLAN_TAGS) -> str:
    """Return the SHA-256 of everything in a plan; of spans the basename and line, which comments in generated code cite.

    `tags`: the names of classes and fields.
    """
    words: list[str] = []
    _spell(plan, tags, words)
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _spell(node: object, tags: Tags, words: list[str]) -> None:
    """Append one word for each leaf and for each end of a node or tuple, so that different trees have different texts."""
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
            value = value_of(node, field)
            if value or not field.optional:
                _spell(value, tags, words)
        words.append("}")

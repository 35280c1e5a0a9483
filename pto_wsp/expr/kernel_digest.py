"""The content digest of a kernel: equal for equal IR, wherever it was written and in whichever process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import Enum

from pto_wsp.expr.kernel import Kernel
from pto_wsp.expr.tags import KERNEL_TAGS, PLAIN, Tags


def kernel_digest(kernel: Kernel, tags: Tags = KERNEL_TAGS) -> str:
    """Return the SHA-256 of the kernel's canonical form: no spans; values, buffers and loops numbered by first use.

    `tags`: what classes and fields are called.
    """
    text = "\n".join(_canonical(kernel, tags, {"Value": {}, "Buffer": {}, "Var": {}}))
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(node: object, tags: Tags, ids: dict[str, dict[int, int]]) -> Iterator[str]:
    """Yield one line a leaf and one at each end of a node, so that no two trees give the same text."""
    kind: type = type(node)
    if isinstance(node, tuple):
        yield f"({len(node)}"
        for item in node:
            yield from _canonical(item, tags, ids)
    elif isinstance(node, Enum):
        yield tags.member_text(node)
    elif kind in PLAIN:
        yield f"{PLAIN[kind]} {node!r}"
    else:
        node = tags.unwrapped(node)
        entry = tags.of_node(node)
        yield f"{entry.tag} {{"
        for field in entry.fields:
            value = getattr(node, field.attribute)
            if field.tag == "id" and entry.tag in ids:
                seen = ids[entry.tag]
                yield f"#{seen.setdefault(value, len(seen))}"
            elif field.counts:
                yield from _canonical(value, tags, ids)
        yield "}"

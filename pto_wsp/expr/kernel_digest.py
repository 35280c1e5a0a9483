"""The content digest of a kernel: equal for equal IR, wherever it was written and in whichever process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum

from pto_wsp.expr.kernel import Buffer, Kernel, Value
from pto_wsp.types.scalar import Var


def kernel_digest(kernel: Kernel) -> str:
    """Return the SHA-256 of the kernel's canonical form: no spans; values, buffers and loops numbered by first use."""
    text = "\n".join(_canonical(kernel, {Value: {}, Buffer: {}, Var: {}}))
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(node: object, ids: dict[type, dict[int, int]]) -> Iterator[str]:
    """Yield one line a leaf and one at each end of a node, so that no two trees give the same text."""
    if isinstance(node, tuple):
        yield f"({len(node)}"
        for item in node:
            yield from _canonical(item, ids)
    elif is_dataclass(node) and not isinstance(node, type):
        yield f"{type(node).__name__} {{"
        for part in fields(node):
            value = getattr(node, part.name)
            if part.name == "id" and type(node) in ids:
                seen = ids[type(node)]
                yield f"#{seen.setdefault(value, len(seen))}"
            elif part.compare:
                yield from _canonical(value, ids)
        yield "}"
    elif isinstance(node, Enum):
        yield f"{type(node).__name__}.{node.name}"
    else:
        yield f"{type(node).__name__} {node!r}"

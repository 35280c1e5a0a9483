"""Words for people: what reads the same wherever it stands."""

from __future__ import annotations


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun; `many`: the noun's plural where that is not `one` with an s.

    >>> counted(1, "task"), counted(0, "task"), counted(2, "entry", "entries")
    ('1 task', '0 tasks', '2 entries')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"

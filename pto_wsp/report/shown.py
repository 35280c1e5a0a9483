"""Long lists as text: their two ends, and how much is left out between them."""

from __future__ import annotations

from collections.abc import Callable

_SHOWN = 40


def both_ends(n: int, line: Callable[[int], str], left_out: Callable[[int], str]) -> list[str]:
    """Return the lines of n rows, or of the first and the last twenty with a line about how many are left out.

    >>> both_ends(2, str, "… {}".format)
    ['0', '1']
    """
    if n <= _SHOWN:
        return [line(at) for at in range(n)]
    half = _SHOWN // 2
    return [*(line(at) for at in range(half)), left_out(n - _SHOWN), *(line(at) for at in range(n - half, n))]

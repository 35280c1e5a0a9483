"""Python names in a golden.py: the user's where they can stand, each given once in its scope."""

from __future__ import annotations

import builtins
import keyword
import re

_TAKEN = frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "ml_dtypes", "ctypes", "math", "tensors", "params", "rng"))


class Scope:
    """Gives names; `taken` are those of the scopes around it."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._taken = set(_TAKEN | taken)

    def take(self, wanted: str, otherwise: str) -> str:
        """Return `wanted` as an identifier that nobody has, with a number behind it where somebody has; `otherwise` where it is none."""
        stem = re.sub(r"\W", "", wanted, flags=re.ASCII).lstrip("_0123456789") or otherwise
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    def names(self) -> frozenset[str]:
        """Return what is taken so far."""
        return frozenset(self._taken)

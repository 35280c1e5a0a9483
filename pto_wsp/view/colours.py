"""Colours and letters of kernels: stable by name for all cards of a session."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import cache

from pto_wsp.view.card import LegendEntry

SLOTS = 16     # the table of colours has 8 hues; slots from 8 on are hatched
# The hues on a dark ground, for terminals; templates/view/tokens.j2 has those of pages, light and dark.
KERNEL_HUES = ("#516ecd", "#e28a1e", "#12ab9f", "#a03f84", "#fcce52", "#c0a2ff", "#7b6a08", "#82e6e0")


@cache
def _session() -> dict[str, int]:
    """Return the slots given so far, by name."""
    return {}


def slot_of(name: str) -> int:
    """Return the colour slot of a kernel: the next one that is free when the session first shows this name."""
    slots = _session()
    return slots.setdefault(name, len(slots) % SLOTS)


def legend_of(names: Sequence[str]) -> tuple[LegendEntry, ...]:
    """Return the legend of some kernels; each has a letter of its own as far as there are letters: one of its name, else any."""
    taken: set[str] = set()
    entries = []
    for name in names:
        wanted = [c for c in name.upper() if c in string.ascii_uppercase] + list(string.ascii_uppercase)
        letter = next((c for c in wanted if c not in taken), "#")
        taken.add(letter)
        entries.append(LegendEntry(name=name, letter=letter, slot=slot_of(name)))
    return tuple(entries)

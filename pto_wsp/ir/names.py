"""Give out names in generated text, each once.

What an identifier may be is each language's own matter: a writer spells the user's name as an identifier first, and takes that.

>>> names = Names({"task"})
>>> names.take("task"), names.take("task"), names.take("made")
('task_2', 'task_3', 'made')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Names:
    """The names of a scope. `taken`: names that are never given; `numbered`: the spelling of a name's n-th variant, from 2 on."""

    def __init__(self, taken: Iterable[str] = (), numbered: Callable[[str, int], str] = "{}_{}".format) -> None:
        self._taken = set(taken)
        self._numbered = numbered
        self._counts: dict[str, int] = {}     # the last variant of each name that is known to be taken

    def take(self, wanted: str) -> str:
        """Reserve and return `wanted`, or its first unused variant if the name is reserved already."""
        name, count = wanted, self._counts.get(wanted, 1)
        while name in self._taken:
            count += 1
            name = self._numbered(wanted, count)
        self._counts[wanted] = count
        self._taken.add(name)
        return name

    def inner(self) -> Names:
        """Return the names of a block: names taken so far stay taken, and names taken in the block are free again after it."""
        return Names(self._taken, self._numbered)


def true_name(shown: str) -> str:
    """Return the user's name of what IR text calls `shown`: `acc.3` is one of several that are called acc."""
    return shown.partition(".")[0]

"""Check arguments of calls that show a run: paths of files to write, options that are True or False.

>>> file_path("to_dot", "graph.dot", "graph.dot").name
'graph.dot'
"""

from __future__ import annotations

from pathlib import Path

from pto_wsp.errors import ArgumentKindError
from pto_wsp.source import here


def file_path(call: str, given: object, example: str) -> Path:
    """Return the path that a call was given for a file to write.

    Raises: T205 for a value that is no path.
    """
    if not isinstance(given, str | Path):
        raise _wrong(f"{call} takes a path", f'"{example}"', given)
    return Path(given)


def flag(call: str, name: str, given: object) -> bool:
    """Return an option that is True or False.

    Raises: T205 for another value.
    """
    if not isinstance(given, bool):
        raise _wrong(f"{call}: {name} is True or False", "True or False", given)
    return given


def _wrong(message: str, expected: str, given: object) -> ArgumentKindError:
    return ArgumentKindError(message, here(), expected=expected, found=repr(given)[:200])

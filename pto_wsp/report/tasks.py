"""Which task somebody means: its number in the stream, its name, or its kernel and indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from pto_wsp.errors import ArgumentKindError
from pto_wsp.runtime.failures.errors import TaskNames
from pto_wsp.source import here

TaskLike: TypeAlias = "int | str | tuple[str, Sequence[int] | int]"

_MOST_NAMES = 4


def find_task(names: TaskNames, wanted: TaskLike) -> int:
    """Return the number of a task: 3, -1 (the last), "attn[b=1, t=0]", ("attn", (1, 0)) or, of the only one, "attn".

    Raises: T205 for what names no task, or more than one.
    """
    match wanted:
        case bool():
            pass
        case int() | np.integer():
            if -len(names) <= wanted < len(names):
                return int(wanted) % len(names)
            raise ArgumentKindError(f"there is no task {int(wanted)}", here(), expected=f"0 .. {len(names) - 1}, or from the end -1 .. "
                                    f"{-len(names)}" if len(names) else "a run with tasks")
        case str():
            kernel = wanted.partition("[")[0]
            return _only(names, wanted, [task for task in names.of_kernel(kernel) if wanted in (kernel, names[task])])
        case (str(kernel), int() | np.integer() | tuple() | list() as given):
            numbers = given if isinstance(given, tuple | list) else (given,)
            if all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in numbers):
                index = tuple(int(value) for value in numbers)
                return _only(names, wanted, [task for task in names.of_kernel(kernel) if names.index_of(task) == index])
    raise ArgumentKindError("this names no task", here(), expected="its number, its name, or (kernel, indices)", found=repr(wanted))


def _only(names: TaskNames, wanted: object, found: Sequence[int]) -> int:
    if len(found) == 1:
        return found[0]
    if not found:
        some = ", ".join(names[task] for task in range(min(len(names), _MOST_NAMES)))
        more = ", …" * (len(names) > _MOST_NAMES)
        raise ArgumentKindError(f"there is no task {wanted!r}", here(), expected=f"a task of the run: {some}{more}" if some else
                                "a run with tasks")
    raise ArgumentKindError(f"{len(found)} tasks are {wanted!r}", here(), expected="the number of one: " +
                            ", ".join(map(str, found[:_MOST_NAMES])) + ", …" * (len(found) > _MOST_NAMES))

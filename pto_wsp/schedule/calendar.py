"""Define calendars: static schedules that give each task an executor and a position in that executor's order.

A calendar is either a function of the task or a table.

>>> print(Calendar.of([(0, 0), (1, 0), (0, 1)]))
calendar of 3 tasks on 2 executors
0: executor 0 position 0
1: executor 1 position 0
2: executor 0 position 1
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pto_wsp.calls import user_calls
from pto_wsp.errors import PolicyValueError
from pto_wsp.schedule.keys import KeyLike, trace_keys
from pto_wsp.schedule.policy import Key, Policy, key_code
from pto_wsp.schedule.support import Directive, enforced, refused
from pto_wsp.source import here
from pto_wsp.wording import counted

MAX_EXECUTORS = 1 << 16           # PTO_MAX_CALENDAR in the C++ engine
_MAX_POSITION = (1 << 31) - 1     # the artifact's table has 32-bit signed positions
_MAX_START = (1 << 62) - 1        # the simulator's clock must not overflow
_HEAD = re.compile(r"calendar of (\d+) tasks? on \d+ executors?")
_ROW = re.compile(r"(\d+): executor (\d+) position (\d+)(?: start (\d+))?")


@user_calls()
class Calendar(Policy):
    """Define a static schedule.

    `worker` and `position` are keys. Without them, `table` holds a (worker, position) pair for each task, in submission order.
    `starts` holds, for each task or for none, the cycle before which the task does not start in simulated time.
    """

    said_as: ClassVar[str] = "calendar"
    entries: ClassVar[tuple[Directive, ...]] = (
        Directive("calendar", enforced("each executor runs its tasks in the order of their positions, on a host thread too; from their "
                                       "starts on in simulated time alone"), refused("the runtime takes no order of tasks on a core")),
    )

    worker: Key | None = None
    position: Key | None = None
    table: tuple[tuple[int, int], ...] = ()
    starts: tuple[int, ...] = ()

    @staticmethod
    def of(plan: KeyLike | Sequence[Sequence[int]] | np.ndarray[Any, Any] | Calendar) -> Calendar:
        """Return the calendar that `plan` describes.

        `plan` is a function `t -> (worker, position)`, a table of (worker, position) or (worker, position, start cycle) rows, or a
        Calendar.

        Raises: S103 for a function that cannot be traced; S102 for any other value, a malformed row, or two tasks at the same position.
        """
        if isinstance(plan, Calendar):
            return plan
        if (isinstance(plan, np.ndarray) and plan.ndim) or (isinstance(plan, Sequence) and not isinstance(plan, str | bytes)):
            return _of_table(plan)
        if not callable(plan):
            raise PolicyValueError("this is no calendar", here(), found=repr(plan)[:200],
                                   expected="lambda t: (worker, position), a table of such pairs in the order of submission, or a Calendar")
        worker, position = trace_keys(plan, "calendar", 2)
        return Calendar(worker=worker, position=position)

    @staticmethod
    def from_text(text: str) -> Calendar:
        """Return the calendar from the text that `str` wrote.

        Raises: S102, naming the line, for text that is not a calendar.
        """
        lines = [line.strip() for line in str(text).splitlines() if line.strip()]
        head = _HEAD.fullmatch(lines[0]) if lines else None
        if head is None:
            raise PolicyValueError("this text is no calendar", here(), expected="calendar of N tasks on M executors",
                                   found=repr(lines[0] if lines else ""))
        rows: list[tuple[int, ...]] = []
        for number, line in enumerate(lines[1:]):
            row = _ROW.fullmatch(line)
            if row is None or int(row[1]) != number:
                raise PolicyValueError(f"line {number + 2} of a calendar is not that of task {number}", here(),
                                       expected=f"{number}: executor K position P", found=repr(line))
            rows.append(tuple(int(part) for part in row.groups()[1:] if part is not None))
        if len(rows) != int(head[1]):
            raise PolicyValueError("a calendar has more or fewer lines than its first one says", here(), expected=f"{head[1]} tasks",
                                   found=f"{len(rows)} lines")
        return Calendar.of(rows)

    @property
    def n_executors(self) -> int | None:
        """The number of executors that the table uses; None for a calendar of keys."""
        return 1 + max((worker for worker, _ in self.table), default=0) if self.worker is None else None

    def __str__(self) -> str:
        if self.worker is not None:
            return repr(self)
        starts = [f" start {start}" for start in self.starts] or [""] * len(self.table)
        rows = (f"{task}: executor {worker} position {position}{start}"
                for task, ((worker, position), start) in enumerate(zip(self.table, starts, strict=True)))
        return "\n".join((self._size, *rows))

    def __repr__(self) -> str:
        if self.worker is not None:
            assert self.position is not None
            return f"Calendar.of(lambda t: ({key_code(self.worker.node)}, {key_code(self.position.node)}))"
        import hashlib  # slow to import, and only printing needs it

        digest = hashlib.sha256(repr((self.table, self.starts)).encode()).hexdigest()[:16]
        return f"Calendar({self._size}, {digest})"

    @property
    def _size(self) -> str:
        return f"calendar of {counted(len(self.table), 'task')} on {counted(self.n_executors or 0, 'executor')}"


def _of_table(given: Sequence[Sequence[int]] | np.ndarray[Any, Any]) -> Calendar:
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in (given.tolist() if isinstance(given, np.ndarray) else given)]
    table: list[tuple[int, int]] = []
    starts: list[int] = []
    for task, row in enumerate(rows):
        numbers = tuple(row) if isinstance(row, Sequence) and not isinstance(row, str) else ()
        if len(numbers) not in (2, 3) or not all(_is_whole(number) for number in numbers):
            raise PolicyValueError(f"row {task} of a calendar is no place", here(), expected="(worker, position), whole numbers",
                                   found=repr(row))
        worker, position, *start = (int(number) for number in numbers)
        if not 0 <= worker < MAX_EXECUTORS or not 0 <= position <= _MAX_POSITION or \
                any(not 0 <= cycle <= _MAX_START for cycle in start):
            raise PolicyValueError(f"row {task} of a calendar is no place", here(), found=repr(row),
                                   expected=f"a worker in 0 .. {MAX_EXECUTORS - 1}, a position in 0 .. {_MAX_POSITION}, a start in "
                                   f"0 .. {_MAX_START}")
        table.append((worker, position))
        starts.extend(start)
    if starts and len(starts) != len(table):
        raise PolicyValueError("some rows of a calendar have a start, others none", here(), found=f"{len(starts)} of {len(table)}")
    first: dict[tuple[int, int], int] = {}
    for task, place in enumerate(table):
        if first.setdefault(place, task) != task:
            raise PolicyValueError(f"tasks {first[place]} and {task} of a calendar are in one place", here(),
                                   expected="a position of its own for each task of an executor",
                                   found=f"executor {place[0]}, position {place[1]}")
    return Calendar(table=tuple(table), starts=tuple(starts))


def _is_whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)

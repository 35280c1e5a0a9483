"""Show what a call does that takes more than a second: on a terminal a line with a bar, in a notebook a line of text.

A call opens a step, `with step("search", total=100) as shown`, and says how far it is. Nothing is shown, and no library is loaded, while
it takes less than a second, when the output is neither a terminal nor a notebook, and where PTO_WSP_PROGRESS is 0. One thread looks at
the open steps; a step costs some microseconds.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ENVIRONMENT = "PTO_WSP_PROGRESS"
UNSEEN_S, _EVERY = 1.0, 0.2      # how long a call may take unseen, and between two looks
_LINGER = 50                     # looks without an open step after which the thread sleeps


class ShownStep:
    """What a call does: a title, how many of `total` parts are done (None: not known), and a note such as the best so far."""

    __slots__ = ("count", "done", "note", "opened", "stays", "title", "total")

    def __init__(self, title: str, total: int | None = None, count: Callable[[], int] | None = None) -> None:
        """Create a step that begins now. `count`: tells how many parts are done, in place of `advance`."""
        self.title, self.total, self.count = title, total, count
        self.done, self.note, self.opened = 0, "", time.monotonic()
        self.stays = False      # on the screen, when it is over

    def advance(self, n: int = 1, note: str | None = None) -> None:
        """Say that n more parts are done."""
        self.done += n
        if note is not None:
            self.note = note

    @property
    def n_done(self) -> int:
        """How many parts are done."""
        return self.done if self.count is None else self.count()

    def __str__(self) -> str:
        seconds = time.monotonic() - self.opened
        parts = f"{self.n_done:,} of {self.total:,}" if self.total is not None else f"{self.n_done:,}" if self.n_done else ""
        return " · ".join(part for part in (self.title, parts, self.note, f"{seconds:.0f} s") if part)


@contextmanager
def step(title: str, total: int | None = None, count: Callable[[], int] | None = None, *, shown: bool | None = None) -> Iterator[ShownStep]:
    """Open a step for the time of a block. `shown`: True shows it at once wherever the output goes, False never."""
    opened = ShownStep(title, total, count)
    if not (is_visible() if shown is None else shown):
        yield opened
        return
    _SCREEN.open(opened, at_once=bool(shown))
    try:
        yield opened
    finally:
        _SCREEN.close(opened)


def tell(n: int = 0, note: str | None = None) -> None:
    """Count n more parts of the innermost open step as done, or set the step's note; without an open step, do nothing."""
    _SCREEN.tell(n, note)


def is_visible() -> bool:
    """Tell whether progress is shown: the errors go to a terminal, or a notebook runs this; PTO_WSP_PROGRESS=0 says no."""
    stream = sys.stderr
    if stream is None or stream.closed or not (stream.isatty() or in_notebook()):
        return False
    return os.environ.get(ENVIRONMENT, "") != "0"


def in_notebook() -> bool:
    """Tell whether a notebook's kernel runs this."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return type(shell).__name__ == "ZMQInteractiveShell"


# -- the screen --------------------------------------------------------------------------------------------------------
class _Screen:
    """The open steps, and what of them stands on the screen."""

    def __init__(self) -> None:
        self._steps: list[ShownStep] = []
        self._lock = threading.Lock()      # guards what is drawn
        self._wake = threading.Lock()      # held while the thread sleeps
        self._wake.acquire()
        self._is_asleep, self._process = True, 0
        self._drawn: _Bars | _CellText | None = None

    def open(self, opened: ShownStep, *, at_once: bool) -> None:
        """Add a step, and see to it that the thread looks."""
        if at_once:
            opened.opened, opened.stays = opened.opened - UNSEEN_S, True
        self._steps.append(opened)
        if self._process != os.getpid():       # threads do not survive a fork
            self.__init__()  # type: ignore[misc]
            self._steps.append(opened)
            self._process, self._is_asleep = os.getpid(), False
            try:
                start_new_thread(self._look, ())
            except RuntimeError:               # no thread is left: nothing is shown
                self._process = 0
        elif self._is_asleep:
            self._is_asleep = False
            self._wake.release()
        if at_once:
            with self._lock:
                self._draw()

    def tell(self, n: int, note: str | None) -> None:
        """Let the step that was opened last advance."""
        if self._steps:
            self._steps[-1].advance(n, note)

    def close(self, opened: ShownStep) -> None:
        """Take a step away, from the screen too."""
        if opened in self._steps:
            self._steps.remove(opened)
        if self._drawn is not None:
            with self._lock:
                self._draw()

    def _look(self) -> None:
        idle = 0
        while True:
            time.sleep(_EVERY)
            idle = 0 if self._steps else idle + 1
            if idle > _LINGER:
                self._is_asleep = True
                self._wake.acquire()
                idle = 0
            elif self._steps:
                with self._lock:
                    self._draw()

    def _draw(self) -> None:
        """Draw the steps that have been open for a second; clear the screen where there is none."""
        now = time.monotonic()
        long = [one for one in self._steps if now - one.opened >= UNSEEN_S]
        try:
            if long and self._drawn is None:
                self._drawn = _CellText() if in_notebook() else _Bars()
            if self._drawn is not None:
                self._drawn.draw(long)
            if not long:
                self._drawn = None
        except Exception:      # a picture never fails the call that it is of
            self._drawn = None


class _CellText:
    """The steps as lines of text in a notebook's cell, which are taken away at the end."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, steps: list[ShownStep]) -> None:
        """Show the steps; none: clear."""
        from IPython.display import display  # a notebook has it

        text = {"text/plain": "\n".join(map(str, steps))}
        if self._handle is None:
            self._handle = display(text, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(text, raw=True)


class _Bars:
    """The steps as bars on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console  # slow to import, and only what takes long needs it
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bars = Progress(TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), MofNCompleteColumn(),
                              TimeElapsedColumn(), TextColumn("{task.fields[note]}", markup=False), console=Console(stderr=True),
                              transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        self._rows: dict[ShownStep, Any] = {}
        self._bars.start()

    def draw(self, steps: list[ShownStep]) -> None:
        """Show the steps; none: clear."""
        for one in steps:
            if one not in self._rows:
                self._rows[one] = self._bars.add_task(one.title, total=one.total, note="")
        for one, row in list(self._rows.items()):
            self._bars.update(row, description=one.title, total=one.total, completed=one.n_done, note=one.note)
            if one not in steps and not one.stays:
                self._bars.remove_task(self._rows.pop(one))
        if steps:
            self._bars.refresh()
            return
        self._bars.live.transient = not self._rows
        self._bars.stop()


_SCREEN = _Screen()

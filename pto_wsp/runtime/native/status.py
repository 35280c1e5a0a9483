"""What a status of the runtime library means where it stands for no mistake of the user's, and whether Ctrl-C reaches a call of it."""

from __future__ import annotations

import threading

from pto_wsp.errors import InternalError


def check_status(status: int, what: str) -> None:
    """Raise what a status of the library stands for where no user's error does: KeyboardInterrupt for a call that Ctrl-C has ended."""
    if status == 1:
        raise MemoryError(f"{what} ran out of memory")
    if status == 4:
        raise KeyboardInterrupt
    if status != 0:
        raise InternalError(f"{what} ended with status {status}")


def interruptible() -> int:
    """Return `interruptible` of a call's options: 1 on the main thread, which alone is given Ctrl-C."""
    return int(threading.current_thread() is threading.main_thread())

"""Where the main thread is: Ctrl-C that a thread presses must fall into the call that a test is about, however slow the machine."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

PACKAGE = str(Path(__file__).resolve().parent.parent / "pto_wsp")


def wait_until_in(*names: str, seconds: float = 60, package: str = PACKAGE) -> None:
    """Wait, in another thread, until the main thread is in one of some functions of the package."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        while frame is not None:
            if frame.f_code.co_name in names and frame.f_code.co_filename.startswith(package):
                return
            frame = frame.f_back
        time.sleep(0.002)

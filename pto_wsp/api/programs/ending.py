"""The end of a run that goes on in a thread of its own, as other threads wait for it."""

from __future__ import annotations

import threading


class Ending:
    """Whether a run in a thread of its own is over. Not an Event, nor is the run a Thread: Ctrl-C in the middle of waiting for either
    leaves their locks as no other thread expects them."""

    def __init__(self) -> None:
        self.has_begun = False       # this and the next under the program's lock
        self.is_abandoned = False    # nobody waits for it: it does not begin
        self._is_over = False
        self._running = threading.Lock()
        self._running.acquire()

    def is_set(self) -> bool:
        """Tell whether it is over."""
        return self._is_over

    def set(self) -> None:
        """Say that it is over, once, in the thread of the run."""
        self._is_over = True
        self._running.release()

    def wait(self) -> None:
        """Wait until it is over, which is seen at once, and Ctrl-C is too."""
        while not self._is_over:
            if self._running.acquire(timeout=0.2):     # several threads may wait, each for a while
                self._running.release()

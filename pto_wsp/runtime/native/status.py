"""What a status of the runtime library means where it stands for no mistake of the user's."""

from __future__ import annotations

from pto_wsp.errors import InternalError


def check_status(status: int, what: str) -> None:
    """Raise what a status of the library stands for where no user's error does."""
    if status == 1:
        raise MemoryError(f"{what} ran out of memory")
    if status != 0:
        raise InternalError(f"{what} ended with status {status}")

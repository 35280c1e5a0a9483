"""Arrays that end where memory ends: a byte read or written outside them stops the process.

`Fence` lays an array against a page that may not be touched, on its far or its near side; with `rows_apart` every row has such
pages of its own. `in_child` runs what may be stopped in a process of its own and says how far it came.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..conftest import Array

PAGE = mmap.PAGESIZE
_NONE = 0   # PROT_NONE, which the mmap module has no name for
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Fence:
    """An array [rows, cols] whose neighbours in memory cannot be touched. `far`: they follow its rows, else they go before."""

    rows: int
    cols: int
    dtype: np.dtype[np.generic]
    far: bool
    rows_apart: bool = False
    columns_apart: int = 1     # elements from column to column

    def array(self, values: Array) -> Array:
        """Return the array with these values."""
        size = self.dtype.itemsize
        row_bytes = ((self.cols - 1) * self.columns_apart + 1) * size if self.cols else 0
        lines = self.rows if self.rows_apart else 1
        line_bytes = row_bytes if self.rows_apart else row_bytes * self.rows
        pages = max(1, -(-line_bytes // PAGE))
        step = (pages + 1) * PAGE                       # a line's pages, and one that cannot be touched
        memory = mmap.mmap(-1, PAGE + max(lines, 1) * step)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        offset = PAGE + (pages * PAGE - line_bytes if self.far else 0)
        strides = (step if self.rows_apart else row_bytes, self.columns_apart * size)
        made: Array = np.ndarray((self.rows, self.cols), self.dtype, memory, offset, strides)
        made[...] = values
        for line in range(max(lines, 1) + 1):
            if _libc.mprotect(ctypes.c_void_p(start + line * step), ctypes.c_size_t(PAGE), _NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        return made


def in_child(steps: Callable[[Callable[[str], None]], None]) -> str:
    """Run `steps` in a child process and return "" when it came to its end, else the last thing that it said and how it ended.

    `steps` is given a function that says where it is.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        faulthandler.disable()   # the parent says where it was
        try:
            steps(lambda text: (os.write(writer, text.ljust(200)[:200].encode()), None)[1])
            status = 0
        except BaseException as problem:   # a report for the parent, whatever it is
            os.write(writer, f"{type(problem).__name__}: {problem}".replace("\n", " ").ljust(200)[:200].encode())
        finally:
            os._exit(status)
    os.close(writer)
    said = b""
    while block := os.read(reader, 1 << 16):
        said = (said + block)[-400:]
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if status == 0:
        return ""
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an error"
    return f"{how} at: {said.decode()[-200:].strip()}"

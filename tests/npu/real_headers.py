"""Kernels against the instruction set's own headers, where PTO_ISA_ROOT says where they are: they must compile; nothing is run.

PTO_ISA_FLAGS, where it is set, replaces the flags that choose the headers' CPU simulation. Headers of the device runtime are ours.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.npu.compiled import INCLUDE, RunFault, gxx, text_of

_FLAGS = "-D__CPU_SIM"
_HEADER = "pto/pto-inst.hpp"


@cache
def isa_include() -> Path | None:
    """Return the folder that the instruction set's headers are included from, None where PTO_ISA_ROOT is not set.

    Raises: RunFault where it is set and there are none.
    """
    root = os.environ.get("PTO_ISA_ROOT")
    if not root:
        return None
    found = sorted(Path(root).rglob(_HEADER), key=lambda path: (len(path.parts), path))
    if not found:
        raise RunFault(f"PTO_ISA_ROOT is {root}, and {_HEADER} is nowhere in it")
    return found[0].parents[1]


def compile_with_real_headers(source: Path, family: str) -> None:
    """Compile a kernel with them, for one family; do nothing where there are none.

    Raises: RunFault with the compiler's words.
    """
    include = isa_include()
    if include is None:
        return
    with tempfile.TemporaryDirectory() as name:
        ours = Path(name)      # without our own pto/
        for header in INCLUDE.glob("*.h"):
            (ours / header.name).write_bytes(text_of(header).partition(b"\0")[2])
        flags = (*os.environ.get("PTO_ISA_FLAGS", _FLAGS).split(), f"-DPTO_HOST_FAMILY_A5={int(family == 'a5')}")
        command = (gxx(), "-std=c++17", "-fsyntax-only", *flags, f"-I{include}", f"-I{ours}", source)
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RunFault(f"{source.name} does not compile with the headers of {include}:\n{done.stderr}")

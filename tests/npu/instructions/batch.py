"""Many kernels in one file, each in a namespace with an entry of its own: one run of the compiler for all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.npu.emulator import LoadedKernel, load_kernel

_HEADERS = '#include <cstdint>\n#include <pto/pto-inst.hpp>\n\n#include "intrinsic.h"\n#include "tensor.h"\n'


def load_batch(folder: Path, sources: Mapping[str, str], family: str, *, cube: bool = False) -> dict[str, LoadedKernel]:
    """Compile kernels by name, each a whole file's text, and load them."""
    path = folder / f"batch_{family}.cpp"
    path.write_text(batch_text(sources))
    return {name: load_kernel(path, family, cube=cube, entry=name) for name in sources}


def batch_text(sources: Mapping[str, str]) -> str:
    """Return one file of all kernels."""
    parts = [_HEADERS]
    for name, text in sources.items():
        body = re.sub(r"^#include.*\n", "", text, flags=re.MULTILINE)
        parts.append(f"#define kernel_entry {name}\nnamespace in_{name} {{\n#line 1 \"{name}.cpp\"\n{body}\n}}\n#undef kernel_entry\n")
    return "".join(parts)

"""The op table put together: every entry by its name, the one source for tracing, NumPy, C, NPU and cost.

>>> find("exp").npu
'TEXP'
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pto_wsp.errors import InternalError
from pto_wsp.ops.entries import broadcast, cast, compare, create, elementwise, functions, index, matmul, movement, quantize, reduce
from pto_wsp.ops.spec import Op

ENTRIES: tuple[Op, ...] = (*elementwise.ENTRIES, *functions.ENTRIES, *compare.ENTRIES, *reduce.ENTRIES, *matmul.ENTRIES,
                           *movement.ENTRIES, *index.ENTRIES, *create.ENTRIES, *cast.ENTRIES)
FUNCTIONS = (*create.FUNCTIONS, *broadcast.FUNCTIONS, *quantize.FUNCTIONS, *index.FUNCTIONS)
TABLE: Mapping[str, Op] = MappingProxyType({entry.name: entry for entry in ENTRIES})


def find(name: str) -> Op:
    """Return the entry that `Compute.op` names."""
    entry = TABLE.get(name)
    if entry is None:
        raise InternalError(f"the op table has no entry `{name}`")
    return entry

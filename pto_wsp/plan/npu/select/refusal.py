"""What vector cores do not run: dtypes, and ops on some of them. Each is refused at the user's line, with what would work."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.arch.model import Arch
from pto_wsp.errors import NpuOpError
from pto_wsp.expr import kernel as k
from pto_wsp.ops.dtypes import print_dtypes
from pto_wsp.ops.table import TABLE
from pto_wsp.plan.npu.select.carried import ON_CHIP
from pto_wsp.plan.npu.select.rules.registry import LACKING
from pto_wsp.types.dtype import DType

MOVED = (DType.I64, DType.U64)                 # loaded, stored, and read as an index by the scalar unit
_INSTEAD: Mapping[DType, DType] = {DType.F64: DType.F32, DType.I64: DType.I32, DType.U64: DType.I32, DType.FP8E4M3: DType.BF16,
                                   DType.FP8E5M2: DType.BF16, DType.U32: DType.I32}


def vector_dtypes(op: str) -> tuple[DType, ...]:
    """Return the dtypes on which vector cores run an op of the table."""
    entry = TABLE.get(op)
    known = ON_CHIP if entry is None else tuple(dtype for dtype in entry.dtypes if dtype in ON_CHIP)
    return tuple(dtype for dtype in known if dtype not in LACKING.get(op, ()))


def check_statement(kernel: k.Kernel, stmt: k.Stmt, arch: Arch) -> None:
    """Raise N103 where a statement computes or moves what vector cores do not take."""
    match stmt:
        case k.Compute():
            first = stmt.operands[0] if stmt.operands else None
            asked = [o.type.dtype if isinstance(o, k.Value) else o.dtype for o in stmt.operands] + [stmt.result.type.dtype]
            what = f"`pto.{stmt.op}`"
            works = vector_dtypes(stmt.op)
            wrong = next((dtype for dtype in asked if dtype not in ON_CHIP), None)
            if wrong is None and first is not None and asked[0] not in works:
                wrong = asked[0]
        case k.Load(result) | k.Gather(result):
            what, works = "a load", (*ON_CHIP, *MOVED)
            wrong = None if result.type.dtype in works else result.type.dtype
        case k.Alloc(buffer):
            what, works = "a buffer", ON_CHIP
            wrong = None if buffer.type.dtype in ON_CHIP else buffer.type.dtype
        case _:
            return
    if wrong is not None:
        instead = _INSTEAD.get(wrong, DType.F32)
        raise NpuOpError(f"kernel `{kernel.name}`: {arch.name} does not run {what} on {wrong}", stmt.span, expected=print_dtypes(works),
                         found=f"{wrong}, for {arch.name}", help=f"convert it first: pto.cast(x, {instead!r})" if wrong in ON_CHIP else
                         f"hold the data as {instead!r}, which they compute on")

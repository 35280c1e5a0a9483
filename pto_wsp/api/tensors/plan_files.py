"""Find the plan of a function in a folder of plans that `TilePlan.save` wrote.

    plans/rmsnorm_linear.910b.json            for any dtypes
    plans/rmsnorm_linear.910b.f16.json        where the function has f16 arrays: it is looked for first
"""

from __future__ import annotations

import json
from pathlib import Path

from pto_wsp.arch.model import Arch
from pto_wsp.errors import PlanFileError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.source import here

_DTYPES = frozenset(str(dtype) for dtype in DType)


def find_plan(folder: Path, function: TensorFunction, arch: Arch, target: str) -> tuple[TilePlan, Path] | None:
    """Return the plan of a function, arch and target, and its file; None where there is none.

    Of several, a plan whose file name has more of the function's dtypes wins, then one without any; ties go by name. A file for another
    dtype, as its name says, is left alone.
    Raises: J305 for a folder that cannot be read, and for a plan that is none.
    """
    try:
        files = sorted(folder.glob("*.json"))
        if not files and not folder.is_dir():
            raise PlanFileError(f"{folder} is no folder of plans", here(), found=f"no folder {folder.absolute()}", help="make the folder: "
                                "plan.save(path) writes a plan there; plans=Path(__file__).parent / 'plans' is one beside the code")
        heads = {file: _head(file) for file in files}
    except OSError as problem:
        raise PlanFileError(f"the plans in {folder} cannot be read", here(), found=str(problem)) from None
    wanted = {str(param.array.dtype) for param in function.params}
    best: tuple[int, Path] | None = None
    for file, head in heads.items():
        named = set(file.name.split(".")[1:-1]) & _DTYPES
        if head == (function.name, arch.name, target) and named <= wanted and (best is None or len(named) > best[0]):
            best = (len(named), file)
    return None if best is None else (TilePlan.load(best[1]), best[1])


def _head(file: Path) -> tuple[object, object, object] | None:
    """Return the function, the arch and the target that a file is of; None for a file that is no plan."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return (data.get("function"), data.get("arch"), data.get("target")) if isinstance(data, dict) else None

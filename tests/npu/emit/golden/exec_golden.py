"""The text of a golden.py, executed where this package cannot be imported, as it is where the runtime builds packages."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pto_wsp import Workload
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.npu.emit.golden import emit_golden, steering_tensors
from pto_wsp.passes.lower import lower
from tests.tolerances import Array


def text_of(w: Workload, numbers: Mapping[int, int | float] | None = None) -> str:
    """Return golden.py for a workload whose tensors wrap arrays."""
    plan, arrays = plan_of(w), arrays_of(w)
    by_id = {slot.ref.id: array for slot, array in zip(plan.tensors, arrays, strict=True)}
    return emit_golden(plan, {tensor: by_id[tensor] for tensor in steering_tensors(plan)}, numbers or {})


def plan_of(w: Workload) -> TaskPlan:
    """Return the plan of a workload as it was traced."""
    return lower(w.node)


def arrays_of(w: Workload) -> list[Array]:
    """Return the arrays that the tensors of the plan wrap, in its order."""
    return [w.tensors[slot.ref.id].data for slot in plan_of(w).tensors]


def execute(text: str) -> dict[str, Any]:
    """Return what the module defines."""
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "pto_wsp"}
    sys.modules["pto_wsp"] = None  # type: ignore[assignment]
    try:
        module: dict[str, Any] = {"__name__": "golden"}
        exec(compile(text, "golden.py", "exec"), module)
        return module
    finally:
        del sys.modules["pto_wsp"]
        sys.modules.update(hidden)


def computed(w: Workload, text: str) -> list[Array]:
    """Return the tensors of a workload after compute_golden ran on copies of the arrays that they wrap."""
    module = execute(text)
    copies = [array.copy() for array in arrays_of(w)]
    module["compute_golden"]({name: copy for (name, _), copy in zip(module["generate_inputs"](), copies, strict=False)})
    return copies


def interpreted(w: Workload) -> list[Array]:
    """Return the tensors of a workload, in the order of its plan, after interp ran it in place."""
    w.compile(target="interp").run()
    return arrays_of(w)

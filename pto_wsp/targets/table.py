"""The targets: names, and the module of each, which loads without the others."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp import doors
from pto_wsp.errors import CompileOptionError
from pto_wsp.source import here
from pto_wsp.targets.request import Target

# Where each target stands: its module, and its name there.
TARGETS: Mapping[str, tuple[str, str]] = {
    "cpu_sim": ("pto_wsp.targets.cpu_sim", "CPU_SIM"),
    "interp": ("pto_wsp.targets.interp", "INTERP"),
    "ascend_npu": ("pto_wsp.targets.ascend_npu", "ASCEND_NPU"),
    "pto": ("pto_wsp.targets.pto", "PTO"),
}


def find_target(name: object) -> Target:
    """Return a target by its name.

    Raises: C104 with the targets.
    """
    if not isinstance(name, str) or name not in TARGETS:
        raise CompileOptionError(f"there is no target {name!r}", here(), expected=f"one of {', '.join(TARGETS)}")
    module, attribute = TARGETS[name]
    target: Target = getattr(doors.late_module(module), attribute)
    return target

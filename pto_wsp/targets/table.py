"""The targets: names, and a door each, so that one loads without the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.errors import CompileOptionError
from pto_wsp.source import here
from pto_wsp.targets.request import Target


def _cpu_sim() -> Target:
    from pto_wsp.targets.cpu_sim import CPU_SIM

    return CPU_SIM


def _interp() -> Target:
    from pto_wsp.targets.interp import INTERP

    return INTERP


def _ascend_npu() -> Target:
    from pto_wsp.targets.ascend_npu import ASCEND_NPU

    return ASCEND_NPU


def _pto() -> Target:
    from pto_wsp.targets.pto import PTO

    return PTO


TARGETS: Mapping[str, Callable[[], Target]] = {"cpu_sim": _cpu_sim, "interp": _interp, "ascend_npu": _ascend_npu, "pto": _pto}


def find_target(name: object) -> Target:
    """Return a target by its name.

    Raises: C104 with the targets.
    """
    if not isinstance(name, str) or name not in TARGETS:
        raise CompileOptionError(f"there is no target {name!r}", here(), expected=f"one of {', '.join(TARGETS)}")
    return TARGETS[name]()

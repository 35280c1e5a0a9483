"""Finds a target by its name: `doors.TARGETS` lists them."""

from __future__ import annotations

from pto_wsp import doors
from pto_wsp.errors import CompileOptionError
from pto_wsp.source import here
from pto_wsp.targets.request import Target


def find_target(name: object) -> Target:
    """Return a target by its name.

    Raises: C104 with the targets.
    """
    if not isinstance(name, str) or name not in doors.TARGETS:
        raise CompileOptionError(f"there is no target {name!r}", here(), expected=f"one of {', '.join(doors.TARGETS)}")
    module, attribute = doors.TARGETS[name]
    target: Target = getattr(doors.late_module(module), attribute)
    return target

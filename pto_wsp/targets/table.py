"""Find a target by its name: `doors.TARGETS` lists the targets, `doors.TARGET_ALIASES` further names."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp import doors
from pto_wsp.errors import CompileOptionError
from pto_wsp.schedule.capability import check_target
from pto_wsp.source import here
from pto_wsp.targets.request import Target


def resolve_alias(name: object, options: Mapping[str, object]) -> tuple[object, Mapping[str, object]]:
    """Return the target that a further name stands for, and the options of compile() with those of the name.

    Raises: C104 if `options` says something else than the name.
    """
    if not isinstance(name, str) or name not in doors.TARGET_ALIASES:
        return name, options
    target, said = doors.TARGET_ALIASES[name]
    given = options.get("options", {})
    if isinstance(given, Mapping):
        differs = [key for key, value in said.items() if given.get(key, value) != value]
        if differs:
            raise CompileOptionError(f"target {name} and its option `{differs[0]}` contradict each other", here(),
                                     expected=f"{said[differs[0]]!r}", found=repr(given[differs[0]]),
                                     help=f'target="{target}" takes both')
        options = {**options, "options": {**given, **said}}
    return target, options


def check_name(name: str) -> None:
    """Check that a name is that of a target, or stands for one.

    Raises: C104 with the targets.
    """
    if name not in doors.TARGET_ALIASES:
        check_target(name)


def find_target(name: object) -> Target:
    """Return a target by its name.

    Raises: C104 with the targets.
    """
    module, attribute = doors.TARGETS[check_target(name)]
    target: Target = getattr(doors.late_module(module), attribute)
    return target

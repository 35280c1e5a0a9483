"""The options of a jit function: the target, the machine, the schedule, and where plans lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path

from pto_wsp import doors
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchOptionError, JitOptionError
from pto_wsp.ir.mesh import Mesh
from pto_wsp.schedule.schedule import Schedule, Scheduled
from pto_wsp.source import here
from pto_wsp.targets.table import check_name
from pto_wsp.values import dataclass

DEFAULT_TARGET = "cpu_sim"


@dataclass(frozen=True, slots=True, eq=False)
class JitOptions:
    """What a jit function is compiled with. `arch` None: that of the plan, else this machine; `plans`: a folder of plans, None for none.

    `rest`: the further options of `Workload.compile`.
    """

    target: str = DEFAULT_TARGET
    arch: Arch | None = None
    schedule: Schedule | None = None
    plans: Path | None = None
    rest: Mapping[str, object] = field(default_factory=dict)

    @property
    def mesh(self) -> Mesh | None:
        """The mesh that the function runs over; None for one machine."""
        found = self.rest.get("mesh")
        return found if isinstance(found, Mesh) else None

    def using(self, *, target: object = None, arch: object = None, schedule: object = None, plans: object = None,
              **rest: object) -> JitOptions:
        """Return options with others in place of some; None leaves one as it is.

        Raises: J121 for values of another kind, C104 for an unknown target, C115 for an unknown arch.
        """
        if target is not None and not isinstance(target, str):
            raise _unfit("target", "the name of a target", target)
        if target is not None:
            check_name(target)
        if not isinstance(rest.get("mesh"), Mesh | None):
            raise _unfit("mesh", "a Mesh: Mesh(x=2)", rest["mesh"])
        if plans is not None and not isinstance(plans, str | Path):
            raise _unfit("plans", "the folder that plans are in", plans)
        return replace(self, target=target or self.target, arch=self.arch if arch is None else arch_of(arch),
                       schedule=self.schedule if schedule is None else _schedule_of(schedule),
                       plans=self.plans if plans is None else Path(plans), rest={**self.rest, **rest})

    def key(self) -> tuple[object, ...]:
        """Return what equal options are equal by."""
        schedule = "" if self.schedule is None else self.schedule.model_dump_json()
        arch = "" if self.arch is None else self.arch.model_dump_json()
        return self.target, arch, schedule, tuple(sorted((name, repr(value)) for name, value in self.rest.items()))


def arch_of(arch: object) -> Arch:
    """Return the machine that a person names: an Arch, the name of one, or "host_cpu", this machine.

    Raises: C115 for anything else.
    """
    if isinstance(arch, Arch):
        return arch
    if arch == "host_cpu":
        return _this_machine()
    if not isinstance(arch, str):
        raise ArchOptionError("this is no arch", here(), expected="an Arch, or the name of one", found=repr(arch)[:80])
    return builtin_arch(arch)


def machine_of(target: str) -> Arch:
    """Return the machine that plans of a target are for by default: this CPU; for a package, the default arch of `compile`."""
    name, _ = doors.TARGET_ALIASES.get(target, (target, {}))
    if name in (DEFAULT_TARGET, "interp") or name not in doors.TARGETS:
        return _this_machine()
    return arch_of(doors.late_module("pto_wsp.targets.table").find_target(name).default_arch)


@cache
def _this_machine() -> Arch:
    return doors.host_cpu()


def _schedule_of(given: object) -> Schedule:
    if isinstance(given, Scheduled):
        return given.schedule
    if not isinstance(given, Schedule):
        raise _unfit("schedule", "a Schedule, or a workload that has one", given)
    return given


def _unfit(name: str, expected: str, given: object) -> JitOptionError:
    return JitOptionError(f"`jit` does not take this value for `{name}`", here(), expected=expected, found=repr(given)[:80])

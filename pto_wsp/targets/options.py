"""What compile() takes beside the workload, checked: options, target, arch, and which directives of the schedule are enforced."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Annotated, Literal

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchOptionError, CompileOptionError, DirectiveError, ScheduleConflictError, raise_all
from pto_wsp.records import Before, Field, Record, first_problem, plain_int
from pto_wsp.schedule.capability import enforcing_targets, supports
from pto_wsp.schedule.schedule import Schedule, needs_of
from pto_wsp.schedule.support import Capability, Support
from pto_wsp.source import here
from pto_wsp.wording import nearest


class NpuOptions(Record):
    """What `options` may hold for ascend_npu."""

    runtime: Literal["tensormap_and_ringbuffer", "host_build_graph"] = Field(
        default="tensormap_and_ringbuffer", description="which of the device's runtimes the package asks for")
    block_dim: Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=1 << 16)] | None = Field(
        default=None, description="how many blocks the launch is meant for, a cube core with its vector cores each; recorded in "
                                  "kernel_config.py, because drivers take the number where they launch")


class CompileOptions(Record):
    """What compile() takes beside target, arch and strict."""

    threads: Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=1024)] | None = Field(
        default=None, description="host threads; None: all that this process may use")
    portable: Annotated[bool, Field(strict=True)] = Field(default=False, description="code for the baseline CPU instead of this one")
    dump: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="write plan and kernels before and after each pass into ir/")
    check_finite: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="end a run at the first operation that makes a NaN or infinity out of finite numbers; slow")
    verify_passes: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="run each kernel before and after each of its passes and compare the numbers")
    sanitize: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="look for races and for memory that is misused, in a random legal order of tasks; slow")
    overheads: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="count, in simulated time, what submitting, dispatching and retiring a task costs an AICPU")
    wall_trace: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="keep when each task began and ended by the clock, and on which thread")
    options: NpuOptions = Field(default_factory=NpuOptions, description="what one target alone knows")


def read_options(options: Mapping[str, object]) -> CompileOptions:
    """Return checked options. `Target.check_options` refuses what a target has no use for.

    Raises: C104 naming the nearest option, or the value that does not fit.
    """
    known = list(CompileOptions.model_fields)
    for name in options:
        if name not in known:
            near = nearest(name, ["target", "arch", "strict", "passes", *known])
            raise CompileOptionError(f"compile() has no option `{name}`", here(), expected=f"one of {', '.join(known)}",
                                     help=f"did you mean {near}=...?" if near else None)
    try:
        checked = CompileOptions.model_validate(dict(options))
    except ValueError as problem:
        name, expected, found = first_problem(problem)
        raise CompileOptionError(f"compile() option `{name}` does not take this value", here(), expected=expected,
                                 found=repr(found)) from None
    return checked


def refuse_npu_options(target: str, given: Mapping[str, object], checked: CompileOptions) -> None:
    """Refuse `options` that only the device's runtime has.

    Raises: C104.
    """
    if checked.options != NpuOptions():
        raise CompileOptionError(f"target {target} has no options of its own", here(), found=repr(given["options"]),
                                 help="options={\"runtime\": ...} is for ascend_npu")


def check_strict(strict: object) -> None:
    """Refuse what is no truth value.

    Raises: C104.
    """
    if not isinstance(strict, bool):
        raise CompileOptionError("compile() option `strict` does not take this value", here(), expected="True or False",
                                 found=repr(strict))


def read_arch(arch: object, default: str) -> Arch:
    """Return the arch that was named, or given; without one that of the name `default`. `Target.check_arch` refuses other machines.

    Raises: C115 when there is none of that name, and for what is neither.
    """
    if not isinstance(arch, Arch | str | None):
        raise ArchOptionError("this is no arch", here(), expected='an Arch, or the name of one: "ascend_910b"', found=repr(arch)[:200])
    return arch if isinstance(arch, Arch) else builtin_arch(default if arch is None else arch)


def check_directives(schedule: Schedule, target: str, *, strict: bool) -> tuple[str, ...]:
    """Return the directives that are only recorded, and say so once; refuse, when `strict`, what more than performance depends on.

    Raises: S101 for what is refused, S105 for directives that contradict each other or lack another one.
    """
    able = supports(target)
    schedule.refuse_conflicts()
    acting = [name for name, _ in schedule.directives() if able[name].capability is Capability.ENFORCED]
    raise_all([ScheduleConflictError(f"{need.directive} means nothing without {' or '.join(need.others)}", here(), notes=(need.reason,),
                                     help=f"say {' or '.join(f'.{other}(...)' for other in need.others)} too, or leave it out")
               for need in needs_of(acting)])
    left_out = [(name, text) for name, text in schedule.directives() if able[name].capability is not Capability.ENFORCED]
    if strict:
        raise_all([DirectiveError(f"target {target} does not enforce {name}", here(), found=text, expected=_alternatives(name, able),
                                  help=_help(name), notes=(able[name].reason,))
                   for name, text in left_out if able[name].capability is Capability.REFUSED])
    if left_out:
        names = ", ".join(name for name, _ in left_out)
        span = here()
        warnings.warn_explicit(f"recorded and not enforced by target {target}: {names}", UserWarning, span.file, span.line)
    return tuple(text for _, text in left_out)


def enforced_part(schedule: Schedule, target: str) -> Schedule:
    """Return the schedule without the directives that the target only records; the plan contains nothing of those."""
    return schedule.keeping([name for name, support in supports(target).items() if support.capability is Capability.ENFORCED])


def _alternatives(name: str, able: Mapping[str, Support]) -> str:
    """The directives of the same kind that the target does enforce."""
    kind = name.rsplit(".", 1)[0] + "." if "." in name else name
    others = [other for other, status in able.items() if status.capability is Capability.ENFORCED and other.startswith(kind)]
    if others:
        return f"one of {', '.join(others)}"
    return "no such directive"


def _help(name: str) -> str:
    targets = enforcing_targets(name)
    able = f"compile for {' or '.join(targets)}, which do; or " if targets else ""
    return f"{able}drop it, or compile(..., strict=False) to have it recorded and not enforced"

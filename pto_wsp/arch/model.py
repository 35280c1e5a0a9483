"""Architecture models: what compiler and simulator know of a machine, as one JSON-able value.

`unit` is hardware-neutral and the default of cpu_sim. A number that its sources do not give is None, never a guess.

>>> builtin_arch("ascend_910b").memory("UB").usable_bytes
188416
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from pto_wsp.errors import CompileOptionError
from pto_wsp.records import Field, Record
from pto_wsp.source import here

_KIB = 1024


class Memory(Record):
    """A memory of a core, or the one that all cores share."""

    name: str = Field(description="GM, L2, L1, L0A, L0B, L0C or UB.")
    capacity_bytes: int | None = Field(default=None, description="Its size; None: not bounded, or not given by the sources. "
                                       "Source: the table of instances in the execution design.")
    reserved_bytes: int = Field(default=0, description="What programs cannot use of it. Source: as capacity_bytes.")
    bandwidth_bytes_per_cycle: float | None = Field(default=None, description="Source: to be measured; None until then.")
    alignment_bytes: int | None = Field(default=None, description="Source: the instruction set; None where not given.")

    @property
    def usable_bytes(self) -> int | None:
        """What programs may use; None when it is not bounded."""
        return None if self.capacity_bytes is None else self.capacity_bytes - self.reserved_bytes


class ExecUnit(Record):
    """An execution unit of a core."""

    name: str = Field(description="cube, vector, MTE1, MTE2, MTE3, fixpipe or scalar.")
    elements_per_cycle: float | None = Field(default=None,
                                             description="Throughput. Source: by definition 1 for `unit`, else to be "
                                             "measured; None until then.")
    startup_cycles: int | None = Field(default=None, description="Latency of one instruction. Source: as elements_per_cycle.")


class Cores(Record):
    """The cores that run kernels; None: as many as the schedule names."""

    cube: int | None = Field(default=None, description="AIC cores. Source: the table of instances in the execution design.")
    vector: int | None = Field(default=None, description="AIV cores. Source: as cube.")


class Aicpu(Record):
    """The control processors that make, dispatch and retire tasks."""

    count: int | None = Field(default=None, description="How many there are; None: as many as the policy names. "
                              "Source: by definition for `unit`, else not given.")
    default_count: int = Field(default=4,
                               description="How many are used where no policy names a number. Source: the execution design.")
    submit_cycles: int | None = Field(default=None,
                                      description="Cost of one submitted task. Source: by definition 0 for `unit`, "
                                      "else to be measured; None until then.")
    dispatch_cycles: int | None = Field(default=None, description="Cost of one dispatched task. Source: as submit_cycles.")
    retire_cycles: int | None = Field(default=None, description="Cost of one retired task. Source: as submit_cycles.")


class Arch(Record):
    """A machine."""

    name: str = Field(description="What a user writes for arch=.")
    clock_ghz: float | None = Field(default=None,
                                    description="Cycles a nanosecond. Source: by definition 1 for `unit`, else not given.")
    memories: tuple[Memory, ...] = Field(default=(), description="By level, the shared one first.")
    units: tuple[ExecUnit, ...] = Field(default=(), description="The execution units of its cores.")
    cores: Cores = Field(default_factory=Cores, description="How many cores run kernels.")
    aicpu: Aicpu = Field(default_factory=Aicpu, description="The control processors.")
    neutral: bool = Field(default=False, description="One cycle an element, nothing overlaps, on-chip memory is not bounded.")

    def memory(self, name: str) -> Memory:
        """Return the memory of that name.

        Raises: C104 when the machine has none.
        """
        found = next((m for m in self.memories if m.name == name), None)
        if found is None:
            raise CompileOptionError(f"arch `{self.name}` has no memory `{name}`", here(),
                                     expected=", ".join(m.name for m in self.memories))
        return found


_UNITS = ("cube", "vector", "MTE1", "MTE2", "MTE3", "fixpipe", "scalar")
_LEVELS = ("GM", "L2", "L1", "L0A", "L0B", "L0C", "UB")


def _memories(kib: dict[str, int], reserved_kib: dict[str, int]) -> tuple[Memory, ...]:
    return tuple(Memory(name=name, capacity_bytes=kib[name] * _KIB if name in kib else None,
                        reserved_bytes=reserved_kib.get(name, 0) * _KIB) for name in _LEVELS)


def _unit() -> Arch:
    return Arch(name="unit", clock_ghz=1.0, neutral=True, memories=_memories({}, {}),
                units=tuple(ExecUnit(name=name, elements_per_cycle=1.0, startup_cycles=0) for name in _UNITS),
                aicpu=Aicpu(submit_cycles=0, dispatch_cycles=0, retire_cycles=0))


def _ascend_910b() -> Arch:
    return Arch(name="ascend_910b", cores=Cores(cube=24, vector=48), units=tuple(ExecUnit(name=name) for name in _UNITS),
                memories=_memories({"L1": 512, "L0A": 64, "L0B": 64, "L0C": 128, "UB": 192}, {"UB": 8}))


def _ascend_950() -> Arch:
    return Arch(name="ascend_950", units=tuple(ExecUnit(name=name) for name in _UNITS),
                memories=_memories({"L0C": 256, "UB": 256}, {}))


_INSTANCES: Mapping[str, Callable[[], Arch]] = {"unit": _unit, "ascend_910b": _ascend_910b, "ascend_950": _ascend_950}
ARCH_NAMES = tuple(_INSTANCES)


@cache
def builtin_arch(name: str) -> Arch:
    """Return the machine of that name, made when first asked for.

    Raises: C104 when there is none.
    """
    if name not in _INSTANCES:
        raise CompileOptionError(f"there is no arch {name!r}", here(), expected=f"one of {', '.join(ARCH_NAMES)}, or an Arch")
    return _INSTANCES[name]()

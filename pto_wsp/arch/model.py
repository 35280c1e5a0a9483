"""The architecture model: a machine as compiler and simulator know it, as one JSON-able value.

`unit` is hardware-neutral and the default of cpu_sim. A number that the sources do not give is None, or a marked estimate.

>>> mine = builtin_arch("ascend_910b").with_aicpu(count=8).with_memory("GM", bandwidth_bytes_per_cycle=900.0)
>>> Arch.model_validate_json(mine.model_dump_json()) == mine
True
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, Self

from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed
from pto_wsp.errors import ArchError, ArchOptionError, CompileOptionError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.records import After, Before, Field, Record, first_problem, plain_float, plain_int
from pto_wsp.source import here

UNITS = ("scalar", "MTE2", "MTE1", "cube", "fixpipe", "vector", "MTE3")
MEMORIES = ("GM", "L2", "L1", "L0A", "L0B", "L0C", "UB")
_CACHE = re.compile(r"cache [1-9]")


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("a finite number")
    return value


Cycles = Annotated[int, Before(plain_int), Field(strict=True, ge=0, le=1 << 40)]
Bytes = Annotated[int, Before(plain_int), Field(strict=True, ge=0, le=1 << 50)]
Number = Annotated[int, Before(plain_int), Field(strict=True, ge=0, le=1 << 16)]
Some = Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=1 << 16)]
Clock = Annotated[float, Before(plain_float), Field(strict=True, ge=1 / (1 << 16), le=1 << 10), After(_finite)]
Throughput = Annotated[float, Before(plain_float), Field(strict=True, ge=1 / (1 << 16), le=1 << 40), After(_finite)]   # not 0 as a fraction


@user_calls(also_of=Record)
class Model(Record):
    """Base of the parts of a machine: an impossible value is an error at the user's call."""

    def __init__(self, **given: object) -> None:
        try:
            super().__init__(**given)
        except ValueError as problem:
            raise _refuse_value(type(self).__name__, problem) from None
        self.check()

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """Return the model that `model_dump_json` wrote.

        Raises: C110 for text that is not the JSON of such a model.
        """
        try:
            made = super().model_validate_json(text)
        except ValueError as problem:
            raise _refuse_value(cls.__name__, problem) from None
        made.check()
        return made

    def check(self) -> None:
        """Refuse numbers that contradict each other.

        Raises: C110.
        """

    def shown_fields(self) -> Iterator[tuple[str, object]]:
        """Yield the fields that are not at their defaults."""
        return ((name, value) for name, value in super().shown_fields() if value != self.model_fields[name].value())


def _refuse_value(what: str, problem: ValueError) -> ArchError:
    where, expected, found = first_problem(problem)
    return ArchError(f"{what} does not take this value for {where}" if where else f"this is no {what}", here(), expected=expected,
                     found=repr(found)[:200])


class Memory(Model):
    """A memory of a core, or a memory that all cores share: GM and L2."""

    name: str = Field(description="GM, L2, L1, L0A, L0B, L0C or UB; of a CPU `cache 1` and so on.")
    capacity_bytes: Bytes | None = Field(default=None, description="Its size; None: not bounded, or not given by the sources. "
                                         "Source: the table of instances in the execution design.")
    reserved_bytes: Bytes = Field(default=0, description="What programs cannot use of it. Source: as capacity_bytes.")
    bandwidth_bytes_per_cycle: Throughput | None = Field(
        default=None, description="Of GM: what all cores together move, the bound in simulated time; None: no bound. Of the others it "
        "bounds nothing: how fast a core moves is said by its units. Source: `source`; None: not given.")
    alignment_bytes: Bytes | None = Field(default=None, description="Source: the instruction set; None where not given.")
    source: str = Field(default="", description="Source: of the bandwidth; one that starts with `estimate` is not measured.")

    @property
    def usable_bytes(self) -> int | None:
        """Return the bytes that programs may use; None if unbounded."""
        return None if self.capacity_bytes is None else self.capacity_bytes - self.reserved_bytes


class Rate(Model):
    """The throughput of a unit for one dtype."""

    dtype: str = Field(description="A DType's short name.")
    per_cycle: Throughput = Field(description="Elements a cycle; products a cycle for the cube. Source: that of the unit.")


class ExecUnit(Model):
    """An execution unit of a core. Its throughput is that of `rates`, else `bytes_per_cycle`, else `elements_per_cycle`."""

    name: str = Field(description="cube, vector, MTE1, MTE2, MTE3, fixpipe or scalar.")
    elements_per_cycle: Throughput | None = Field(default=None, description="For every dtype. Source: by definition 1 for `unit`, else "
                                                  "`source`; None: not known.")
    bytes_per_cycle: Throughput | None = Field(default=None, description="Moved, or of the widest operand. Source: `source`; "
                                               "None: not known.")
    rates: tuple[Rate, ...] = Field(default=(), description="By dtype. Source: `source`.")
    startup_cycles: Cycles | None = Field(default=None, description="Latency of one instruction. Source: as elements_per_cycle.")
    source: str = Field(default="", description="Source: of the numbers above; one that starts with `estimate` is not measured.")


class Cores(Model):
    """The cores that run kernels; None: unknown, or on a neutral machine as many as the schedule names."""

    cube: Number | None = Field(default=None, description="AIC cores. Source: the table of instances in the execution design.")
    vector: Number | None = Field(default=None, description="AIV cores. Source: as cube.")
    shared: bool = Field(default=False, description="A core runs kernels of both units: `cube` and `vector` count the same cores. "
                         "Source: `cores` of the arch.")

    @property
    def total(self) -> int:
        """The number of cores; 0 if a kind is unknown."""
        if self.cube is None or self.vector is None:
            return 0
        return max(self.cube, self.vector) if self.shared else self.cube + self.vector


class Aicpu(Model):
    """The control processors, which submit, dispatch and retire tasks."""

    count: Some | None = Field(
        default=None, description="How many there are; None: as many as the policy names. Source: `source`, by definition for `unit`.")
    default_count: Some = Field(
        default=4, description="How many are used where neither policy nor `count` names a number. Source: the execution design.")
    submit_cycles: Cycles | None = Field(
        default=None, description="Cost of one submitted task, for the control processor of its stream. Source: `source`, by definition "
        "0 for `unit`; None: not given.")
    dispatch_cycles: Cycles | None = Field(default=None, description="Cost of one dispatched task, for its own. Source: as submit_cycles.")
    retire_cycles: Cycles | None = Field(default=None, description="Cost of one retired task, for its own. Source: as submit_cycles.")
    source: str = Field(default="", description="Source: of the numbers above; one that starts with `estimate` is not measured.")


class Channels(Model):
    """The transport of tokens from a sending process to a receiving one."""

    latency_cycles: Cycles = Field(default=0, description="Between the completion of what is sent and the token's appearance. "
                                   "Source: `source`, by definition 0 for `unit`.")
    source: str = Field(default="", description="Source: of the number above; one that starts with `estimate` is not measured.")


class Links(Model):
    """The links between the ranks of a mesh.

    A copy goes over the links of its route one after the other, and holds each for its latency and all its bytes (store and forward): the
    shorter way along each axis of a torus, axis after axis, up where both ways are equal; to a switch and from there.
    """

    bandwidth_bytes_per_cycle: Throughput | None = Field(
        default=None, description="Of one link in one direction. Source: `source`; None: `elements_per_cycle`.")
    elements_per_cycle: Throughput | None = Field(default=None,
                                                  description="Of one link, for every dtype. Source: by definition 1 for `unit`.")
    latency_cycles: Cycles = Field(default=0, description="Between the begin of a copy and its first byte. Source: `source`, 0 for `unit`.")
    topology: Literal["all", "ring", "torus", "switch"] = Field(
        default="all", description="Between which ranks there are links: all pairs, neighbours of a ring of all ranks, neighbours along "
        "each axis of the mesh, or each rank and one switch. Source: `source`, by definition all for `unit`.")
    buffers: Some | None = Field(
        default=None, description="Copies that have room at the far end of a link while they wait for the next one of their route. Source: "
        "`source`; None: any number.")
    source: str = Field(default="", description="Source: of the numbers above; one that starts with `estimate` is not measured.")

    def check(self) -> None:
        """Refuse buffers where no copy waits for a second link.

        Raises: C110.
        """
        if self.buffers is not None and self.topology == "all":
            raise ArchError("links between all ranks have no buffers: no copy waits between two links", here(),
                            expected='topology="ring", "torus" or "switch" with buffers', found=repr(self),
                            help='arch.with_links(topology="ring", buffers=...)')

    def cycles(self, elements: s.Scalar, n_bytes: int) -> s.Scalar:
        """Return the cycles that a copy of so many elements, of so many bytes each, holds a link.

        Raises: C110 if the model does not give a speed.
        """
        rate = self.elements_per_cycle if self.bandwidth_bytes_per_cycle is None else self.bandwidth_bytes_per_cycle
        if rate is None:
            raise ArchError("the links of the arch have no speed", here(), expected="links.bandwidth_bytes_per_cycle", found=repr(self),
                            help="give what you know: arch.with_links(bandwidth_bytes_per_cycle=...)")
        moved = elements if self.bandwidth_bytes_per_cycle is None else s.mul(elements, s.Const(n_bytes))
        from fractions import Fraction  # imported here because only prices of copies between ranks need it, and decimal behind it

        up, down = Fraction(repr(float(rate))).limit_denominator(1 << 16).as_integer_ratio()
        up = max(1, up)
        busy = s.binary(s.Op.FLOORDIV, s.add(s.mul(moved, s.Const(down)), s.Const(up - 1)), s.Const(up))
        return s.add(s.Const(self.latency_cycles), busy)


@user_calls()
class Arch(Model, Displayed):
    """A machine."""

    name: str = Field(description="What a user writes for arch=.")
    clock_ghz: Clock | None = Field(default=None,
                                    description="Cycles a nanosecond. Source: by definition 1 for `unit`, the kernel's tables for "
                                    "`host_cpu`, else not given.")
    memories: tuple[Memory, ...] = Field(default=(), description="By level, the shared one first.")
    units: tuple[ExecUnit, ...] = Field(default=(), description="The execution units of its cores.")
    cores: Cores = Field(default_factory=Cores, description="How many cores run kernels.")
    aicpu: Aicpu = Field(default_factory=Aicpu, description="The control processors.")
    channels: Channels = Field(default_factory=Channels, description="How tokens travel between processes.")
    links: Links | None = Field(default=None, description="The links between ranks of a mesh; None: not known.")
    hop_cycles: Cycles | None = Field(default=None, description="From a core to the next one of a grid: how much later a core sees the end "
                                      "of a task. Source: by definition 1 for `unit`; None: not given.")
    family: str = Field(default="", description="Whose tile instructions its cores take: a2a3, a5, or none. Source: the arch's name.")
    neutral: bool = Field(default=False, description="One cycle an element, nothing overlaps, on-chip memory is not bounded.")

    def check(self) -> None:
        """Refuse unknown or repeated names, and a reserve larger than its memory.

        Raises: C110.
        """
        self._check_names("units", [unit.name for unit in self.units], UNITS)
        self._check_names("memories", [memory.name for memory in self.memories if not _CACHE.fullmatch(memory.name)], MEMORIES)
        for unit in self.units:
            self._check_names(f"units[{unit.name}].rates", [rate.dtype for rate in unit.rates], [str(dtype) for dtype in DType])
        for memory in self.memories:
            if memory.usable_bytes is not None and memory.usable_bytes < 0:
                raise ArchError(f"arch `{self.name}` reserves more of `{memory.name}` than there is", here(),
                                expected=f"memories[{memory.name}].reserved_bytes <= {memory.capacity_bytes}",
                                found=f"{memory.reserved_bytes}")

    def _check_names(self, field: str, names: Sequence[str], known: Sequence[str]) -> None:
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ArchError(f"arch `{self.name}` has `{twice[0]}` twice in {field}", here(), found=", ".join(names))
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ArchError(f"arch `{self.name}` has `{unknown[0]}` in {field}, and there is none of that name", here(),
                            expected=f"one of {', '.join(known)}")

    def __repr__(self) -> str:
        cores, n = self.cores, self.aicpu.count
        if self.cores.shared and cores.total:
            said = f"{cores.total} cores"
        else:
            said = " + ".join(f"{count} {kind}" for kind, count in (("cube", cores.cube), ("vector", cores.vector)) if count is not None)
            said = f"{said} cores" if said else "any number of cores"
        return f"Arch({self.name}: {said}, {'any number of AICPUs' if n is None else f'{n} AICPU' + 's' * (n != 1)})"

    def memory(self, name: str) -> Memory:
        """Return the memory of a name.

        Raises: C115 if the machine has none.
        """
        memory = next((m for m in self.memories if isinstance(name, str) and m.name == name), None)
        if memory is None:
            raise ArchOptionError(f"arch `{self.name}` has no memory `{name}`", here(),
                                  expected=", ".join(m.name for m in self.memories))
        return memory

    def unit(self, name: str) -> ExecUnit:
        """Return the execution unit of a name.

        Raises: C115 if the machine has none.
        """
        found = next((unit for unit in self.units if isinstance(name, str) and unit.name == name), None)
        if found is None:
            raise ArchOptionError(f"arch `{self.name}` has no unit `{name}`", here(), expected=", ".join(u.name for u in self.units))
        return found

    def with_unit(self, name: str, **numbers: object) -> Arch:
        """Return the arch with numbers of one unit replaced: `arch.with_unit("vector", bytes_per_cycle=256.0, startup_cycles=20)`.

        Raises: C115 if the machine has no such unit; C110 for an impossible number.
        """
        changed = self.unit(name).model_copy(update=numbers)
        return self.model_copy(update={"units": tuple(changed if unit.name == name else unit for unit in self.units)})

    def with_memory(self, name: str, **numbers: object) -> Arch:
        """Return the arch with numbers of one memory replaced: `arch.with_memory("GM", bandwidth_bytes_per_cycle=900.0)`.

        Raises: C115 if the machine has no such memory; C110 for an impossible number.
        """
        changed = self.memory(name).model_copy(update=numbers)
        return self.model_copy(update={"memories": tuple(changed if memory.name == name else memory for memory in self.memories)})

    def with_cores(self, **numbers: object) -> Arch:
        """Return the arch with other numbers of cores: `arch.with_cores(cube=32, vector=64)`.

        Raises: C110 for an impossible number.
        """
        return self.model_copy(update={"cores": self.cores.model_copy(update=numbers)})

    def with_aicpu(self, **numbers: object) -> Arch:
        """Return the arch with other control processors: `arch.with_aicpu(count=8, submit_cycles=900)`.

        Raises: C110 for an impossible number.
        """
        return self.model_copy(update={"aicpu": self.aicpu.model_copy(update=numbers)})

    def with_channels(self, **numbers: object) -> Arch:
        """Return the arch with another transport of tokens: `arch.with_channels(latency_cycles=5)`.

        Raises: C110 for an impossible number.
        """
        return self.model_copy(update={"channels": self.channels.model_copy(update=numbers)})

    def with_links(self, **numbers: object) -> Arch:
        """Return the arch with other links between ranks: `arch.with_links(bandwidth_bytes_per_cycle=32.0, topology="ring")`.

        Raises: C110 for an impossible number.
        """
        return self.model_copy(update={"links": (self.links or Links()).model_copy(update=numbers)})

    def with_hops(self, cycles: int) -> Arch:
        """Return the arch with another distance between neighbouring cores of a grid, in cycles: `arch.with_hops(30)`.

        Raises: C110 for an impossible number.
        """
        return self.model_copy(update={"hop_cycles": cycles})

    def with_clock(self, ghz: float) -> Arch:
        """Return the arch with another clock in GHz: `arch.with_clock(1.85)`.

        Raises: C110 for an impossible number.
        """
        return self.model_copy(update={"clock_ghz": ghz})

    @property
    def gives_costs(self) -> bool:
        """Whether the model says how fast its units are."""
        return all(unit.startup_cycles is not None for unit in self.units)

    def rate(self, unit: ExecUnit, dtype: str, n_bytes: int) -> float:
        """Return the elements of a dtype that a unit processes per cycle.

        Raises: C115 if the model does not give the number.
        """
        given = next((rate.per_cycle for rate in unit.rates if rate.dtype == dtype), None)
        if given is None and unit.bytes_per_cycle is not None:
            given = unit.bytes_per_cycle / n_bytes
        found = unit.elements_per_cycle if given is None else given
        if found is None:
            field = "rates" if unit.rates else "bytes_per_cycle"
            raise self._unknown(unit, f"{field} for {dtype}" if unit.rates else field, f"{dtype!r}: ..." if unit.rates else "64.0")
        return found

    def startup(self, unit: ExecUnit) -> int:
        """Return the start-up latency of a unit in cycles.

        Raises: C115 if the model does not give the number.
        """
        if unit.startup_cycles is None:
            raise self._unknown(unit, "startup_cycles", "20")
        return unit.startup_cycles

    def _unknown(self, unit: ExecUnit, field: str, value: str) -> CompileOptionError:
        return ArchOptionError(f"arch `{self.name}` gives no cost of kernels: it does not say how fast `{unit.name}` is", here(),
                               expected=f"units[{unit.name}].{field}", found="None: its sources give no number",
                               help=f"give what you know: arch.with_unit({unit.name!r}, {field.split()[0]}={value}), or leave arch "
                                    "out for unit cycles")

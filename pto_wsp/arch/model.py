"""Architecture models: what compiler and simulator know of a machine, as one JSON-able value.

`unit` is hardware-neutral and the default of cpu_sim. A number that its sources do not give is None, or an
estimate that says so.
"""

from __future__ import annotations

from pto_wsp.errors import CompileOptionError
from pto_wsp.records import Field, Record
from pto_wsp.source import here


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


class Rate(Record):
    """The throughput of a unit for one dtype."""

    dtype: str = Field(description="A DType's short name.")
    per_cycle: float = Field(description="Elements a cycle; products a cycle for the cube. Source: that of the unit.")


class ExecUnit(Record):
    """An execution unit of a core. Its throughput is that of `rates`, else `bytes_per_cycle`, else `elements_per_cycle`."""

    name: str = Field(description="cube, vector, MTE1, MTE2, MTE3, fixpipe or scalar.")
    elements_per_cycle: float | None = Field(default=None, description="For every dtype. Source: by definition 1 for `unit`, else "
                                             "`source`; None: not known.")
    bytes_per_cycle: float | None = Field(default=None, description="Moved, or of the widest operand. Source: `source`; None: not known.")
    rates: tuple[Rate, ...] = Field(default=(), description="By dtype. Source: `source`.")
    startup_cycles: int | None = Field(default=None, description="Latency of one instruction. Source: as elements_per_cycle.")
    source: str = Field(default="", description="Source: of the numbers above; one that starts with `estimate` is not measured.")


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


class Channels(Record):
    """How tokens get from the process that sends them to the one that takes them."""

    latency_cycles: int = Field(default=0, description="Between the completion of what is sent and the token's appearance. "
                                "Source: `source`, by definition 0 for `unit`.")
    source: str = Field(default="", description="Source: of the number above; one that starts with `estimate` is not measured.")


class Arch(Record):
    """A machine."""

    name: str = Field(description="What a user writes for arch=.")
    clock_ghz: float | None = Field(default=None,
                                    description="Cycles a nanosecond. Source: by definition 1 for `unit`, else not given.")
    memories: tuple[Memory, ...] = Field(default=(), description="By level, the shared one first.")
    units: tuple[ExecUnit, ...] = Field(default=(), description="The execution units of its cores.")
    cores: Cores = Field(default_factory=Cores, description="How many cores run kernels.")
    aicpu: Aicpu = Field(default_factory=Aicpu, description="The control processors.")
    channels: Channels = Field(default_factory=Channels, description="How tokens travel between processes.")
    family: str = Field(default="", description="Whose tile instructions its cores take: a2a3, a5, or none. Source: the arch's name.")
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

    def unit(self, name: str) -> ExecUnit:
        """Return the execution unit of that name.

        Raises: C104 when the machine has none.
        """
        found = next((unit for unit in self.units if unit.name == name), None)
        if found is None:
            raise CompileOptionError(f"arch `{self.name}` has no unit `{name}`", here(), expected=", ".join(u.name for u in self.units))
        return found

    def with_unit(self, name: str, **numbers: object) -> Arch:
        """Return the arch with numbers of one unit replaced: `arch.with_unit("vector", bytes_per_cycle=256.0, startup_cycles=20)`."""
        changed = self.unit(name).model_copy(update=numbers)
        return self.model_copy(update={"units": tuple(changed if unit.name == name else unit for unit in self.units)})

    def rate(self, unit: ExecUnit, dtype: str, n_bytes: int) -> float:
        """Return how many elements of a dtype a unit handles a cycle.

        Raises: C104 when the model does not say.
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
        """Return the start-up latency of a unit.

        Raises: C104 when the model does not say.
        """
        if unit.startup_cycles is None:
            raise self._unknown(unit, "startup_cycles", "20")
        return unit.startup_cycles

    def _unknown(self, unit: ExecUnit, field: str, value: str) -> CompileOptionError:
        return CompileOptionError(f"arch `{self.name}` gives no cost of kernels: it does not say how fast `{unit.name}` is", here(),
                                  expected=f"units[{unit.name}].{field}", found="None: its sources give no number",
                                  help=f"give what you know: arch.with_unit({unit.name!r}, {field.split()[0]}={value}), or leave arch "
                                       "out for unit cycles")

"""The built-in machines, by name.

>>> builtin_arch("ascend_910b").memory("UB").usable_bytes
188416
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from pto_wsp import doors
from pto_wsp.arch.model import MEMORIES, UNITS, Aicpu, Arch, Channels, Cores, ExecUnit, Links, Memory, Rate
from pto_wsp.calls import user_call
from pto_wsp.errors import ArchOptionError
from pto_wsp.source import here
from pto_wsp.wording import suggestion

_KIB = 1024


def _memories(kib: dict[str, int], reserved_kib: dict[str, int]) -> tuple[Memory, ...]:
    return tuple(Memory(name=name, capacity_bytes=kib[name] * _KIB if name in kib else None,
                        reserved_bytes=reserved_kib.get(name, 0) * _KIB) for name in MEMORIES)


def _unit() -> Arch:
    return Arch(name="unit", clock_ghz=1.0, neutral=True, memories=_memories({}, {}),
                units=tuple(ExecUnit(name=name, elements_per_cycle=1.0, startup_cycles=0) for name in UNITS),
                aicpu=Aicpu(submit_cycles=0, dispatch_cycles=0, retire_cycles=0), links=Links(elements_per_cycle=1.0), hop_cycles=1)


# The sources give capacities and core counts only. These estimates let costs be compared; they are not measured.
_WIDTHS = "estimate: public widths of this core family"
_SHARE = "estimate: a core's share when all cores move"
_LATENCY = "estimate: order of magnitude"
_SHARE_BYTES = 16.0
_CUBES, _VECTORS = 24, 48


def _ascend_910b_units() -> tuple[ExecUnit, ...]:
    products = {"f16": 4096.0, "bf16": 4096.0, "i8": 8192.0, "f32": 1024.0}
    return (
        ExecUnit(name="cube", rates=tuple(Rate(dtype=dtype, per_cycle=n) for dtype, n in products.items()), startup_cycles=20,
                 source=_WIDTHS),
        ExecUnit(name="vector", bytes_per_cycle=256.0, startup_cycles=20, source=_WIDTHS),
        ExecUnit(name="MTE1", bytes_per_cycle=256.0, startup_cycles=20, source=_WIDTHS),
        ExecUnit(name="MTE2", bytes_per_cycle=_SHARE_BYTES, startup_cycles=300, source=_SHARE),
        ExecUnit(name="MTE3", bytes_per_cycle=_SHARE_BYTES, startup_cycles=300, source=_SHARE),
        ExecUnit(name="fixpipe", bytes_per_cycle=128.0, startup_cycles=20, source=_WIDTHS),
        ExecUnit(name="scalar", startup_cycles=1, source=_LATENCY),
    )


def _ascend_910b() -> Arch:
    memories = _memories({"L1": 512, "L0A": 64, "L0B": 64, "L0C": 128, "UB": 192}, {"UB": 8})
    arch = Arch(name="ascend_910b", family="a2a3", cores=Cores(cube=_CUBES, vector=_VECTORS), units=_ascend_910b_units(),
                aicpu=Aicpu(count=6, submit_cycles=1200, dispatch_cycles=600, retire_cycles=400,
                            source=f"{_LATENCY}: two thirds of a microsecond to submit a task, half of one for the rest"),
                channels=Channels(latency_cycles=600, source=f"{_LATENCY}: a store to L2 and a load from it"), memories=memories)
    return arch.with_memory("GM", bandwidth_bytes_per_cycle=_SHARE_BYTES * (_CUBES + _VECTORS),
                            source="estimate: the share of one core that MTE2 and MTE3 have, times the cores")


def _ascend_950() -> Arch:
    return Arch(name="ascend_950", family="a5", units=tuple(ExecUnit(name=name) for name in UNITS),
                memories=_memories({"L1": 512, "L0A": 64, "L0B": 64, "L0C": 256, "UB": 256}, {}))


def _host_cpu() -> Arch:
    return doors.host_cpu()


_INSTANCES: Mapping[str, Callable[[], Arch]] = {
    "unit": _unit, "ascend_910b": _ascend_910b, "ascend_950": _ascend_950, "host_cpu": _host_cpu}
ARCH_NAMES = tuple(_INSTANCES)


@user_call()
def builtin_arch(name: str) -> Arch:
    """Return the machine of a name, created at first use.

    Raises: C115 if there is no such machine.
    """
    if not isinstance(name, str) or name not in _INSTANCES:
        raise ArchOptionError(f"there is no arch {name!r}", here(), expected=f"one of {', '.join(ARCH_NAMES)}, or an Arch",
                              help=suggestion(name, ARCH_NAMES))
    return _build_arch(name)


@cache
def _build_arch(name: str) -> Arch:
    return _INSTANCES[name]()

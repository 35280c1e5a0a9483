"""Model the machine of this process: numbers that Linux gives, and estimates for the others."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from pto_wsp.arch.model import Arch, Cores, ExecUnit, Memory

_CPU = Path("/sys/devices/system/cpu/cpu0")
_VECTOR_BYTES = (("avx512f", 64), ("avx2", 32), ("avx", 32), ("sse2", 16), ("asimd", 16))


def host_cpu() -> Arch:
    """Return a model of this CPU: one core per usable CPU, and its caches as memories.

    Vector width comes from the CPU's flags. Instructions and lines per cycle are estimates, marked as such.
    """
    flags = _flags()
    flag, width = next(((name, size) for name, size in _VECTOR_BYTES if name in flags), ("none known", 16))
    fused = "fma" in flags or "asimd" in flags
    lanes = f"estimate: {width} bytes by {flag}, one vector a cycle"
    products = f"estimate: {width} bytes by {flag}, {'two fused multiply-adds' if fused else 'one product'} a cycle"
    moves = f"estimate: {width} bytes by {flag}, one vector a cycle from the caches"
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Arch(
        name="host_cpu", clock_ghz=_clock_ghz(), cores=Cores(cube=n_cores, vector=n_cores, shared=True),
        memories=(Memory(name="GM"), *(Memory(name=name, capacity_bytes=size) for name, size in _caches())),
        units=(
            ExecUnit(name="cube", bytes_per_cycle=float(width * (2 if fused else 1)), startup_cycles=0, source=products),
            ExecUnit(name="vector", bytes_per_cycle=float(width), startup_cycles=0, source=lanes),
            ExecUnit(name="MTE1", bytes_per_cycle=float(width), startup_cycles=0, source=moves),
            ExecUnit(name="MTE2", bytes_per_cycle=float(width), startup_cycles=0, source=moves),
            ExecUnit(name="MTE3", bytes_per_cycle=float(width), startup_cycles=0, source=moves),
            ExecUnit(name="fixpipe", bytes_per_cycle=float(width), startup_cycles=0, source=moves),
            ExecUnit(name="scalar", startup_cycles=1, source="estimate: order of magnitude"),
        ))


def _flags() -> frozenset[str]:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.partition(":")[2].split())
    return frozenset(("asimd",) if platform.machine() in ("arm64", "aarch64") else ())


def _clock_ghz() -> float | None:
    """Return the highest clock that the kernel gives, because the current clock varies."""
    text = _read(_CPU / "cpufreq" / "cpuinfo_max_freq").strip()
    return int(text) / 1e6 if text.isdigit() else None


def _caches() -> tuple[tuple[str, int], ...]:
    """Return the data caches of a core, outermost first. A program does not fill caches, so they limit no tile."""
    caches: dict[str, int] = {}
    for folder in sorted((_CPU / "cache").glob("index*")):
        size = _read(folder / "size").strip()
        if _read(folder / "type").strip() != "Instruction" and size.endswith("K") and size[:-1].isdigit():
            caches[f"cache {_read(folder / 'level').strip()}"] = int(size[:-1]) * 1024
    return tuple(sorted(caches.items(), reverse=True))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""

"""What a package says of its launch: threads of control processors, blocks, and the sizes of the runtime's rings.

The runtime's drivers read one of these numbers, `aicpu_thread_num`, from kernel_config.py. They take the number of blocks where they
launch, and the runtime sizes its rings itself: these numbers are recorded in a table of their own, which drivers ignore.

>>> launch_of(w.dispatch(DispatchPolicy.round_robin(4)).schedule, builtin_arch("ascend_910b"), None).aicpu_threads
4
"""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.arch.control import aicpus_of
from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchError
from pto_wsp.schedule.directives import WindowMode
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.values import dataclass

# the runtime's ring that a window of each unit stands for
_RINGS = {"tasks": "task ring", "bytes": "heap", "entries": "tensor map", "edges": "pool of dependencies",
          "ready": "queue of ready tasks"}


@dataclass(frozen=True, slots=True)
class LaunchNumbers:
    """The numbers of a launch. `aicpu_threads`: 0 for the arch's default; `recorded`: name, number and meaning, for people alone."""

    aicpu_threads: int
    recorded: tuple[tuple[str, int, str], ...]


def launch_of(schedule: Schedule, arch: Arch, block_dim: int | None) -> LaunchNumbers:
    """Return what a schedule says of the launch, and how many blocks the user asks for; None: does not say.

    A block is a cube core with its vector cores.
    Raises: C110 for more AICPUs or more blocks than the arch has.
    """
    named = None if schedule.dispatch is None else schedule.dispatch.num_aicpus
    threads = 0 if named is None else aicpus_of(arch, named)
    has = arch.cores.cube
    if block_dim is not None and has is not None and block_dim > has:
        raise ArchError(f"block_dim is more than the cube cores of arch `{arch.name}`", here(), expected=f"at most {has}",
                        found=f"{block_dim}", help=f"ask for fewer, or give the arch more: arch.with_cores(cube={block_dim})")
    return LaunchNumbers(threads, tuple(_recorded(schedule, block_dim)))


def _recorded(schedule: Schedule, block_dim: int | None) -> Iterator[tuple[str, int, str]]:
    """Yield the numbers that no driver reads. A window that ends a run or only counts says nothing of a ring, which stalls."""
    if block_dim is not None:
        yield "block_dim", block_dim, "for the launch: drivers refuse it in RUNTIME_CONFIG"
    for window in () if schedule.task_graph is None else schedule.task_graph.windows:
        if window.mode is WindowMode.STALL:
            yield f"window_{window.unit}", window.size, f"the runtime sizes its {_RINGS[window.unit]} by itself"

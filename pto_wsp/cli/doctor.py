"""Check this machine for the needs of programs: compiler, store, libraries, a first run; each failed check says what to do."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from pto_wsp.artifact.folders import open_private
from pto_wsp.artifact.inventory import stored
from pto_wsp.artifact.store import cache_root
from pto_wsp.artifact.toolchain import compile_library, cpu_features, find_toolchain
from pto_wsp.cli.cache import size_text
from pto_wsp.cli.demo import FILE, SOURCE
from pto_wsp.cli.programs import find_workload, load_file
from pto_wsp.errors import PtoError
from pto_wsp.values import dataclass
from pto_wsp.view.card import Card, TablePart
from pto_wsp.wording import counted

_NEEDED = ("numpy", "pydantic", "cffi", "jinja2", "ml_dtypes", "rich", "typer")
_EXTRAS = ("ipython", "pandas", "matplotlib", "networkx", "anywidget", "torch", "ziglang")
_LEAST_BYTES = 200 << 20
_VARIABLES = ("CC", "CFLAGS", "PTO_WSP_CACHE_DIR", "PTO_WSP_COMPILE_TIMEOUT")


def own_version() -> str:
    """Return the version of this package."""
    return str(sys.modules["pto_wsp"].__dict__["__version__"])


@dataclass(frozen=True, slots=True)
class Look:
    """The result of inspecting one thing. `status`: ok, warn or fail; `advice`: the remedy."""

    status: str
    what: str
    found: str
    advice: str = ""


def examined() -> tuple[Card, bool]:
    """Return the card of all looks, and whether one of them failed."""
    lines = [line for look in (_versions, _compiler, _store, _processor, _variables, _extras, _small_run) for line in _guarded(look)]
    failed, warned = (sum(line.status == status for line in lines) for status in ("fail", "warn"))
    sentence = "Programs compile and run here." if not failed else f"{counted(failed, 'look')} failed: see what to do."
    if warned:
        sentence += f" {counted(warned, 'warning')}."
    rows = tuple((line.status, line.what, line.found, line.advice) for line in lines)
    return Card(title="Doctor", subtitle=f"pto-wsp {own_version()}", sentence=sentence,
                parts=(TablePart(head=("", "what", "found", "what to do"), rows=rows),)), failed > 0


def _guarded(look: Callable[[], Iterator[Look]]) -> list[Look]:
    """Return the lines of a look; an error of ours or the system's is a line as well."""
    found: list[Look] = []
    try:
        found.extend(look())
    except PtoError as problem:
        text = problem.message + (f": {problem.found}" if problem.found else "")
        found.append(Look("fail", look.__name__.strip("_").replace("_", " "), text, problem.help or f"pto-wsp explain {problem.code}"))
    except Exception as problem:
        found.append(Look("fail", look.__name__.strip("_").replace("_", " "), f"{type(problem).__name__}: {problem}",
                          "please report this line"))
    return found


# -- looks -------------------------------------------------------------------------------------------------------------
def _versions() -> Iterator[Look]:
    yield Look("ok", "python", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}")
    found = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _NEEDED)
    yield Look("ok", "packages", found)


def _compiler() -> Iterator[Look]:
    toolchain = find_toolchain()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="pto-wsp-doctor-") as folder:
        (Path(folder) / "probe.c").write_text("int pto_probe(int x) { return x + 1; }\n")
        compile_library(toolchain, ("-shared", "-fPIC"), ("probe.c",), "libprobe.so", Path(folder), what="a file of one line")
    took_ms = (time.perf_counter() - begun) * 1e3
    yield Look("ok", "compiler", f"{' '.join(toolchain.command)}: {toolchain.version()}, {took_ms:.0f} ms for one line")


def _store() -> Iterator[Look]:
    root = cache_root()
    try:
        with open_private(root):
            found = stored()
        held = f"{counted(len(found), 'artifact')}, {size_text(sum(one.size_bytes for one in found))}"
        yield Look("ok", "cache", f"{root}: {held}, yours alone")
    except FileNotFoundError:
        yield Look("ok", "cache", f"{root}: not there yet, the first compile makes it")
    place = next(path for path in (root, *root.parents) if path.is_dir())
    if not os.access(place, os.W_OK):
        yield Look("fail", "cache", f"{place} cannot be written", "set PTO_WSP_CACHE_DIR to a folder of your own")
    free = shutil.disk_usage(place).free
    yield Look("ok" if free >= _LEAST_BYTES else "warn", "disk", f"{size_text(free)} free",
               "" if free >= _LEAST_BYTES else "make room, or pto-wsp cache prune --all")


def _processor() -> Iterator[Look]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wide = [name for name in ("avx512f", "avx2", "asimd", "sve") if name in cpu_features()]
    yield Look("ok", "processor", f"{platform.machine()}, {counted(usable, 'usable core')}, {', '.join(wide) or 'no wide vectors known'}")


def _variables() -> Iterator[Look]:
    given = [f"{name}={os.environ[name]}" for name in _VARIABLES if os.environ.get(name)]
    yield Look("ok", "environment", ", ".join(given) or "none of " + ", ".join(_VARIABLES))


def _extras() -> Iterator[Look]:
    modules = {"ipython": "IPython"}
    there = [name for name in _EXTRAS if importlib.util.find_spec(modules.get(name, name)) is not None]
    absent = [name for name in _EXTRAS if name not in there]
    yield Look("ok", "extras", ", ".join(there) or "none", f"not installed, not needed: {', '.join(absent)}" if absent else "")


# -- a small run -------------------------------------------------------------------------------------------------------
def _small_run() -> Iterator[Look]:
    with tempfile.TemporaryDirectory(prefix="pto-wsp-doctor-") as folder:
        file = Path(folder) / FILE
        file.write_text(SOURCE, encoding="utf-8")
        module = load_file(file)
        begun = time.perf_counter()
        program = find_workload(module, file, "shared").compile()
        program.run()
        took_ms = (time.perf_counter() - begun) * 1e3
    x, w, y = (np.asarray(vars(module)[name].data) for name in ("X", "W", "Y"))
    is_task = np.arange(x.shape[1]) < vars(module)["BLOCKS"][:, None]
    right = bool(np.allclose(y, np.maximum(x @ w, 0) * is_task[..., None, None], atol=1e-5))
    tasks = counted(program.stats.task_count, "task")
    yield Look("ok" if right else "fail", "small run", f"{tasks}, {'the' if right else 'other'} numbers {'of' if right else 'than'} NumPy, "
               f"{took_ms:.0f} ms", "" if right else "try another compiler: CC=clang; and please report this")

"""Load workloads from Python files, summarise compiled programs, and run saved programs.

`run` does the same as the command that `make` builds from a saved program, and also reads and writes NumPy files. `passes`
lists the passes of targets in the order in which they run.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pto_wsp import doors
from pto_wsp.api.program import Program, load
from pto_wsp.api.workload import Workload, WorkloadFunction
from pto_wsp.artifact.manifest import CheckEntry, Manifest, PackageManifest
from pto_wsp.errors import CommandError, InternalError, PtoError
from pto_wsp.ir.plan import TensorSlot, is_float_symbol
from pto_wsp.source import Span
from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.strategies import STRATEGIES
from pto_wsp.targets.table import find_target


# -- workloads of a file -----------------------------------------------------------------------------------------------
def load_file(path: Path) -> ModuleType:
    """Run a Python file as a module under its own name, with its folder on the path, and return the module.

    Raises: C108 for a file that cannot be read or that raises; PtoErrors of the file's code unchanged.
    """
    if not path.is_file():
        raise CommandError(f"there is no file {path}", None, expected="a Python file with a workload at its top level")
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    linecache.checkcache(str(path))
    try:   # compile the text: cached bytecode is reused if only size and second match
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except PtoError:
        raise
    except SystemExit as left:
        raise CommandError(f"{path} ended the process while it was loaded", None, found=f"SystemExit({left.code!r})",
                           help='put what a script does under `if __name__ == "__main__":`') from None
    except Exception as problem:
        raise CommandError(f"{path} could not be loaded", _where(problem, path), found=f"{type(problem).__name__}: {problem}") from problem
    return module


def _where(problem: Exception, path: Path) -> Span | None:
    """Return the last line of the file in the exception's traceback."""
    if isinstance(problem, SyntaxError) and problem.lineno is not None:
        return Span(str(path), problem.lineno)
    lines = []
    step = problem.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path):
            lines.append(step.tb_lineno)
        step = step.tb_next
    return Span(str(path), lines[-1]) if lines else None


def find_workload(module: ModuleType, path: Path, name: str) -> Workload:
    """Return the workload called `name`, or the only one: a Workload at the top level, or a `@workload` function without parameters.

    Raises: C108 with the workloads that the file has.
    """
    found = {key: value for key, value in vars(module).items() if isinstance(value, Workload | WorkloadFunction)}
    ready = {key: value for key, value in found.items() if isinstance(value, Workload) or not _parameters(value)}
    if name:
        if name not in found:
            raise CommandError(f"{path} has no workload `{name}`", None, expected=f"one of {', '.join(found)}" if found else "a workload",
                               found=f"a {type(getattr(module, name)).__name__}" if hasattr(module, name) else None)
        if name not in ready:
            raise CommandError(f"workload `{name}` takes parameters", None, found=", ".join(_parameters(found[name])),
                               help=f"call it at the top level of the file: ready = {name}(...)")
        return _as_workload(ready[name])
    scheduled = {key: value for key, value in ready.items() if isinstance(value, Workload)}
    choice = scheduled or ready
    if len(choice) != 1:
        known = ", ".join(choice)
        help = f"name one: --workload {next(iter(choice))}" if choice else "make one at the top level, not inside a function or under " \
                                                                            '`if __name__ == "__main__":`'
        raise CommandError(f"{path} has {len(choice) or 'no'} workload{'s' * (len(choice) != 1)} at its top level", None,
                           found=known or None, help=help)
    return _as_workload(next(iter(choice.values())))


def _parameters(value: Workload | WorkloadFunction) -> tuple[str, ...]:
    """Return the names of the parameters without defaults."""
    if isinstance(value, Workload):
        return ()
    return tuple(p.name for p in inspect.signature(value).parameters.values() if p.default is p.empty)


def _as_workload(value: Workload | WorkloadFunction) -> Workload:
    return value if isinstance(value, Workload) else value()


# -- summary -----------------------------------------------------------------------------------------------------------
def summary(program: Program, root: Path | None) -> RenderableType:
    """Return a few lines about a program: its files and their folder, its kernels, and the verdicts of its checks."""
    manifest = program.manifest
    if not isinstance(manifest, Manifest | PackageManifest):
        return Text("target interp has nothing to write: it runs in Python")
    if root is None:
        raise InternalError("an artifact without a folder", manifest.name)
    head = Text(f"{manifest.name} for {manifest.target}, {manifest.arch}")
    lines: list[RenderableType] = [head, kernel_table(manifest), checks_line(manifest.checks)]
    if manifest.recorded_directives:
        lines.append(Text(f"recorded, not enforced: {', '.join(manifest.recorded_directives)}"))
    return Group(*lines, Text(str(root)))


def kernel_table(manifest: Manifest | PackageManifest) -> Table:
    """Return a table with one kernel per row."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    if isinstance(manifest, PackageManifest):
        for head in ("func", "kernel", "core", "tensors", "scalars", "on chip", "from"):
            table.add_column(head)
        for kernel in manifest.kernels:
            used = ", ".join(f"{name} {size}" for name, size in kernel.on_chip)
            table.add_row(str(kernel.func_id), kernel.name, kernel.core_type, " ".join(kernel.signature) or "-",
                          " ".join(kernel.scalars) or "-", used or "-", kernel.origin)
        return table
    for head in ("id", "kernel", "parameters", "scratch", "from"):
        table.add_column(head)
    for entry in manifest.kernels:
        table.add_row(str(entry.id), entry.name, ", ".join(entry.params), str(entry.scratch_bytes), entry.source)
    return table


def checks_line(checks: tuple[CheckEntry, ...]) -> Text:
    """Return the number of checks with each verdict."""
    counts: dict[str, int] = {}
    for check in checks:
        counts[check.verdict] = counts.get(check.verdict, 0) + 1
    return Text("checks: " + (", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "none"))


# -- runs --------------------------------------------------------------------------------------------------------------
Array = npt.NDArray[Any]
_U64 = np.uint64


def run_saved(folder: Path, threads: int | None, seed: int, given: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Run a saved program and yield the lines of its report; `given` holds the values of --in, --out, --dim and --set.

    Raises: C108 for text that is not NAME=VALUE, an unknown name, or a file that does not match; the errors of load and run.
    """
    program = load(folder, threads=threads)
    tensors = {slot.ref.shown: slot for slot in program.plan.tensors if not slot.fresh}
    files, outputs, dims = (_texts_by_name(option, given.get(option, ()), tensors) for option in ("--in", "--out", "--dim"))
    made = {t.ref.shown for t, wrapped in zip(program.plan.tensors, program._wrapped, strict=True) if wrapped is not None}
    arrays: dict[str, Array] = {}
    for name, slot in tensors.items():
        if name not in made or name in files or name in outputs or name in dims:
            shape = _shape(name, slot, dims.get(name))
            arrays[name] = _read(name, slot, shape, Path(files[name])) if name in files else (
                filled(seed, name, slot, shape) if slot.reads or slot.scalars else np.zeros(shape, slot.ref.dtype.np))
    program.run(**arrays, **_numbers(program, given.get("--set", ())))
    stats = program.stats
    yield f"tasks = {stats.task_count}"
    yield f"run_ms = {stats.execute_time_ms:.3f}"
    yield f"total_cycles = {stats.total_cycles}"
    for name, path in outputs.items():
        _write(arrays[name], Path(path))
    for name, slot in tensors.items():
        if slot.writes and name not in made:
            yield f"checksum {name} = {fnv(arrays[name].tobytes()):016x}"


def filled(seed: int, name: str, slot: TensorSlot, shape: tuple[int, ...]) -> Array:
    """Return the array that csrc/program/main.c generates from a seed: eighths in [-1, 1) for floats, otherwise 0 and 1."""
    dtype = slot.ref.dtype
    stream = _U64(fnv(name.encode(), int(_mix_bits(np.array([seed], _U64))[0])))
    with np.errstate(over="ignore"):
        drawn = _mix_bits(stream + np.arange(int(np.prod(shape)), dtype=_U64))
    values = ((drawn >> _U64(60)).astype(np.int64) - 8) / 8 if "float" in str(dtype.np) else drawn >> _U64(63)
    return values.astype(dtype.np).reshape(shape)


def _mix_bits(x: Array) -> Array:
    with np.errstate(over="ignore"):
        x = x + _U64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> _U64(27))) * _U64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> _U64(31)))


def fnv(data: bytes, state: int = 0xCBF29CE484222325) -> int:
    """Return the FNV-1a-64 hash of bytes."""
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state


def _texts_by_name(option: str, texts: Sequence[str], known: Mapping[str, object]) -> dict[str, str]:
    values = dict(_pair(option, text) for text in texts)
    for name in values:
        if name not in known:
            raise CommandError(f"{option}: the program binds no tensor called `{name}`", None, expected=f"one of {', '.join(known)}")
    return values


def _pair(option: str, text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise CommandError(f"{option} takes NAME=VALUE", None, found=text)
    return name, value


def _shape(name: str, slot: TensorSlot, text: str | None) -> tuple[int, ...]:
    if text is None:
        return slot.ref.shape
    extents = text.split(",")
    if len(extents) != slot.ref.rank or not all(extent.isdecimal() for extent in extents):
        raise CommandError(f"--dim {name} takes {slot.ref.rank} extents with commas between them", None, found=text)
    return tuple(map(int, extents))


def _numbers(program: Program, texts: Sequence[str]) -> dict[str, int | float]:
    floats = {symbol.name: is_float_symbol(symbol) for symbol in program.plan.symbols}
    numbers: dict[str, int | float] = {}
    for text in texts:
        name, value = _pair("--set", text)
        if name not in floats:
            raise CommandError(f"--set: the program has no number called `{name}`", None, expected=f"one of {', '.join(floats) or 'none'}")
        try:
            numbers[name] = float(value) if floats[name] else int(value)
        except ValueError:
            raise CommandError(f"--set {name} takes a {'real' if floats[name] else 'whole'} number", None, found=value) from None
    return numbers


def _read(name: str, slot: TensorSlot, shape: tuple[int, ...], path: Path) -> Array:
    """Return the elements of a tensor, from a .npy file or from a raw file of exactly the shape's size."""
    dtype, count = slot.ref.dtype.np, int(np.prod(shape))
    try:
        if path.suffix == ".npy":
            array: Array = np.load(path)
            return array if array.dtype == dtype or array.dtype.itemsize != dtype.itemsize else array.view(dtype)
        data = path.read_bytes()
    except (OSError, ValueError) as problem:
        raise CommandError(f"{path} cannot be read", None, found=str(problem)) from None
    if len(data) != count * dtype.itemsize:
        raise CommandError(f"{path} does not hold tensor `{name}`", None, expected=f"{count * dtype.itemsize} bytes",
                           found=f"{len(data)} bytes", help=f"--dim {name}=N,N,... gives other extents")
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _write(array: Array, path: Path) -> None:
    try:
        if path.suffix == ".npy":
            np.save(path, array)
        else:
            path.write_bytes(array.tobytes())
    except OSError as problem:
        raise CommandError(f"{path} cannot be written", None, found=str(problem.strerror)) from None


_HEAD = ("level", "pass", "what it does")


def pipelines(name: str) -> Iterator[Text]:
    """Yield a heading and a line for each pass of each target: level, where it changes, name, and what the pass does; then its strategies.

    name: only this target; "" for all.
    Raises: C104 for a target that there is none of.
    """
    for number, target in enumerate(map(find_target, [name] if name else doors.TARGETS)):
        yield Text("\n" * (number > 0) + target.name, style="bold")
        steps = target.passes(CompileOptions())
        levels = [step.level_name if at == 0 or steps[at - 1].level_name != step.level_name else "" for at, step in enumerate(steps)]
        rows = [_HEAD, *((level, step.name, step.summary) for level, step in zip(levels, steps, strict=True))]
        widths = [max(len(row[k]) for row in rows) for k in (0, 1)]
        for at, (level, step, summary) in enumerate(rows):
            yield Text(f"{level:{widths[0]}}  {step:{widths[1]}}  {summary}", style="" if at else "bold")
        for strategy in STRATEGIES:
            out = strategy.left_out(steps)
            yield Text(f"passes={strategy.name!r} or {strategy.also!r}: {strategy.summary}"
                       + (f"; without {', '.join(out)}" if out else "" if strategy.only is None else "; here, that is every pass"))

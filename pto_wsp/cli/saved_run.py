"""What `run` does with a saved program: the same as the command that `make` builds of it, with files of NumPy's too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp.api.programs.making import load
from pto_wsp.api.programs.program import Program
from pto_wsp.errors import CommandError
from pto_wsp.plan.model import TensorSlot, is_float_symbol

Array = npt.NDArray[Any]
_U64 = np.uint64


def run_saved(folder: Path, threads: int | None, seed: int, given: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Run a saved program and yield what is told of it, a line each; `given`: what follows --in, --out, --dim and --set.

    Raises: C108 for what is not NAME=VALUE, a name that is none, or a file that does not fit; what load and run raise.
    """
    program = load(folder, threads=threads)
    tensors = {slot.ref.shown: slot for slot in program.plan.tensors if not slot.fresh}
    files, outputs, dims = (_named(option, given.get(option, ()), tensors) for option in ("--in", "--out", "--dim"))
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
    """Return the array that csrc/program/main.c fills from a seed: eighths in [-1, 1) for floats, else 0 and 1."""
    dtype = slot.ref.dtype
    stream = _U64(fnv(name.encode(), int(_mixed(np.array([seed], _U64))[0])))
    with np.errstate(over="ignore"):
        drawn = _mixed(stream + np.arange(int(np.prod(shape)), dtype=_U64))
    values = ((drawn >> _U64(60)).astype(np.int64) - 8) / 8 if "float" in str(dtype.np) else drawn >> _U64(63)
    return values.astype(dtype.np).reshape(shape)


def _mixed(x: Array) -> Array:
    with np.errstate(over="ignore"):
        x = x + _U64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> _U64(27))) * _U64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> _U64(31)))


def fnv(data: bytes, state: int = 0xCBF29CE484222325) -> int:
    """Return FNV-1a-64 of bytes."""
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state


def _named(option: str, texts: Sequence[str], known: Mapping[str, object]) -> dict[str, str]:
    found = dict(_pair(option, text) for text in texts)
    for name in found:
        if name not in known:
            raise CommandError(f"{option}: the program binds no tensor called `{name}`", None, expected=f"one of {', '.join(known)}")
    return found


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
    found: dict[str, int | float] = {}
    for text in texts:
        name, value = _pair("--set", text)
        if name not in floats:
            raise CommandError(f"--set: the program has no number called `{name}`", None, expected=f"one of {', '.join(floats) or 'none'}")
        try:
            found[name] = float(value) if floats[name] else int(value)
        except ValueError:
            raise CommandError(f"--set {name} takes a {'real' if floats[name] else 'whole'} number", None, found=value) from None
    return found


def _read(name: str, slot: TensorSlot, shape: tuple[int, ...], path: Path) -> Array:
    """Return a tensor's elements: of a .npy file as they are, of any other file raw, as many as the shape has."""
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

"""Run programs from the command line: bind what is given, fill the other tensors, show what the run took and what came out.

A saved program does the same as the command that `make` builds of it, and also reads and writes NumPy files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp.api.program import Program
from pto_wsp.cli.programs import opened, refused
from pto_wsp.ir.plan import TensorSlot, is_float_symbol
from pto_wsp.values import dataclass
from pto_wsp.view.card import Card, Preformatted, TablePart
from pto_wsp.wording import nearest

Array = npt.NDArray[Any]
_U64 = np.uint64
_MOST_SUMMED_BYTES = 1 << 24      # a byte takes 0.1 us
Given = Mapping[str, Sequence[str]]


# -- cards -------------------------------------------------------------------------------------------------------------
def run_card(what: Path, workload: str, options: Mapping[str, object], seed: int, given: Given, report: Path | None,
             why: bool = False) -> Card:
    """Run a workload or a saved program once and return the card of the run; `given` holds the values of --in, --out, --dim and --set.
    `why` adds the longest waits and advice.

    Raises: C108 for text that is not NAME=VALUE, an unknown name, or a file that does not match; the errors of compile and run.
    """
    program = opened(what, workload, options)
    bound = run(program, seed, given)
    _ = program.stats      # simulated here, so that the card shows the run
    shown: Card = program.card
    parts = [part for part in shown.parts if not (isinstance(part, TablePart) and part.title == "Checks")]
    if why:      # the waits, and what a change of the schedule would give
        parts += [part for part in program.trace.card.parts if isinstance(part, TablePart)]
        parts += program.advise().card.parts
    return shown.model_copy(update={"subtitle": shown.subtitle.replace("Program", "Run"), "parts": (*parts, *_outputs(bound)),
                                    "foot": _written(program, report) if report is not None else ""})


def report_card(what: Path, workload: str, options: Mapping[str, object], seed: int, given: Given, out: Path) -> Card:
    """Run once, write the report, and return a card that names its file; raises as `run_card`, and C108 if it cannot be written."""
    program = opened(what, workload, options)
    run(program, seed, given)
    written = _written(program, out)
    return Card(title=program.plan.name, subtitle="Report", sentence=program.card.sentence, foot=written)


def task_card(what: Path, task: str, workload: str, options: Mapping[str, object], seed: int, given: Given) -> Card:
    """Run once and return why a task ran when it did; raises as `run_card`, and R112 for what names no task."""
    program = opened(what, workload, options)
    run(program, seed, given)
    explanation = program.explain(int(task) if task.isdecimal() else task or None)
    return Card(title=program.plan.name, subtitle="Explanation", parts=(Preformatted(text=str(explanation)),))


def _written(program: Program, path: Path) -> str:
    return str(program.report(path))


def _outputs(bound: RunArrays) -> tuple[TablePart, ...]:
    if not bound.outputs:
        return ()
    rows = []
    for name, array in bound.outputs.items():
        numbers = array.astype(np.float64) if array.dtype.kind not in "iub" else array
        finite = numbers[np.isfinite(numbers)]
        least, most = (f"{edge:.6g}" for edge in (finite.min(), finite.max())) if finite.size else ("-", "-")
        rows.append((name, str(array.dtype), str(list(array.shape)), least, most, f"{numbers.size - finite.size:,}",
                     f"{fnv(np.ascontiguousarray(array).tobytes()):016x}" if array.nbytes <= _MOST_SUMMED_BYTES else "-"))
    return (TablePart(title="Outputs", head=("tensor", "dtype", "shape", "least", "most", "not finite", "checksum"), rows=tuple(rows),
                      right=(3, 4, 5)),)


# -- runs --------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class RunArrays:
    """The arrays and numbers of a run by their names. `bound`: what run() is given; `outputs`: what it writes."""

    bound: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Array] = field(default_factory=dict)


def run(program: Program, seed: int, given: Given) -> RunArrays:
    """Run a program once, write the files of --out, and return its arrays; raises as `run_card`."""
    arrays = arrays_of(program, seed, given)
    program.run(**arrays.bound)
    for name, path in _texts_by_name("--out", given.get("--out", ()), arrays.outputs | arrays.bound).items():
        _write(arrays.outputs[name] if name in arrays.outputs else arrays.bound[name], Path(path))
    return arrays


def arrays_of(program: Program, seed: int, given: Given) -> RunArrays:
    """Return what a run binds: files, numbers, and for each tensor without data one that is filled from the seed."""
    tensors = {slot.ref.shown: (slot, own) for slot, own in zip(program.plan.tensors, program._wrapped, strict=True) if not slot.fresh}
    files, outputs, dims = (_texts_by_name(option, given.get(option, ()), tensors) for option in ("--in", "--out", "--dim"))
    found = RunArrays(bound={**_numbers(program, given.get("--set", ()))})
    for name, (slot, own) in tensors.items():
        made = own is not None and own.intermediate
        data = None if own is None else own.data
        if name in files or name in dims or (data is None and not made) or (made and name in outputs):
            shape = _shape(name, slot, dims.get(name))
            found.bound[name] = _read(name, slot, shape, Path(files[name])) if name in files else (
                filled(seed, name, slot, shape) if slot.reads or slot.scalars else np.zeros(shape, slot.ref.dtype.np))
        array = found.bound.get(name, data)
        if array is not None and (name in outputs or (slot.writes and not made)):
            found.outputs[name] = np.asarray(array)
    return found


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
            near = nearest(name, known)
            raise refused(f"{option}: the program binds no tensor called `{name}`", expected=f"one of {', '.join(known)}",
                          help=f"did you mean {near}?" if near else None)
    return values


def _pair(option: str, text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise refused(f"{option} takes NAME=VALUE", found=text)
    return name, value


def _shape(name: str, slot: TensorSlot, text: str | None) -> tuple[int, ...]:
    if text is None:
        return slot.ref.shape
    extents = text.split(",")
    if len(extents) != slot.ref.rank or not all(extent.isdecimal() for extent in extents):
        raise refused(f"--dim {name} takes {slot.ref.rank} extents with commas between them", found=text)
    return tuple(map(int, extents))


def _numbers(program: Program, texts: Sequence[str]) -> dict[str, int | float]:
    floats = {symbol.name: is_float_symbol(symbol) for symbol in program.plan.symbols}
    numbers: dict[str, int | float] = {}
    for text in texts:
        name, value = _pair("--set", text)
        if name not in floats:
            near = nearest(name, floats)
            raise refused(f"--set: the program has no number called `{name}`",
                          expected=f"one of {', '.join(floats)}" if floats else "no --set",
                          help=f"did you mean {near}?" if near else None)
        try:
            numbers[name] = float(value) if floats[name] else int(value)
        except ValueError:
            raise refused(f"--set {name} takes a {'real' if floats[name] else 'whole'} number", found=value) from None
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
        raise refused(f"{path} cannot be read", found=str(problem)) from None
    if len(data) != count * dtype.itemsize:
        raise refused(f"{path} does not hold tensor `{name}`", expected=f"{count * dtype.itemsize} bytes",
                           found=f"{len(data)} bytes", help=f"--dim {name}=N,N,... gives other extents")
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _write(array: Array, path: Path) -> None:
    try:
        if path.suffix == ".npy":
            np.save(path, array)
        else:
            path.write_bytes(array.tobytes())
    except OSError as problem:
        raise refused(f"{path} cannot be written", found=str(problem.strerror)) from None

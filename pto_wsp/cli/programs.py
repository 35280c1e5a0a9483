"""Load workloads from Python files, and show what is known of them before a run: summary, checks, passes, errors by their codes."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from pto_wsp import doors
from pto_wsp.api.compiling import load
from pto_wsp.api.jit import JitFunction
from pto_wsp.api.kernel import Kernel
from pto_wsp.api.program import Program
from pto_wsp.api.workload import Workload, WorkloadFunction
from pto_wsp.artifact.manifest import CheckEntry, Manifest, PackageManifest
from pto_wsp.errors import CommandError, InternalError, PtoError
from pto_wsp.errors.page import errors_by_code
from pto_wsp.ir import workload as wl
from pto_wsp.schedule.tunable import tunables_of
from pto_wsp.source import Span
from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.strategies import STRATEGIES
from pto_wsp.targets.table import find_target
from pto_wsp.view.card import Card, LabelledValue, Part, Preformatted, TablePart, ValuesPart
from pto_wsp.wording import counted, nearest, printable

_Made = TypeVar("_Made")


def refused(message: str, where: Span | None = None, *, expected: str | None = None, found: str | None = None,
            help: str | None = None) -> CommandError:
    """Return the error of a command that was given what it can do nothing with."""
    return CommandError(message, where, expected=expected, found=found, help=help)


# -- workloads of a file -----------------------------------------------------------------------------------------------
def load_file(path: Path) -> ModuleType:
    """Run a Python file as a module under its own name, with its folder on the path, and return the module.

    Raises: C108 for a file that cannot be read or that raises; PtoErrors of the file's code unchanged.
    """
    if not os.path.isfile(path):      # False, too, for what is no path
        raise refused(f"there is no file {path}", expected="a Python file with a workload at its top level",
                      found="a folder" if os.path.isdir(path) else None)
    taken = path.stem in sys.modules or path.stem in sys.stdlib_module_names      # a file numpy.py is not numpy
    module = ModuleType(f"file_{path.stem}" if taken else path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.parent.resolve()))
    linecache.checkcache(str(path))

    def execute() -> None:      # compile the text: cached bytecode is reused if only size and second match
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)

    arguments, sys.argv = sys.argv, [str(path)]
    try:
        _of_the_user(execute, path, "loaded")
    finally:
        sys.argv = arguments
    return module


def _of_the_user(code: Callable[[], _Made], path: Path, done: str) -> _Made:
    """Return what code of the user's file makes. `done`: what is done to the file, for the message.

    Raises: C108 at the last line of the file if the code raises; PtoErrors unchanged.
    """
    try:
        return code()
    except PtoError:
        raise
    except SystemExit as left:
        raise refused(f"{path} ended the process while it was {done}", found=f"SystemExit({left.code!r})",
                      help='put what a script does under `if __name__ == "__main__":`') from None
    except Exception as problem:
        raise refused(f"{path} could not be {done}", _where(problem, path), found=f"{type(problem).__name__}: {problem}") from problem


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
    return made_of(choose(module, path, name), path)


def made_of(chosen: Workload | Callable[..., Workload], path: Path) -> Workload:
    """Return a workload, or what the function of a file makes of its first values of Tunables.

    Raises: C108 at the file's line if the function raises.
    """
    if isinstance(chosen, Workload):
        return chosen
    values = {name: tunable.values[0] for name, tunable in tunables_of(chosen).items()}
    return _of_the_user(lambda: chosen(**values), path, "traced")


def choose(module: ModuleType, path: Path, name: str, *, tuned: bool = False) -> Workload | Callable[[], Workload]:
    """Return a workload of the file, or the function that makes it; `tuned`: also a function whose parameters are Tunables.

    Raises: C108 with the workloads that the file has.
    """
    found: dict[str, Workload | Callable[[], Workload]] = {
        key: value for key, value in vars(module).items() if isinstance(value, Workload | WorkloadFunction)
        or (tuned and key == name and callable(value) and tunables_of(value))}
    ready = {key: value for key, value in found.items() if isinstance(value, Workload) or not _parameters(value)}
    if name:
        if name not in found:
            near = nearest(name, found)
            raise refused(f"{path} has no workload `{name}`", expected=f"one of {', '.join(found)}" if found else "a workload",
                          found=f"a {type(getattr(module, name)).__name__}" if hasattr(module, name) else None,
                          help=f"did you mean {near}?" if near else None)
        if name not in ready:
            raise refused(f"workload `{name}` takes parameters", found=", ".join(_parameters(found[name])),
                          help=f"call it at the top level of the file: ready = {name}(...)")
        return ready[name]
    scheduled = {key: value for key, value in ready.items() if isinstance(value, Workload)}
    choice = scheduled or ready
    if len(choice) != 1:
        known = ", ".join(choice)
        jitted = next((value for value in vars(module).values() if isinstance(value, JitFunction)), None)
        if choice:
            help = f"name one: --workload {next(iter(choice))}"
        elif jitted is not None:
            help = f"a function of jit becomes one at the top level: layer = {jitted.__name__}.lower(None, ...), with its arrays by name"
        else:
            help = 'make one at the top level, not inside a function or under `if __name__ == "__main__":`'
        raise refused(f"{path} has {len(choice) or 'no'} workload{'s' * (len(choice) != 1)} at its top level", found=known or None,
                      help=help)
    return next(iter(choice.values()))


def _parameters(value: object) -> tuple[str, ...]:
    """Return the names of the parameters without defaults."""
    if isinstance(value, Workload) or not callable(value):
        return ()
    return tuple(p.name for p in inspect.signature(value).parameters.values() if p.default is p.empty)


def opened(what: Path, workload: str, options: Mapping[str, object]) -> Program:
    """Return a program: a saved one of a folder, or a workload of a file, compiled. Options that are None, "" or False are left out.

    Raises: C108 for what is neither, C111 for a folder without a valid saved program; what loading and compiling raise.
    """
    said = {name: value for name, value in options.items() if value is not None and value != "" and value is not False}
    if not os.path.isdir(what):
        return find_workload(load_file(what), what, workload).compile(**said)  # type: ignore[arg-type]
    fixed = [name for name in ("workload", "arch", "overheads") if (workload if name == "workload" else said.get(name))]
    fixed += ["target"] * (said.get("target", "cpu_sim") != "cpu_sim")
    if fixed:
        raise refused(f"--{fixed[0]} does not go with a saved program", found=str(what),
                      help="it was compiled with its own; pto-wsp simulate --arch times it on another machine" if fixed[0] == "arch" else
                           "it was compiled with its own; give the Python file to compile it anew")
    threads = said.get("threads")
    return load(what, threads=threads if isinstance(threads, int) else None)


# -- summary -----------------------------------------------------------------------------------------------------------
def summary(program: Program, root: Path | None) -> Card:
    """Return the card of a compiled program: its files and their folder, its kernels, and the verdicts of its checks."""
    manifest = program.manifest
    if not isinstance(manifest, Manifest | PackageManifest):
        return Card(title=program.plan.name, sentence="target interp has nothing to write: it runs in Python")
    if root is None:
        raise InternalError("an artifact without a folder", manifest.name)
    facts = [("checks", checks_line(manifest.checks))]
    if manifest.recorded_directives:
        facts.append(("recorded, not enforced", ", ".join(manifest.recorded_directives)))
    return Card(title=manifest.name, subtitle=f"{manifest.target}, {manifest.arch}", foot=str(root), parts=(
        kernel_table(manifest), ValuesPart(values=tuple(LabelledValue(label=label, value=value) for label, value in facts))))


def kernel_table(manifest: Manifest | PackageManifest) -> TablePart:
    """Return a table with one kernel per row."""
    if isinstance(manifest, PackageManifest):
        return TablePart(title="Kernels", head=("func", "kernel", "core", "tensors", "scalars", "on chip", "from"), right=(0,), rows=tuple(
            (str(kernel.func_id), kernel.name, kernel.core_type, " ".join(kernel.signature) or "-", " ".join(kernel.scalars) or "-",
             ", ".join(f"{name} {size}" for name, size in kernel.on_chip) or "-", kernel.origin) for kernel in manifest.kernels))
    return TablePart(title="Kernels", head=("id", "kernel", "parameters", "scratch", "from"), right=(0, 3), rows=tuple(
        (str(entry.id), entry.name, ", ".join(entry.params), str(entry.scratch_bytes), entry.source) for entry in manifest.kernels))


def checks_line(checks: tuple[CheckEntry, ...]) -> str:
    """Return the number of checks with each verdict."""
    counts: dict[str, int] = {}
    for check in checks:
        counts[check.verdict] = counts.get(check.verdict, 0) + 1
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "none"


# -- checks ------------------------------------------------------------------------------------------------------------
_FINDINGS = ("counterexample", "lint")
_OF_THE_COMMAND = "C"      # the first letter of codes that are no mistake of a workload: files, options, compilers, the cache


def checked(what: Path, workload: str, target: str, arch: str, strict: bool) -> tuple[Card, bool]:
    """Return the card of the static checks, and whether it has findings.

    Raises: C108 and the other errors of files and options; an error of the workload is a finding.
    """
    try:
        program = opened(what, workload, {} if os.path.isdir(what) else {"target": target, "arch": arch})
    except PtoError as problem:
        if problem.code.startswith(_OF_THE_COMMAND):
            raise
        errors = (problem, *problem.others)
        return Card(title=str(what), subtitle="Checks", sentence=f"{counted(len(errors), 'error')}: {errors[0].message}",
                    parts=tuple(Preformatted(text=error._one()) for error in errors),
                    foot=f"pto-wsp explain {problem.code} says what the code means"), True
    rows = tuple((verdict, check) for verdict, _, check in (line.partition(": ") for line in program.checks))
    bad = sum(verdict in _FINDINGS or (strict and verdict == "not proved") for verdict, _ in rows)
    counts = ", ".join(f"{sum(row[0] == verdict for row in rows)} {verdict}" for verdict in dict.fromkeys(row[0] for row in rows))
    order = sorted(rows, key=lambda row: (row[0] not in _FINDINGS, row[0] == "proved"))
    return Card(title=program.plan.name, subtitle="Checks", sentence=f"{counted(bad, 'finding')}: {counts or 'nothing to check'}.",
                parts=(TablePart(head=("verdict", "check"), rows=tuple(order)),) if rows else ()), bad > 0


# -- parts of a file ---------------------------------------------------------------------------------------------------
def workload_parts(path: Path, name: str, kernel: str) -> Card:
    """Return the card of a workload of a file with its kernels; `kernel` restricts it to that kernel.

    Raises: C108 for a file without the workload or the kernel.
    """
    module = load_file(path)
    kernels = {key: value for key, value in vars(module).items() if isinstance(value, Kernel)}
    if kernel:
        if kernel not in kernels:
            near = nearest(kernel, kernels)
            raise refused(f"{path} has no kernel `{kernel}`", expected=f"one of {', '.join(kernels)}" if kernels else None,
                          help=f"did you mean {near}?" if near else None)
        card: Card = kernels[kernel].card
        return card
    shown = find_workload(module, path, name)
    called = {task.kernel.name for task in wl.tasks(shown.node.body)}
    parts: list[Part] = list(shown.card.parts)
    for value in kernels.values():
        if value.card.title in called:
            parts += [part.model_copy(update={"title": f"Kernel {value.card.title}"}) if isinstance(part, Preformatted) else part
                      for part in value.card.parts if not isinstance(part, ValuesPart)]
    whole: Card = shown.card.model_copy(update={"parts": tuple(parts)})
    return whole


# -- names -------------------------------------------------------------------------------------------------------------
def explained(code: str) -> Card:
    """Return the card of an error's code: its cause, an example, what to do.

    Raises: C108 for a code that no error has.
    """
    known = errors_by_code()
    if code.upper() not in known:
        raise refused(f"no error has the code {printable(code)!r}, and there is no file of that name", help=nearest(code.upper(), known),
                      expected=f"{next(iter(known))}, ... as docs/errors.md lists them")
    kind = known[code.upper()]
    return Card(title=kind.code, subtitle=kind.__name__, sentence=kind.cause, parts=(
        Preformatted(title="For example", text=kind.example), Preformatted(title="What to do", text=kind.fix)))


def pipelines(name: str) -> Card:
    """Return the card of the passes: a table for each target with level, name, and what each does; then a table of its strategies.

    name: only this target; "" for all.
    Raises: C104 for a target that there is none of.
    """
    parts: list[Part] = []
    if not name:
        tensor = doors.late_module("pto_wsp.passes.tensor.passes").TENSOR_PASSES
        parts.append(TablePart(title="functions on tensors, for every target", head=("level", "pass", "what it does"), rows=tuple(
            ("" if at else step.level_name, step.name, step.summary) for at, step in enumerate(tensor))))
    for target in map(find_target, [name] if name else doors.TARGETS):
        steps = target.passes(CompileOptions())
        levels = [step.level_name if at == 0 or steps[at - 1].level_name != step.level_name else "" for at, step in enumerate(steps)]
        parts.append(TablePart(title=target.name, head=("level", "pass", "what it does"), rows=tuple(
            (level, step.name, step.summary) for level, step in zip(levels, steps, strict=True))))
        rows = []
        for strategy in STRATEGIES:
            out = strategy.left_out(steps)
            less = f"; without {', '.join(out)}" if out else "" if strategy.only is None else "; here, that is every pass"
            rows.append((f"passes={strategy.name!r} or {strategy.also!r}", strategy.summary + less))
        parts.append(TablePart(head=("strategy", "what it runs"), rows=tuple(rows)))
    return Card(title="Passes", subtitle="in the order of their run", parts=tuple(parts))

"""Define the command `pto-wsp`: what is done to a Python file with workloads, or to a saved program, and what is shown of it.

    pto-wsp run model.py --report model.html
    pto-wsp simulate model.py --dispatch "round_robin(4)" --dispatch work_steal --window 64
    pto-wsp check model.py --json
    pto-wsp explain W201

What a command shows is one card: text as wide as the terminal, or with --json the card's data on one line. Progress and errors go to
stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pto_wsp import doors
from pto_wsp.errors import CommandError, PtoError
from pto_wsp.errors.page import errors_by_code
from pto_wsp.source import Span
from pto_wsp.wording import printable

if TYPE_CHECKING:
    from pto_wsp.view.card import Card

# Exit codes. 0: done, and nothing was found.
FOUND, MISTAKE, FAULT, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 130, 141
_EXIT_CODES = "Exit codes: 0 done · 1 a difference, a finding or a failed check · 2 a mistake of the user · 3 a fault of pto-wsp · " \
              "130 Ctrl-C · 141 the reader of the output has gone."

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
                  help="Run, simulate, tune, check and look into workloads and saved programs.", epilog=_EXIT_CODES)

# Errors of the command line have no line in the user's code; their span is in Typer, which calls the functions below.
_MACHINERY = os.path.dirname(typer.__file__) + os.sep


# -- arguments ---------------------------------------------------------------------------------------------------------
def _starting(begun: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name.startswith(begun)]


def _targets(incomplete: str) -> list[str]:
    return _starting(incomplete, list(doors.TARGETS))


def _arches(incomplete: str) -> list[str]:
    return _starting(incomplete, doors.late_module("pto_wsp.cli.schedules").ARCH_NAMES)


def _codes(incomplete: str) -> list[str]:
    return _starting(incomplete.upper(), list(errors_by_code()))


def _dispatches(incomplete: str) -> list[str]:
    return _starting(incomplete, list(doors.late_module("pto_wsp.cli.schedules").DISPATCHES))


File = Annotated[Path, typer.Argument(help="A Python file with workloads at its top level.", show_default=False)]
FileOrFolder = Annotated[Path, typer.Argument(help="A Python file with workloads at its top level, or the folder of a saved program.",
                                              show_default=False)]
Folder = Annotated[Path, typer.Argument(help="A saved program or a package: the folder with manifest.json.", show_default=False)]
Name = Annotated[str, typer.Option("--workload", "-w", help="Which one, where the file has several.", show_default=False)]
Target = Annotated[str, typer.Option(help="cpu_sim, interp, ascend_npu or pto.", autocompletion=_targets)]
OneArch = Annotated[str, typer.Option(help="The machine; without it the target's default.", show_default=False, autocompletion=_arches)]
Overheads = Annotated[bool, typer.Option("--overheads", help="Count what submitting, dispatching and retiring a task costs.")]
Json = Annotated[bool, typer.Option("--json", help="Print the card as JSON.")]
Inputs = Annotated[list[str] | None, typer.Option("--in", help="NAME=FILE: a tensor's elements, .npy or raw.", show_default=False)]
Outputs = Annotated[list[str] | None, typer.Option("--out", help="NAME=FILE: where a tensor goes after the run.", show_default=False)]
Dims = Annotated[list[str] | None, typer.Option("--dim", help="NAME=N,N,...: other extents than declared.", show_default=False)]
Numbers = Annotated[list[str] | None, typer.Option("--set", help="NAME=NUMBER: a symbol, or the extent of an axis.", show_default=False)]
Threads = Annotated[int | None, typer.Option(help="Host threads; without it all, or as the program was compiled.", show_default=False)]
Seed = Annotated[int, typer.Option(min=0, max=(1 << 63) - 1, help="What tensors without data or a file are filled with.")]


def _given(inputs: list[str] | None, outputs: list[str] | None = None, dims: list[str] | None = None,
           numbers: list[str] | None = None) -> dict[str, list[str]]:
    return {"--in": inputs or [], "--out": outputs or [], "--dim": dims or [], "--set": numbers or []}


def _version(wanted: bool) -> None:
    if wanted:
        write(f"pto-wsp {doors.late_module('pto_wsp.cli.doctor').own_version()}\n")
        raise typer.Exit


@app.callback()
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False) -> None:
    """Run, simulate, tune, check and look into workloads and saved programs."""


# -- output ------------------------------------------------------------------------------------------------------------
def show(card: Card, as_json: bool = False) -> None:
    """Print a card: as text with what colours the terminal has, or as a line of JSON."""
    if as_json:
        write(_json_line(card))
        return
    terminal = Console()      # it knows the terminal, TERM, NO_COLOR and FORCE_COLOR
    colours = terminal.color_system if terminal.is_terminal and not terminal.no_color else None
    write(doors.late_module("pto_wsp.view.text").text_of(card, colours=colours) + "\n")


def _json_line(card: Card) -> str:
    text = json.dumps(card.model_dump(), ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        text = json.dumps(json.loads(text), separators=(",", ":"))
    return text + "\n"


def write(text: str) -> None:
    """Write text to stdout; where its reader has gone, end with code 141."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_pipe()


def _leave_pipe() -> NoReturn:
    with contextlib.suppress(OSError, ValueError):      # what Python writes at its end goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(PIPE_CLOSED)


@contextmanager
def working(what: str, as_json: bool) -> Iterator[None]:
    """Show on a terminal that something takes time, and keep what the user's code prints out of the JSON."""
    with contextlib.ExitStack() as stack:
        if as_json:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        if sys.stderr.isatty():
            bar = stack.enter_context(Progress(SpinnerColumn("line"), TextColumn("{task.description}", markup=False), TimeElapsedColumn(),
                                               console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False))
            bar.add_task(printable(what))
        yield


# -- commands on workloads ---------------------------------------------------------------------------------------------
@app.command()
def run(what: FileOrFolder, workload: Name = "", target: Target = "cpu_sim", arch: OneArch = "", overheads: Overheads = False,
        inputs: Inputs = None, outputs: Outputs = None, dims: Dims = None, numbers: Numbers = None, threads: Threads = None,
        seed: Seed = 0, why: Annotated[bool, typer.Option("--why", help="Add the longest waits, and changes that would help.")] = False,
        report: Annotated[Path | None, typer.Option(help="Write a page of HTML about the run.", show_default=False)] = None,
        json: Json = False) -> None:
    """Run a workload or a saved program once: its time, its lanes, and a checksum of each output."""
    with working(f"running {what}", json):
        card = doors.late_module("pto_wsp.cli.runs").run_card(
            what, workload, dict(target=target, arch=arch, threads=threads, overheads=overheads), seed,
            _given(inputs, outputs, dims, numbers), report, why)
    show(card, json)


@app.command()
def compile(file: File, workload: Name = "", target: Target = "ascend_npu", arch: OneArch = "",
            runtime: Annotated[str, typer.Option(help="Of ascend_npu: tensormap_and_ringbuffer or host_build_graph.",
                                                 show_default=False)] = "",
            out: Annotated[Path | None, typer.Option(help="A new folder for the package; without it, it stays in the cache.",
                                                     show_default=False)] = None,
            dump_ir: Annotated[bool, typer.Option("--dump-ir", help="Write what every pass did into ir/.")] = False,
            json: Json = False) -> None:
    """Compile a workload of a Python file."""
    with working(f"compiling {file}", json):
        programs = doors.late_module("pto_wsp.cli.programs")
        loaded = programs.find_workload(programs.load_file(file), file, workload)
        program = loaded.compile(target=target, arch=arch or None, dump=dump_ir, options={"runtime": runtime} if runtime else {})
        card = programs.summary(program, program.save(out) if out is not None else program.artifact_dir)
    show(card, json)


@app.command()
def simulate(what: FileOrFolder, workload: Name = "",
             arch: Annotated[list[str] | None, typer.Option(help="A machine; several give several rows.", show_default=False,
                                                            autocompletion=_arches)] = None,
             dispatch: Annotated[list[str] | None, typer.Option(help="round_robin(N), work_steal, affinity(VAR, N) or hash(VAR, N).",
                                                                show_default=False, autocompletion=_dispatches)] = None,
             ready: Annotated[list[str] | None, typer.Option(help="fifo, work_steal or priority(VAR).", show_default=False)] = None,
             window: Annotated[list[str] | None, typer.Option(help="How many tasks are in flight.", show_default=False)] = None,
             streams: Annotated[list[str] | None, typer.Option(help="How many streams.", show_default=False)] = None,
             pools: Annotated[list[str] | None, typer.Option(help="single or by_exec_unit.", show_default=False)] = None,
             target: Target = "cpu_sim", overheads: Overheads = False, inputs: Inputs = None, dims: Dims = None, numbers: Numbers = None,
             seed: Seed = 0, json: Json = False) -> None:
    """Run once, and time the same tasks under other schedules and on other machines: each option may be given several times."""
    with working(f"simulating {what}", json):
        asked = {"dispatch": dispatch or [], "ready": ready or [], "window": window or [], "streams": streams or [], "pools": pools or []}
        card = doors.late_module("pto_wsp.cli.schedules").simulate_card(what, workload, target, arch or [], asked, overheads, seed,
                                                                        _given(inputs, None, dims, numbers))
    show(card, json)


@app.command()
def tune(file: File, workload: Name = "", arch: OneArch = "",
         budget: Annotated[int, typer.Option(min=1, help="How many schedules are simulated.")] = 100,
         overheads: Overheads = False, inputs: Inputs = None, dims: Dims = None, numbers: Numbers = None, seed: Seed = 0,
         save: Annotated[Path | None, typer.Option(help="A new folder for the program under the best schedule.",
                                                   show_default=False)] = None,
         json: Json = False) -> None:
    """Search for a schedule: the best that was simulated, and the code to paste."""
    with contextlib.redirect_stdout(sys.stderr) if json else contextlib.nullcontext():      # the search has a bar of its own
        card = doors.late_module("pto_wsp.cli.schedules").tune_card(file, workload, arch, budget, seed, overheads,
                                                                    _given(inputs, None, dims, numbers), save)
    show(card, json)


@app.command()
def report(what: FileOrFolder, out: Annotated[Path, typer.Option("--out", "-o", help="The file of HTML.")] = Path("report.html"),
           workload: Name = "", target: Target = "cpu_sim", arch: OneArch = "", overheads: Overheads = False, inputs: Inputs = None,
           dims: Dims = None, numbers: Numbers = None, threads: Threads = None, seed: Seed = 0, json: Json = False) -> None:
    """Run once, and write a page of HTML to open or send."""
    with working(f"running {what}", json):
        card = doors.late_module("pto_wsp.cli.runs").report_card(
            what, workload, dict(target=target, arch=arch, threads=threads, overheads=overheads), seed,
            _given(inputs, None, dims, numbers), out)
    show(card, json)


@app.command()
def check(what: FileOrFolder, workload: Name = "", target: Target = "interp", arch: OneArch = "",
          strict: Annotated[bool, typer.Option("--strict", help="A check that is left to the run counts as a finding.")] = False,
          json: Json = False) -> None:
    """Show the verdict of each static check; exit code 1 for a counterexample, a hint, or a workload that does not compile."""
    with working(f"checking {what}", json):
        card, found = doors.late_module("pto_wsp.cli.programs").checked(what, workload, target, arch, strict)
    show(card, json)
    if found:
        raise typer.Exit(FOUND)


# -- commands on packages and names ------------------------------------------------------------------------------------
@app.command()
def inspect(what: FileOrFolder, workload: Name = "",
            kernel: Annotated[str, typer.Option(help="Show this kernel's instructions only.", show_default=False)] = "",
            json: Json = False) -> None:
    """Show what a workload or a package holds: tasks, kernels with their instructions and memory, tensors, checks."""
    with working(f"reading {what}", json):
        if os.path.isfile(what):
            card = doors.late_module("pto_wsp.cli.programs").workload_parts(what, workload, kernel)
        else:
            card = doors.late_module("pto_wsp.cli.packages").inspection(what, kernel)
    show(card, json)


@app.command()
def diff(one: Folder, other: Folder, brief: Annotated[bool, typer.Option("--brief", help="Name the files only.")] = False,
         json: Json = False) -> None:
    """Compare two packages, file by file; exit code 1 where they differ."""
    difference = doors.late_module("pto_wsp.cli.packages").differences(one, other, brief)
    show(difference.card, json)
    if difference.differ:
        raise typer.Exit(FOUND)


@app.command()
def explain(what: Annotated[str, typer.Argument(help="The code of an error, as in error[W201]; or a Python file or saved program.",
                                                show_default=False, autocompletion=_codes)],
            task: Annotated[str, typer.Argument(help='Of a file: a task, "mm[b=0]" or its number; without it the last to end.',
                                                show_default=False)] = "",
            workload: Name = "", target: Target = "cpu_sim", arch: OneArch = "", overheads: Overheads = False, inputs: Inputs = None,
            dims: Dims = None, numbers: Numbers = None, seed: Seed = 0, json: Json = False) -> None:
    """Say what an error's code means; or run a file, and say why a task ran when it did."""
    if not os.path.exists(what):
        show(doors.late_module("pto_wsp.cli.programs").explained(what), json)
        return
    with working(f"running {what}", json):
        card = doors.late_module("pto_wsp.cli.runs").task_card(
            Path(what), task, workload, dict(target=target, arch=arch, overheads=overheads), seed, _given(inputs, None, dims, numbers))
    show(card, json)


@app.command()
def passes(target: Annotated[str, typer.Option(help="Of this target only.", show_default=False, autocompletion=_targets)] = "",
           json: Json = False) -> None:
    """Show the passes of each target in the order of their run, and what each does."""
    show(doors.late_module("pto_wsp.cli.programs").pipelines(target), json)


# -- this machine ------------------------------------------------------------------------------------------------------
cache = typer.Typer(no_args_is_help=True, help="What compiling left in the cache.")
app.add_typer(cache, name="cache")


@cache.command("show")
def cache_show(json: Json = False) -> None:
    """List the artifacts: kind, size, age, largest first."""
    show(doors.late_module("pto_wsp.cli.cache").listing(), json)


@cache.command("size")
def cache_size(json: Json = False) -> None:
    """Show how much the cache holds, by kind."""
    show(doors.late_module("pto_wsp.cli.cache").sizes(), json)


@cache.command("verify")
def cache_verify(json: Json = False) -> None:
    """Compare every file of the cache with its checksum; exit code 1 if a file differs."""
    with working("verifying the cache", json):
        card, found = doors.late_module("pto_wsp.cli.cache").verified()
    show(card, json)
    if found:
        raise typer.Exit(FOUND)


@cache.command("prune")
def cache_prune(everything: Annotated[bool, typer.Option("--all", help="Remove every artifact.")] = False,
                older_than: Annotated[float | None, typer.Option(min=0, help="Days: remove what was built before.",
                                                                 show_default=False)] = None,
                dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and keep it.")] = False,
                json: Json = False) -> None:
    """Remove damaged artifacts and what unfinished builds left; with options also others. What is removed is built again."""
    with working("verifying the cache", json):
        card = doors.late_module("pto_wsp.cli.cache").pruned(everything, older_than, dry_run)
    show(card, json)


@app.command()
def doctor(json: Json = False) -> None:
    """Check that this machine can compile and run: compiler, cache folder, versions, and a small run. Exit code 1 if it cannot."""
    with working("looking at this machine", json):
        card, found = doors.late_module("pto_wsp.cli.doctor").examined()
    show(card, json)
    if found:
        raise typer.Exit(FOUND)


@app.command()
def demo(folder: Annotated[Path, typer.Argument(help="Where its two files go.")] = Path("."), json: Json = False) -> None:
    """Write a small workload, run it, compare two schedules, and write a report: a file to begin with."""
    with working("running the demo", json):
        card = doors.late_module("pto_wsp.cli.demo").demonstrated(folder)
    show(card, json)


# -- the process -------------------------------------------------------------------------------------------------------
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with the given arguments, or with those of the process.

    A user's mistake prints its text and ends with code 2, a fault of this package its traceback and ends with 3.
    """
    try:
        app(None if arguments is None else list(arguments), prog_name="pto-wsp")
    except PtoError as problem:
        for error in (problem, *problem.others):
            if isinstance(error.span, Span) and error.span.file.startswith(_MACHINERY):
                error.span = None
        _report(printable(str(problem)))
        sys.exit(MISTAKE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (OSError, RecursionError, MemoryError) as problem:
        _report(printable(str(CommandError("the command came to a limit of this machine", None,
                                           found=f"{type(problem).__name__}: {problem}"))))
        sys.exit(MISTAKE)
    except Exception:
        _report(traceback.format_exc() + "\nThis is a fault of pto-wsp. Please report it with the lines above.")
        sys.exit(FAULT)


def _report(text: str) -> None:
    """Write the text of an error to stderr, escaped where stderr cannot write it."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    with contextlib.suppress(OSError):
        sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stderr.flush()

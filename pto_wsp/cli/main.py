"""Define the command `pto-wsp compile | inspect | diff | run | passes | explain` for packages and saved programs.

    pto-wsp compile model.py --target ascend_npu --arch ascend_950 --out package
    pto-wsp run saved --threads 2 --in X=x.npy --set n=3
    pto-wsp inspect package
    pto-wsp diff package other
    pto-wsp explain W201
    pto-wsp passes --target cpu_sim

Exit codes: 0 for success, 1 if `diff` found differences, 2 for a user error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from pto_wsp.cli.packages import differences, inspection
from pto_wsp.cli.programs import find_workload, load_file, pipelines, run_saved, summary
from pto_wsp.errors import CommandError, PtoError
from pto_wsp.errors.page import errors_by_code, explanation
from pto_wsp.source import Span
from pto_wsp.wording import nearest

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
                  help="Compile workloads into packages, and look into packages.")

# Errors of the command line have no line in the user's code; their span is in Typer, which calls the functions below.
_MACHINERY = os.path.dirname(typer.__file__) + os.sep

Folder = Annotated[Path, typer.Argument(help="A package: the folder with manifest.json.", show_default=False)]


def console() -> Console:
    """Return the console for results. It is as wide as the terminal, or wide enough for a file, and prints text literally.

    Markup and emoji are off, so `X[b]` and `:b:` stay as they are.
    """
    return Console(width=None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "160")), highlight=False, markup=False, emoji=False)


def show(part: RenderableType) -> None:
    """Print a part of a result; text is not wrapped."""
    console().print(part, soft_wrap=isinstance(part, Text))


@app.command()
def compile(file: Annotated[Path, typer.Argument(help="A Python file with workloads at its top level.", show_default=False)],
            workload: Annotated[str, typer.Option(help="Which one, where the file has several.", show_default=False)] = "",
            target: Annotated[str, typer.Option(help="ascend_npu, pto or cpu_sim.")] = "ascend_npu",
            arch: Annotated[str, typer.Option(help="The machine; without it the target's default.", show_default=False)] = "",
            runtime: Annotated[str, typer.Option(help="Of ascend_npu: tensormap_and_ringbuffer or host_build_graph.",
                                                 show_default=False)] = "",
            out: Annotated[Path | None, typer.Option(help="A new folder for the package; without it, it stays in the cache.",
                                                     show_default=False)] = None,
            dump_ir: Annotated[bool, typer.Option("--dump-ir", help="Write what every pass did into ir/.")] = False) -> None:
    """Compile a workload of a Python file."""
    loaded = find_workload(load_file(file), file, workload)
    program = loaded.compile(target=target, arch=arch or None, dump=dump_ir, options={"runtime": runtime} if runtime else {})
    root = program.save(out) if out is not None else program.artifact_dir
    show(summary(program, root))


@app.command()
def inspect(folder: Folder,
            kernel: Annotated[str, typer.Option(help="Show this kernel's instructions only.", show_default=False)] = "") -> None:
    """Show what a package holds: tasks, kernels with their instructions and memory, tensors, checks."""
    for part in inspection(folder, kernel):
        show(part)


@app.command()
def diff(one: Folder, other: Folder,
         brief: Annotated[bool, typer.Option("--brief", help="Name the files only.")] = False) -> None:
    """Compare two packages, file by file; exit code 1 where they differ."""
    difference = differences(one, other, brief)
    show(difference.text)
    if difference.differ:
        raise typer.Exit(1)


@app.command()
def run(folder: Annotated[Path, typer.Argument(help="What program.save(folder) wrote, for target cpu_sim.", show_default=False)],
        inputs: Annotated[list[str] | None, typer.Option("--in", help="NAME=FILE: a tensor's elements, .npy or raw.",
                                                         show_default=False)] = None,
        outputs: Annotated[list[str] | None, typer.Option("--out", help="NAME=FILE: where a tensor goes after the run.",
                                                          show_default=False)] = None,
        dims: Annotated[list[str] | None, typer.Option("--dim", help="NAME=N,N,...: other extents than declared.",
                                                       show_default=False)] = None,
        numbers: Annotated[list[str] | None, typer.Option("--set", help="NAME=NUMBER: a symbol, or the extent of an axis.",
                                                          show_default=False)] = None,
        threads: Annotated[int | None, typer.Option(help="Host threads; without it as the program was compiled.",
                                                    show_default=False)] = None,
        seed: Annotated[int, typer.Option(min=0, max=(1 << 63) - 1, help="What tensors without a file are filled with.")] = 0) -> None:
    """Run a saved program once: tasks, times, and a checksum of each output."""
    options = {"--in": inputs or [], "--out": outputs or [], "--dim": dims or [], "--set": numbers or []}
    for line in run_saved(folder, threads, seed, options):
        show(Text(line))


@app.command()
def explain(code: Annotated[str, typer.Argument(help="The code of an error, as in error[W201].", show_default=False)]) -> None:
    """Say what an error's code means: its cause, an example, what to do."""
    known = errors_by_code()
    if code.upper() not in known:
        raise CommandError(f"no error has the code {code!r}", expected=f"{next(iter(known))}, ... as docs/errors.md lists them",
                           help=nearest(code.upper(), known))
    show(Text(explanation(code.upper())))


@app.command()
def passes(target: Annotated[str, typer.Option(help="Of this target only.", show_default=False)] = "") -> None:
    """Show the passes of each target in the order of their run, and what each does."""
    for part in pipelines(target):
        show(part)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with the given arguments, or with those of the process; a user error prints its text and exits with code 2."""
    try:
        app(None if arguments is None else list(arguments))
    except PtoError as problem:
        for error in (problem, *problem.others):
            if isinstance(error.span, Span) and error.span.file.startswith(_MACHINERY):
                error.span = None
        print(problem, file=sys.stderr)
        sys.exit(2)

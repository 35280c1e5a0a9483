"""Workloads of a Python file, found by running it as a module."""

from __future__ import annotations

import inspect
import linecache
import sys
from pathlib import Path
from types import ModuleType

from pto_wsp.api.workloads.workload import Workload, WorkloadFunction
from pto_wsp.errors import CommandError, PtoError
from pto_wsp.source import Span


def load_file(path: Path) -> ModuleType:
    """Run a Python file as a module of its own name, with its folder on the path, and return it.

    Raises: C108 for a file that cannot be read, or that raises; PtoErrors of the file's own code as they are.
    """
    if not path.is_file():
        raise CommandError(f"there is no file {path}", None, expected="a Python file with a workload at its top level")
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    linecache.checkcache(str(path))
    try:   # from the text itself: bytecode kept beside it counts as current while size and second of the file agree
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
    """Return the last line of the file that the exception passed through."""
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
    """Return the workload of that name, or the only one: a Workload at the top level, or a `@workload` function without parameters.

    Raises: C108 naming what the file has.
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
        return _called(ready[name])
    scheduled = {key: value for key, value in ready.items() if isinstance(value, Workload)}
    choice = scheduled or ready
    if len(choice) != 1:
        known = ", ".join(choice)
        help = f"name one: --workload {next(iter(choice))}" if choice else "make one at the top level, not inside a function or under " \
                                                                            '`if __name__ == "__main__":`'
        raise CommandError(f"{path} has {len(choice) or 'no'} workload{'s' * (len(choice) != 1)} at its top level", None,
                           found=known or None, help=help)
    return _called(next(iter(choice.values())))


def _parameters(value: Workload | WorkloadFunction) -> tuple[str, ...]:
    """Names of the parameters that a call must give."""
    if isinstance(value, Workload):
        return ()
    return tuple(p.name for p in inspect.signature(value).parameters.values() if p.default is p.empty)


def _called(value: Workload | WorkloadFunction) -> Workload:
    return value if isinstance(value, Workload) else value()

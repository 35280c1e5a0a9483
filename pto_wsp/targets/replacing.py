"""Functions of the user's own in place of passes: which they are, what they are held to, and how the store knows what they make."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from pto_wsp import doors
from pto_wsp.errors import CompileOptionError, PassError, PtoError, UnknownPassError
from pto_wsp.passes.pipeline import AnyPass, Runner, first_line
from pto_wsp.source import here
from pto_wsp.wording import nearest


def make_runner(target: str, steps: tuple[AnyPass, ...], passes: object, until: str | None = None) -> Runner:
    """Return what runs the passes `steps` of a target: `passes` in place of some, up to the one named `until`.

    passes: None, or functions (IR, context) -> IR by the names of passes.
    Raises: C104 for what is no such dict, C114 for a name that no pass of the target has.
    """
    if passes is None:
        return Runner(until=until)
    if not isinstance(passes, Mapping) or not all(isinstance(name, str) and callable(value) for name, value in passes.items()):
        raise CompileOptionError("compile() option `passes` does not take this value", here(),
                                 expected="a dict of functions (IR, context) -> IR, by the names of the passes that they stand for",
                                 found=repr(passes)[:200])
    for name in passes:
        find_step(target, steps, name)
    difference_of = doors.late_module("pto_wsp.run.pass_check").difference_of
    return Runner(cast(Mapping[str, Callable[..., object]], passes), here(), difference_of, until)


def find_step(target: str, steps: tuple[AnyPass, ...], name: object) -> AnyPass:
    """Return the pass of that name.

    Raises: C114 with all names, and the nearest.
    """
    for step in steps:
        if step.name == name:
            return step
    near = nearest(name, [step.name for step in steps]) if isinstance(name, str) else None
    raise UnknownPassError(f"target {target} has no pass {name!r}"[:200], here(),
                           expected=f"one of {', '.join(step.name for step in steps)}",
                           help=f"did you mean {near!r}? " * bool(near) + f"`pto-wsp passes --target {target}` says what each does")


@contextmanager
def blaming(runner: Runner) -> Iterator[None]:
    """Report what fails behind functions of the user's own as theirs: their IR is such that stages behind the passes cannot take it.

    Raises: C113.
    """
    try:
        yield
    except (PtoError, RecursionError):
        raise
    except Exception as problem:
        if not runner.replaced:
            raise
        raise PassError("what stands for passes leaves what a later stage fails on", here(), found=first_line(problem),
                        notes=(f"functions stand for {', '.join(runner.replaced)}",)) from problem


def text_key(key: str, files: Mapping[str, str]) -> str:
    """Return the key of an artifact that the user's own passes had a part in: by its whole text, beside what else it is made from."""
    digest = hashlib.sha256(f"{key}\0text of passes that are not the package's".encode())
    for name, text in sorted(files.items()):
        for part in (name, text):
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()

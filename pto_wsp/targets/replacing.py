"""What compile(passes=...) says: which passes run, functions of the user's own in place of some, and how the store knows what they make."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from pto_wsp import doors
from pto_wsp.errors import CompileOptionError, PassError, PassStrategyError, PtoError, UnknownPassError
from pto_wsp.passes.pipeline import AnyPass, Runner, first_line
from pto_wsp.source import here
from pto_wsp.targets.strategies import EXPECTED, listed_passes, named_strategy
from pto_wsp.wording import nearest


def make_runner(target: str, steps: tuple[AnyPass, ...], passes: object, until: str | None = None) -> Runner:
    """Return what runs the passes `steps` of a target as `passes` says, up to the one named `until`.

    passes: None for all, the name of a strategy, a list of passes, or functions (IR, context) -> IR by the names of passes.
    Raises: C104 for what is none of these, C114 for a name that no pass of the target has, C117 for a list that the target cannot run, and
    where `until` is left out.
    """
    left_out: frozenset[str] = frozenset()
    own: Mapping[str, Callable[..., object]] = {}
    match passes:
        case None:
            pass
        case str():
            left_out = frozenset(named_strategy(passes).left_out(steps))
        case list() | tuple():
            left_out, own = listed_passes(target, steps, passes, lambda name: find_step(target, steps, name))
        case Mapping() if all(isinstance(name, str) and callable(value) for name, value in passes.items()):
            own = cast(Mapping[str, Callable[..., object]], passes)
        case _:
            raise CompileOptionError("compile() option `passes` does not take this value", here(), expected=EXPECTED,
                                     found=repr(passes)[:200])
    for name in own:
        find_step(target, steps, name)
    if until in left_out:
        raise PassStrategyError(f"pass `{until}` does not run under these passes", here(),
                                expected=f"one of {', '.join(step.name for step in steps if step.name not in left_out)}",
                                found=f"passes={passes!r}"[:200])
    difference_of = doors.late_module("pto_wsp.run.pass_check").difference_of if own else None
    return Runner(own, here() if own else None, difference_of, until, left_out)


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
    """Report failures of later stages as failures of the user's replacement passes, whose IR the stages may not accept.

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
    """Return the cache key of an artifact that replacement passes took part in: a digest of the generated files and of the usual inputs."""
    digest = hashlib.sha256(f"{key}\0text of passes that are not the package's".encode())
    for name, text in sorted(files.items()):
        for part in (name, text):
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()

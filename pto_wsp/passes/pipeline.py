"""`Pass`, a step from an IR to the same kind of IR, and `Runner`, which runs tuples of passes.

Plans, kernels, parts of kernels and tile programs have levels of their own; the type of a pass, its order in a tuple, verification,
observers and replacement are the same for all of them.

>>> run_passes(kernel, context, (Pass("simplify", KERNEL, simplify),))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import unified_diff
from enum import Enum
from functools import lru_cache
from time import perf_counter
from typing import Generic, Protocol, TypeVar

from pto_wsp.doors import Displayed
from pto_wsp.errors import InternalError, PassError, PtoError
from pto_wsp.progress import tell
from pto_wsp.source import Span
from pto_wsp.values import dataclass


class Named(Protocol):
    """An IR that passes run on."""

    @property
    def name(self) -> str:
        """The name that the user gave."""


Ir = TypeVar("Ir", bound=Named)
Context = TypeVar("Context")
Observer = Callable[[str, Ir, Ir], None]      # called with a pass's name, the IR before and the IR after


class Fact(Enum):
    """What a pass needs to hold before, or establishes. The order of a tuple of passes follows from needs."""

    SCHEDULE = "the schedule and the arch's times, which a simulation may replace"      # given by the context, established by no pass
    PLACES = "tasks have executors, lanes and pools"
    PRODUCT_STARTS = "products start from values, or add to buffers"
    PRODUCT_FORMS = "products say how they run"
    ROWS = "loops over rows"
    COLUMNS = "loops over columns"
    SCRATCH = "values in memory have places in scratch memory"
    ADDRESSES = "buffers have addresses"
    FLAGS = "flags order the pipes"


@dataclass(frozen=True, slots=True, eq=False)
class Level(Generic[Ir]):
    """A kind of IR. `name`: as errors and `pto-wsp passes` name the kind; `show`: prints one."""

    name: str
    type: type[Ir]
    show: Callable[[Ir], str]


def _nothing(ir: object) -> None:
    """Hold for every IR: the pass establishes nothing that can be checked."""


@dataclass(frozen=True, slots=True, eq=False)
class Pass(Generic[Ir, Context]):
    """A step from an IR to the same kind of IR.

    `run`: total, and pure: the same IR and context give the same result. `verify_after`: raises AssertionError where an IR is not as
    the pass leaves it. `needs` and `establishes`: no pass that establishes a fact stands behind one that needs the fact. `required`: why
    no strategy leaves the pass out; "" for a pass without which the same numbers come out.
    """

    name: str
    level: Level[Ir]
    run: Callable[[Ir, Context], Ir]
    verify_after: Callable[[Ir], None] = _nothing
    needs: frozenset[Fact] = frozenset()
    establishes: frozenset[Fact] = frozenset()
    required: str = ""

    @property
    def level_name(self) -> str:
        """The name of the level."""
        return self.level.name

    @property
    def summary(self) -> str:
        """What the pass does: the first line of the docstring of `run`."""
        return (self.run.__doc__ or "").strip().partition("\n")[0]


class AnyPass(Protocol):
    """A pass of any level, to be listed."""

    @property
    def name(self) -> str:
        """The name of the pass."""

    @property
    def level_name(self) -> str:
        """The name of the level."""

    @property
    def summary(self) -> str:
        """What the pass does, in one line."""

    @property
    def needs(self) -> frozenset[Fact]:
        """What holds before."""

    @property
    def establishes(self) -> frozenset[Fact]:
        """What holds after."""

    @property
    def required(self) -> str:
        """Why the pass is never left out; "" for one that may be."""


@lru_cache(maxsize=256)
def check_order(passes: tuple[AnyPass, ...]) -> None:
    """Check that no pass stands in front of one that establishes what the pass needs.

    Raises: InternalError naming both.
    """
    for at, step in enumerate(passes):
        for later in passes[at + 1:]:
            late = step.needs & later.establishes
            if late and not any(late <= earlier.establishes for earlier in passes[:at]):
                raise InternalError(f"pass `{step.name}` stands in front of `{later.name}`, which establishes what it needs: "
                                    f"{', '.join(sorted(fact.value for fact in late))}")


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """An IR behind the pass that a runner stops at. `text`: printed."""

    ir: Named
    text: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PassRun(Displayed):
    """A run of one pass: the difference of the IR, the seconds of the pass, and whether the IR computes the same numbers.

    `level`: the kind of IR, `ir`: its name; `before`, `after`: printed, both "" for a pass that changed nothing. `same_numbers`: None where
    that was not looked at, as for what only a device runs.
    """

    name: str
    level: str
    ir: str
    seconds: float
    before: str = ""
    after: str = ""
    same_numbers: bool | None = None

    @property
    def changed(self) -> bool:
        """Whether the pass changed the IR."""
        return self.before != self.after

    def diff(self) -> tuple[str, ...]:
        """Return what the pass changed, as a unified diff without its head."""
        return tuple(unified_diff(self.before.splitlines(), self.after.splitlines(), lineterm=""))[2:]

    def __str__(self) -> str:
        return "\n".join(self.diff()) or "it changed nothing"

    def __repr__(self) -> str:
        return f"PassRun({self.name} on {self.level} {self.ir}: {'changed' if self.changed else 'nothing changed'})"


class Runner:
    """Runs the passes of one compilation: with functions of the user's own in place of some, or up to one of them.

    `replaced`: the user's functions by the names of the passes that they stand for; `span`: where the user gave them. `differs`: compares
    the IR before and after such a function, and returns what is wrong. `until`: the name of the pass that each tuple stops behind;
    `reached` then collects what the pass gave, one IR for each plan, kernel or tile program, and `ran` each pass that ran. `compare`: how
    `ran` looks whether a pass keeps the numbers. `left_out`: the names of passes that do not run.
    """

    __slots__ = ("_differs", "_span", "compare", "left_out", "ran", "reached", "replaced", "until")

    def __init__(self, replaced: Mapping[str, Callable[..., object]] | None = None, span: Span | None = None,
                 differs: Callable[[Named, Named], str | None] | None = None, until: str | None = None,
                 left_out: frozenset[str] = frozenset()) -> None:
        self.replaced: Mapping[str, Callable[..., object]] = dict(replaced or {})
        self.until = until
        self.left_out = left_out
        self.reached: list[Reached] = []
        self.ran: list[PassRun] = []
        self.compare: Callable[[Named, Named], str | None] | None = None
        self._span = span
        self._differs = differs

    def run(self, ir: Ir, context: Context, passes: tuple[Pass[Ir, Context], ...], observe: Observer[Ir] | None = None) -> Ir:
        """Return the IR after all passes.

        Raises: InternalError naming the pass after which its own `verify_after` does not hold; C113 for a function of the user's that
        breaks the rule of the pass that it stands for; what passes raise.
        """
        check_order(passes)
        own: Pass[Ir, Context] | None = None      # the last pass that a function of the user's stood for
        for step in self.kept(passes):
            tell(note=step.name)
            function, started = self.replaced.get(step.name), perf_counter()
            if function is not None:
                after, own = self._own(step, function, ir, context), step
            elif own is None:
                after = _verified(step, step.run(ir, context))
            else:
                after = self._behind(own, step, ir, context)
            if observe is not None:
                observe(step.name, ir, after)
            if self.until is not None:
                self.ran.append(self._run_of(step, ir, after, perf_counter() - started))
            ir = after
            if step.name == self.until:
                self.reached.append(Reached(ir, step.level.show(ir).rstrip("\n")))
                break
        return ir

    def _run_of(self, step: Pass[Ir, Context], before: Ir, after: Ir, seconds: float) -> PassRun:
        if after is before or after == before:
            return PassRun(step.name, step.level.name, before.name, seconds)
        same = None if self.compare is None or step.level.name != "kernel" else self.compare(before, after) is None
        return PassRun(step.name, step.level.name, before.name, seconds, step.level.show(before), step.level.show(after), same)

    def kept(self, passes: tuple[Pass[Ir, Context], ...]) -> tuple[Pass[Ir, Context], ...]:
        """Return the passes that run."""
        return tuple(step for step in passes if step.name not in self.left_out) if self.left_out else passes

    def changes(self, passes: Iterable[AnyPass]) -> bool:
        """Tell whether one of these passes is left out, or a function of the user's own stands for it."""
        return any(step.name in self.replaced or step.name in self.left_out for step in passes)

    def _behind(self, own: Pass[Ir, Context], step: Pass[Ir, Context], ir: Ir, context: Context) -> Ir:
        """Return what a pass of the package's gives behind a function of the user's.

        Raises: C113 where the pass fails on the IR that it is given.
        """
        try:
            return _verified(step, step.run(ir, context))
        except PtoError:
            raise
        except Exception as problem:
            raise self._wrong(own, ir, "leaves what a later pass fails on", f"a {step.level.name} that `{step.name}` takes",
                              first_line(problem)) from problem

    def _wrong(self, step: Pass[Ir, Context], ir: Ir, message: str, expected: str | None, found: str) -> PassError:
        return PassError(f"what stands for pass `{step.name}` {message}", self._span, expected=expected, found=found,
                         notes=(f"it ran on {step.level.name} `{ir.name}`, and is {_where(self.replaced[step.name])}",))

    def _own(self, step: Pass[Ir, Context], function: Callable[..., object], ir: Ir, context: Context) -> Ir:
        """Return what the user's function gives, held to the rule of the pass that it stands for.

        Raises: C113.
        """
        try:
            after = function(ir, context)
        except PtoError:
            raise
        except Exception as problem:
            raise self._wrong(step, ir, "raised an error", None, first_line(problem)) from problem
        if not isinstance(after, step.level.type):
            raise self._wrong(step, ir, f"does not return a {step.level.name}", step.level.type.__name__, repr(after)[:200])
        try:
            step.verify_after(after)
        except Exception as broken:      # an IR that is wrong in itself may break what looks at it
            found = str(broken).partition("\n")[0][:200] if isinstance(broken, AssertionError) else first_line(broken)
            raise self._wrong(step, ir, "breaks what holds after that pass", _rule(step), found) from broken
        difference = None if self._differs is None else self._differs(ir, after)
        if difference is not None:
            raise self._wrong(step, ir, f"changes what the {step.level.name} computes", "the same numbers before and after", difference)
        return after


def run_passes(ir: Ir, context: Context, passes: tuple[Pass[Ir, Context], ...], observe: Observer[Ir] | None = None) -> Ir:
    """Return the IR after all passes; `observe` is called with the name, the IR before and the IR after each.

    Raises: as `Runner.run`.
    """
    return Runner().run(ir, context, passes, observe)


def _verified(step: Pass[Ir, Context], after: Ir) -> Ir:
    try:
        step.verify_after(after)
    except AssertionError as broken:
        raise InternalError(f"after pass `{step.name}` this does not hold for {step.level.name} `{after.name}`: {_rule(step)}",
                            f"{broken}\n{step.level.show(after)}") from broken
    return after


def _rule(step: Pass[Ir, Context]) -> str:
    return (step.verify_after.__doc__ or "").strip()


def first_line(problem: Exception) -> str:
    """Return what an error that is not the user's says, in one line for the user."""
    text = str(problem).partition("\n")[0]
    return (text if isinstance(problem, InternalError) else f"{type(problem).__name__}: {text}")[:200]


def _where(function: Callable[..., object]) -> str:
    code = getattr(function, "__code__", None)
    return repr(function)[:200] if code is None else f"`{function.__name__}` at {code.co_filename}:{code.co_firstlineno}"

"""Name pass strategies: which of a target's passes run. Passes that a target cannot do without belong to every strategy.

A strategy leaves passes out; the passes that run keep the target's order. Every strategy gives programs with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pto_wsp.errors import CompileOptionError, PassStrategyError, UnknownPassError
from pto_wsp.passes.pipeline import AnyPass, Pass
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest

# Passes that take work away and move nothing: what is left stands where the user wrote it.
_CLEANING = frozenset({"drop_repeated_checks", "forward_buffers", "simplify", "merge_common", "drop_dead_code", "merge_common_of_part",
                       "drop_unused"})


@dataclass(frozen=True, slots=True)
class PassStrategy:
    """A named choice of passes. `only`: the names of the passes that run beside the required ones, None for all."""

    name: str
    summary: str
    also: str = ""                         # a second name
    only: frozenset[str] | None = None

    def left_out(self, steps: Iterable[AnyPass]) -> tuple[str, ...]:
        """Return the names of the passes that do not run, in order."""
        return () if self.only is None else tuple(step.name for step in steps if not step.required and step.name not in self.only)


STRATEGIES = (
    PassStrategy("default", "every pass of the target", "O2"),
    PassStrategy("clean", "the required passes, and those that only take work away: nothing is moved, fused or run on several lanes", "O1",
                 _CLEANING),
    PassStrategy("none", "the required passes alone: code as close to the program as the target can be", "O0", frozenset()),
)
_BY_NAME = {name: strategy for strategy in STRATEGIES for name in (strategy.name, strategy.also)}
EXPECTED = (f"one of {', '.join(repr(strategy.name) for strategy in STRATEGIES)}, a list of passes, or a dict of functions "
            "(IR, context) -> IR, by the names of the passes that they stand for")


def named_strategy(name: str) -> PassStrategy:
    """Return the strategy of that name.

    Raises: C104 with all names, and the nearest.
    """
    if name not in _BY_NAME:
        near = nearest(name, _BY_NAME)
        raise CompileOptionError(f"there is no pass strategy {name!r}"[:200], here(), expected=EXPECTED,
                                 help=f"did you mean {near!r}?" if near else "`pto-wsp passes` lists the strategies")
    return _BY_NAME[name]


def listed_passes(target: str, steps: Sequence[AnyPass], given: Sequence[object],
                  find: Callable[[object], AnyPass]) -> tuple[frozenset[str], Mapping[str, Callable[..., object]]]:
    """Return the names of the passes that a list leaves out, and the functions of the passes in the list by the names they replace.

    given: names of passes, and `Pass` values; one that is not the target's stands for the pass of its name. `find`: of the target, by name.
    Raises: C114 for a name that no pass of the target has, C117 for a list that leaves out a required pass or has passes in another order.
    """
    own: dict[str, Callable[..., object]] = {}
    chosen: list[AnyPass] = []
    for entry in given:
        if not isinstance(entry, str | Pass):
            raise CompileOptionError("a list of passes has names of passes, and Pass values", here(), expected=EXPECTED,
                                     found=repr(entry)[:200])
        step = _found(target, steps, entry, find)
        if isinstance(entry, Pass) and all(entry is not known for known in steps):
            own[step.name] = _verifying(entry)
        chosen.append(step)
    names = [step.name for step in chosen]
    order = [step.name for step in steps]
    missing = [step for step in steps if step.required and step.name not in names]
    if missing:
        raise PassStrategyError(f"target {target} does not do without pass `{missing[0].name}`", here(), expected=missing[0].required,
                                found=f"a list without {', '.join(step.name for step in missing)}",
                                help=f"'none' is the list of what target {target} needs: {_names(step for step in steps if step.required)}")
    for first, second in pairwise(names):
        if order.index(first) >= order.index(second):
            what = "stands twice in the list" if first == second or names.count(second) > 1 else f"stands behind `{first}`"
            raise PassStrategyError(f"pass `{second}` {what}", here(), expected=f"passes in the order of target {target}: "
                                    f"{', '.join(name for name in order if name in names)}", found=", ".join(names),
                                    help="a pass relies on what the passes before it establish, so the order is the target's")
    return frozenset(order) - frozenset(names), own


def _found(target: str, steps: Sequence[AnyPass], entry: str | Pass[Any, Any], find: Callable[[object], AnyPass]) -> AnyPass:
    """Return the target's pass that an entry of a list names, or stands for.

    Raises: C114 for a name that no pass of the target has, or one of another level.
    """
    step = find(entry if isinstance(entry, str) else entry.name)
    if isinstance(entry, Pass) and entry.level_name != step.level_name:
        raise UnknownPassError(f"pass `{entry.name}` of target {target} is a pass on a {step.level_name}", here(),
                               expected=f"a Pass on a {step.level_name}", found=f"a Pass on a {entry.level_name}")
    return step


def _verifying(own: Pass[Any, Any]) -> Callable[..., object]:
    """Return the function of a user's pass, which checks what the pass says of its result."""
    def run(ir: object, context: object) -> object:
        after = own.run(ir, context)
        own.verify_after(after)
        return after

    return run


def _names(steps: Iterable[AnyPass]) -> str:
    return ", ".join(step.name for step in steps)

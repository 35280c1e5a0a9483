"""Define `TilePlan`: how a function on whole tensors is cut into kernels, tasks and scratch tensors, as data.

A plan is a table of entries: a key (`tiles`), the name of a value or group in the user's function, an axis where the key needs one, and a
value. A pass that chooses writes its choice with its reason where the plan says nothing, and then does what the plan says. So choices of
the compiler and of a person take one path. No entry changes what the function means.

    >>> plan = f.plan(x, w)                                 # all entries chosen
    >>> mine = plan.but(tiles={"out": {1: 1024}})           # this one by hand, the others chosen again
    >>> print(plan.diff(mine)); mine.save("f.910b.json")
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from itertools import repeat
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed
from pto_wsp.errors import PlanEntryError, PlanFileError, PlanNameError, PlanUseError, PtoError, raise_all
from pto_wsp.schedule.tiling_entries import (
    KEYS,
    SHORT,
    STAY,
    PlainValue,
    PlanEntry,
    PlanValue,
    entries_of,
    match_of,
    place_text,
    says_nothing,
    value_text,
)
from pto_wsp.schedule.tiling_file import GroupCost, PlanData, parsed_plan, plan_json
from pto_wsp.schedule.tiling_names import FunctionNames, checked_entries
from pto_wsp.schedule.tunable import Tunable
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import counted, nearest

Said: TypeAlias = Mapping[str, object]
Place: TypeAlias = tuple[str, str, str]
_NO_COST = "–"


@dataclass(frozen=True, slots=True)
class Planner:
    """What makes the entries of one function: its names, and `choose`, which adds to a plan what it does not say.

    `choose` raises J304 for what does not fit, and what its passes refuse. `reads_all`: its passes read each entry that has an effect.
    `planned`: of the planner of a complete plan, what its passes made of the function by the plan; `planned_names`: the names with those
    that its passes made.
    """

    names: FunctionNames
    choose: Callable[[TilePlan], TilePlan]
    reads_all: bool = True
    planned: object = None
    planned_names: Callable[[], FunctionNames] | None = None

    def checked(self, entries: Iterable[PlanEntry], plan: TilePlan) -> tuple[PlanEntry, ...]:
        """Return entries by hand for a plan in one spelling. An unknown name may be the name of a value that planning makes.

        Raises: as `checked_entries`.
        """
        given = tuple(entries)
        try:
            return checked_entries(given, self.names if self.planned_names is None else self.planned_names())
        except PtoError:
            makes_values = [entry for entry in (*plan.entries, *given) if entry.by_hand and entry.key in _MAKES_VALUES]
            if self.planned_names is not None and not any(entry in makes_values for entry in given):
                raise
            try:
                planner = self.choose(replace(plan, entries=tuple(makes_values), costs=(), planner=None)).planner
            except PtoError:
                planner = None
            if planner is None or planner.planned_names is None:
                raise
            return checked_entries(given, planner.planned_names())


@user_calls(leave_out=("said", "all_said", "with_choice", "with_cost", "used_with"))
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TilePlan(Displayed):
    """The plan of one function for one arch and target. `sizes`: the numbers that stand for symbols in costs, by name.

    Plans are equal if they say the same for the same function, arch and target; reasons and costs do not count. `planner` is not saved.
    """

    function: str
    arch: str
    target: str
    sizes: tuple[tuple[str, int], ...] = ()
    entries: tuple[PlanEntry, ...] = ()
    costs: tuple[GroupCost, ...] = ()
    planner: Planner | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse parts that are none.

        Raises: J301.
        """
        for name, fits in (("function", isinstance(self.function, str)), ("arch", isinstance(self.arch, str)),
                           ("target", isinstance(self.target, str)), ("sizes", isinstance(self.sizes, tuple)),
                           ("entries", _all_of(self.entries, PlanEntry)), ("costs", _all_of(self.costs, GroupCost)),
                           ("planner", self.planner is None or isinstance(self.planner, Planner))):
            if not fits:
                raise PlanEntryError(f"a plan does not take this for {name}", here(), found=repr(getattr(self, name))[:120],
                                     help="f.plan(...) makes a plan of a function, TilePlan.load(path) reads one")

    # -- for passes ----------------------------------------------------------------------------------------------------
    def said(self, key: str, name: str = "", axis: str = "", also: Iterable[tuple[str, str]] = (), *, counts: bool = True,
             ) -> PlanEntry | None:
        """Return the entry for a key, name and axis, of a Tunable with its first value; None where the plan says nothing.

        By hand, `x` means `x#2` too, and an entry of a symbol without a name means every group. `also`: other names of the same place,
        as (name, axis): the values of a group, each with the number of the dimension. An exact entry wins. `counts`: what is found decides
        something; an entry that no such call finds changes nothing, and is refused.
        """
        orders: dict[tuple[str, str], int] = {}      # of the names of the place, the better first
        for order, place in enumerate(((name, axis), *also)):
            orders.setdefault(place, order)
        best: tuple[int, int] | None = None
        found: PlanEntry | None = None
        read = _READ.get() if counts else None
        for entry in self.entries:
            if entry.key != key:
                continue
            exact, rank = orders.get((entry.name, entry.axis)), None
            if exact is not None:
                rank = 4 if entry.by_hand else 3, -exact
            elif entry.by_hand and key != "groups":
                rank = max(((2 + min(1, match_of(entry.name, one)) if entry.name else 1, -order)
                            for (one, its_axis), order in orders.items()
                            if its_axis == entry.axis and (match_of(entry.name, one) >= 0 or (not entry.name and axis))), default=None)
            if rank is None:
                continue
            if read is not None:
                read.add(entry.place)
            if best is None or rank > best:
                best, found = rank, entry
        if found is None or not isinstance(found.value, Tunable):
            return found
        return replace(found, value=found.first)

    def all_said(self, key: str, value: PlainValue) -> tuple[PlanEntry, ...]:
        """Return the entries of a key that have a value, of a Tunable as its first one."""
        found = tuple(entry for entry in self.entries if entry.key == key and entry.first == value)
        read = _READ.get()
        if read is not None:
            read.update(entry.place for entry in found)
        return found

    def with_choice(self, key: str, name: str, axis: str, value: PlanValue, reason: str) -> TilePlan:
        """Return the plan with an entry of the compiler's, where the plan says nothing; the plan itself where it says something."""
        if self.said(key, name, axis) is not None:
            return self
        return replace(self, entries=(*self.entries, PlanEntry(key, name, axis, value, reason)))

    def with_cost(self, cost: GroupCost) -> TilePlan:
        """Return the plan with what a group is and costs, in place of what was said of it before."""
        kept = tuple(one for one in self.costs if one.name != cost.name)
        return replace(self, costs=(*kept, cost))

    def used_with(self, function: str, planner: Planner) -> TilePlan:
        """Return the plan with a planner, complete: a loaded plan says what it said, and the planner adds the rest.

        Raises: J306 for the plan of another function; J302, J303 for entries that do not match this one; J304 for what does not fit.
        """
        if function != self.function:
            raise PlanUseError(f"this is a plan of `{self.function}`, not of `{function}`", here(), found=repr(self),
                               help=f"{function}.plan(...) makes one")
        by_hand = [entry for entry in self.entries if entry.by_hand]
        checked = {entry.place: found for entry, found in zip(by_hand, planner.checked(by_hand, self), strict=True)}
        entries = tuple(checked.get(entry.place, entry) if entry.by_hand else entry for entry in self.entries)
        return _chosen(replace(self, entries=entries), planner)

    # -- for people ----------------------------------------------------------------------------------------------------
    def but(self, *, tiles: Said | None = None, groups: Said | None = None, inner: Said | None = None, batch: Said | None = None,
            tails: Said | None = None, split: Said | None = None, loops: Said | None = None, order: Said | None = None,
            keep: Said | None = None, flat: Said | None = None, allow: object = None, tunables: Said | None = None,
            collectives: Said | None = None, schedule: object = None) -> TilePlan:
        """Return the plan with entries by hand; what is chosen automatically is chosen again.

        `tiles={"out": {"t": 64, 1: 1024}}`: a name, an axis, a value; the value may be a Tunable, and None takes an entry back.
        docs/tensor_plan.md has an example of each key. There is no `schedule` in a plan: a workload has one.
        Raises: J301 for a value that the key does not take, J302 for what matches nothing, J303 for entries that contradict each other,
        J304 for what does not fit.
        """
        given = {"tiles": tiles, "groups": groups, "inner": inner, "batch": batch, "tails": tails, "split": split, "loops": loops,
                 "order": order, "keep": keep, "flat": flat, "allow": allow, "tunables": tunables,
                 "collectives": collectives, "schedule": schedule}
        changed = entries_of({key: said for key, said in given.items() if said is not None})
        if self.planner is not None:
            changed = self.planner.checked(changed, self)
        places = {entry.place for entry in changed}
        kept = [entry for entry in self.entries if entry.place not in places and (entry.by_hand or self.planner is None)]
        entries = (*kept, *(entry for entry in changed if not says_nothing(entry.value)))
        if self.planner is not None:
            entries = self.planner.checked(entries, self)
        made = replace(self, entries=entries, costs=() if changed else self.costs)
        return made if self.planner is None else _chosen(made, self.planner)

    def diff(self, other: TilePlan) -> TilePlanDifference:
        """Return what this plan says otherwise than another, entry by entry, with what the groups cost.

        Raises: J301 for a value that is no plan.
        """
        if not isinstance(other, TilePlan):
            raise PlanEntryError("diff takes another plan", here(), expected="a TilePlan", found=repr(other)[:120])
        return TilePlanDifference(self, other)

    @property
    def tunables(self) -> Mapping[tuple[str, str, str], Tunable]:
        """The entries whose values are for a search to choose from, by key, name and axis."""
        return {entry.place: entry.value for entry in self.entries if isinstance(entry.value, Tunable)}

    def with_values(self, values: Mapping[tuple[str, str, str], PlanValue]) -> TilePlan:
        """Return the plan with Tunable entries fixed to values: `plan.with_values({("tiles", "out", "1"): 512})`.

        Raises: J301 for a place whose entry has no such value.
        """
        found = self.tunables
        for place, value in values.items():
            if place not in found or value not in found[place].values:
                raise PlanEntryError("the plan has no such Tunable value", here(), found=f"{place!r}: {value!r}",
                                     expected="; ".join(f"{place_text(*one)}: {tunable!r}" for one, tunable in found.items()) or
                                     "nothing: no entry is a Tunable")
        entries = tuple(replace(entry, value=values.get(entry.place, entry.value)) for entry in self.entries)
        made = replace(self, entries=entries)
        return made if self.planner is None else made.but()

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups, in the order in which they were chosen: one kernel each."""
        named = [entry.name for entry in self.entries if entry.key == "groups"]
        return tuple(dict.fromkeys((*(cost.name for cost in self.costs), *named)))

    @property
    def code(self) -> str:
        """The call that gives a plan the entries by hand of this one: `.but(tiles={'out': {1: 1024}})`; "" if there are none."""
        return f".but({', '.join(self.arguments)})" if self.arguments else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `code`, one a key."""
        said: dict[str, dict[str, object]] = {}
        for entry in self.entries:
            if not entry.by_hand:
                continue
            places = said.setdefault(entry.key, {})
            if entry.axis and entry.name:
                axis = int(entry.axis) if entry.axis.isdigit() else entry.axis
                inner = places.setdefault(entry.name, {})
                assert isinstance(inner, dict)
                inner[axis] = entry.value
            else:
                places[entry.name or entry.axis] = entry.value
        if set(said.get("allow", ())) == {""}:
            said["allow"] = said["allow"][""]     # type: ignore[assignment]
        return tuple(f"{key}={value!r}" for key, value in said.items())

    @property
    def digest(self) -> str:
        """The SHA-256 of what the plan says; reasons and costs do not count, nor who said it."""
        said = sorted((*entry.place, repr(entry.value)) for entry in self.entries)
        text = json.dumps([self.function, self.arch, self.target, sorted(self.sizes), said])
        return hashlib.sha256(text.encode()).hexdigest()

    # -- files ---------------------------------------------------------------------------------------------------------
    def save(self, path: str | PathLike[str]) -> Path:
        """Write the plan as JSON, which `TilePlan.load` reads, and return the path.

        Raises: J305 for a path that cannot be written.
        """
        file = _path("save", path)
        data = PlanData(self.function, self.arch, self.target, self.sizes, self.entries, self.costs)
        try:
            file.write_text(plan_json(data), encoding="utf-8")
        except OSError as problem:
            raise PlanFileError("the plan cannot be written there", here(), found=str(problem)) from None
        return file

    @classmethod
    def load(cls, path: str | PathLike[str]) -> TilePlan:
        """Return the plan that `save` wrote. It is held against a function's names when it is used with one.

        Raises: J305 for a file that is no plan.
        """
        file = _path("load", path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise PlanFileError("the plan cannot be read", here(), found=str(problem)[:200]) from None
        data = parsed_plan(text, str(file))
        return cls(data.function, data.arch, data.target, data.sizes, data.entries, data.costs)

    # -- as a value ----------------------------------------------------------------------------------------------------
    def __eq__(self, other: object) -> bool:
        return isinstance(other, TilePlan) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[object, ...]:
        return TilePlan, (self.function, self.arch, self.target, self.sizes, self.entries, self.costs)

    def __repr__(self) -> str:
        by_hand = sum(entry.by_hand for entry in self.entries)
        return (f"TilePlan({self.function} on {self.arch}: {counted(len(self.group_names), 'group')}, "
                f"{counted(len(self.entries), 'entry', 'entries')}, {by_hand} by hand)")

    def __str__(self) -> str:
        return "\n".join(_lines(self))


# -- choosing ----------------------------------------------------------------------------------------------------------
_READ: ContextVar[set[Place] | None] = ContextVar("pto_wsp_plan_read", default=None)
_READ_AT_ONCE = frozenset({"allow", "groups", "tunables"})      # keys that passes read as a whole
_MAKES_VALUES = frozenset({"allow", "split", "tunables"})       # keys by which planning makes values


@contextmanager
def entries_read() -> Iterator[set[Place]]:
    """Collect the places of the entries that `said` finds meanwhile."""
    found: set[Place] = set()
    token = _READ.set(found)
    try:
        yield found
    finally:
        _READ.reset(token)


def _chosen(plan: TilePlan, planner: Planner) -> TilePlan:
    """Return a plan with all choices of a planner.

    Raises: J302 for entries that no pass asks for: they would change nothing, and one of a saved plan is of a function that has changed.
    """
    with entries_read() as read:
        made = planner.choose(replace(plan, planner=None))
    if planner.reads_all:
        idle = _idle(plan, made, planner)
        raise_all([_unread(entry, made) for entry in plan.entries
                   if entry in idle or (entry.key not in _READ_AT_ONCE and entry.place not in read)])
    return made if made.planner is not None else replace(made, planner=planner)


def _idle(plan: TilePlan, made: TilePlan, planner: Planner) -> Sequence[PlanEntry]:
    """Return the entries by hand for values that are computed again without which the passes choose the same.

    Passes read these at once, and go by them where they divide the function.
    """
    def is_made_without(entries: Sequence[PlanEntry]) -> bool:
        try:
            other = planner.choose(replace(plan, entries=tuple(entry for entry in plan.entries if entry not in entries), planner=None))
        except PtoError:
            return False
        chosen, before = ([entry for entry in one.entries if not entry.by_hand] for one in (made, other))
        return chosen == before and other.costs == made.costs

    again = [entry for entry in plan.entries if entry.by_hand and entry.key == "keep" and entry.first == "again"]
    idle = [entry for entry in again if is_made_without([entry])]
    return idle if len(idle) < 2 or is_made_without(idle) else ()      # each of two may do for the other


_NEEDS = {      # what has to be there for an entry of a key without an axis to decide something
    "keep": "a value that one kernel computes and another reads", "order": "a kernel whose tasks run over two axes or more",
    "flat": "an axis that can be the rows of a tile of the kernel", STAY: "steps of both m and n in `inner`, around the whole of the sum",
}


def _unread(entry: PlanEntry, plan: TilePlan) -> PlanNameError:
    if not entry.by_hand:
        near = nearest(entry.name, [one.name for one in plan.entries if one.key == entry.key and one.name != entry.name])
        return PlanNameError(f"{entry}, which the plan chose, matches nothing: the function has changed", here(),
                             expected=f"an entry that a kernel asks for under `{entry.key}`",
                             help=(f"did you mean {near}? " if near else "") + "f.plan(...) plans the function as it is now")
    others = [f"{one.axis} of {one.name}" for one in plan.entries if one.key == entry.key and one.axis and not one.by_hand]
    needs = _NEEDS.get(STAY if entry.axis == STAY else entry.key)
    return PlanNameError(f"{entry} changes nothing", here(), found=f"no kernel asks for `{entry.key}` there",
                         expected=needs or (f"an axis that is there: {', '.join(others[:8])}" if others else None),
                         help=f"print(plan) shows what each kernel has; this is for {KEYS[entry.key]}")


def _all_of(given: object, kind: type) -> bool:
    return isinstance(given, tuple) and all(map(isinstance, given, repeat(kind)))


def _path(called: str, given: object) -> Path:
    if not isinstance(given, str | PathLike) or not str(given):
        raise PlanFileError(f"{called} takes a path", here(), found=repr(given)[:120], help=f'{called}("rmsnorm.910b.json")')
    return Path(given)


# -- printing ----------------------------------------------------------------------------------------------------------
_MOST_WHOLE = 2      # axes that stand in a task whole; of more, a plan shows the number
PLAN_HEAD = ("group", "ops", "core", "tiles", "inner", "keep", "cost")


def plan_title(plan: TilePlan) -> str:
    """Return what the plan is of: `rmsnorm_linear on ascend_910b, t = symbol (planned for 1024)`."""
    sizes = [f"{name} = symbol (planned for {number:,})" for name, number in plan.sizes]
    return ", ".join((f"{plan.function} on {plan.arch}", *sizes))


def group_rows(plan: TilePlan) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield for each group its cells under `PLAN_HEAD`, and what decided about its tiles."""
    costs = {cost.name: cost for cost in plan.costs}
    for name in plan.group_names:
        cost = costs.get(name)
        values = plan.said("groups", name)
        ops = cost.ops if cost is not None and cost.ops else values.first if values is not None and isinstance(values.first, tuple) else ()
        whole = cost.whole if cost is not None else ()
        tiles, inner, keeps, reasons = [], [], [], ["" if values is None else values.reason]
        for entry in plan.entries:
            if not _is_about(entry, name, values):
                continue
            shown = f"{entry.axis}={value_text(entry.value)}" if entry.axis else value_text(entry.value)
            if entry.key in ("tiles", "batch", "split"):
                tiles.append(shown if entry.key == "tiles" else f"{entry.key} {shown}")
            elif entry.key == "inner":
                inner.append(shown)
            elif entry.key == "keep":
                keeps.append(shown if entry.name == name else f"{entry.name}={shown}")
                reasons.append("keep by hand" if entry.by_hand else f"{shown}: {entry.reason}" * bool(entry.reason))
            if entry.key in ("tiles", "inner", "batch", "split"):
                reasons.append(f"{entry.axis or entry.key} by hand" if entry.by_hand else f"chosen: {entry.reason}" * bool(entry.reason))
        inner += [f"{axis} whole" for axis in whole] if len(whole) <= _MOST_WHOLE else [f"{len(whole)} axes whole"]
        spent = _NO_COST if cost is None or cost.cycles is None else f"{cost.cycles:,}"
        unit = "" if cost is None else cost.unit
        cells = (name, _some(tuple(map(str, ops))), unit, " ".join(tiles), " ".join(inner), " ".join(keeps), spent)
        yield cells, "; ".join(dict.fromkeys(reason for reason in reasons if reason))


def other_rows(plan: TilePlan) -> Iterator[tuple[str, str, str]]:
    """Yield (key, what it says, reason) for the entries that are not of one group's tiles."""
    for key in ("loops", "tails", "order", "flat", "allow", "tunables", "collectives"):
        for entry in plan.entries:
            if entry.key == key:
                where = " ".join(filter(None, (entry.name, entry.axis)))
                words = "short last tile" if entry.value == SHORT and key == "tails" else value_text(entry.value)
                yield key, f"{where}: {words}" if where else words, "by hand" if entry.by_hand else entry.reason


def _is_about(entry: PlanEntry, group: str, values: PlanEntry | None) -> bool:
    """Tell whether an entry is of a group, or of a value that it computes."""
    if entry.name == group:
        return True
    inside = values.first if values is not None and isinstance(values.first, tuple) else ()
    names = (group, *map(str, inside))
    if entry.by_hand:
        return bool(entry.name) and any(match_of(entry.name, one) >= 0 for one in names)
    return entry.name in names


def _some(ops: tuple[str, ...]) -> str:
    return " ".join(ops) if len(ops) <= 3 else f"{ops[0]} … {ops[-1]}"


def _lines(plan: TilePlan) -> Iterator[str]:
    yield plan_title(plan)
    rows = [PLAN_HEAD, *(cells for cells, _ in group_rows(plan))]
    reasons = ["", *(reason for _, reason in group_rows(plan))]
    if len(rows) > 1:
        widths = [max(len(row[k]) for row in rows) if any(row[k] for row in rows[1:]) else 0 for k in range(len(PLAN_HEAD))]
        for row, reason in zip(rows, reasons, strict=True):
            cells = [cell.ljust(width) if k < len(row) - 1 else cell.rjust(width)
                     for k, (cell, width) in enumerate(zip(row, widths, strict=True)) if width]
            yield "  ".join((*cells, reason)).rstrip()
    found = list(other_rows(plan))
    width = max((len(key) for key, _, _ in found), default=0)
    for key, words, reason in found:
        yield f"{key.ljust(width)}  {words}" + (f"  ({reason})" if reason else "")


# -- differences -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, repr=False)
class TilePlanDifference(Displayed):
    """What the plan `mine` says otherwise than the plan `theirs`."""

    mine: TilePlan
    theirs: TilePlan

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """The entries that differ: (`tiles['out'][1]`, what mine says, what theirs says), "" for what is not said."""
        heads = [(what, getattr(self.mine, what), getattr(self.theirs, what)) for what in ("function", "arch", "target")]
        sizes = (dict(self.mine.sizes), dict(self.theirs.sizes))
        heads += [(f"size of {name}", str(sizes[0].get(name, "")), str(sizes[1].get(name, "")))
                  for name in dict.fromkeys((*sizes[0], *sizes[1]))]
        one, two = ({entry.place: entry for entry in plan.entries} for plan in (self.mine, self.theirs))
        entries = []
        for place in sorted({*one, *two}, key=lambda place: (list(KEYS).index(place[0]), place[1:])):
            texts = [value_text(found[place].value) if place in found else "" for found in (one, two)]
            entries.append((place_text(*place), texts[0], texts[1]))
        return tuple(row for row in (*heads, *entries) if row[1] != row[2])

    @property
    def costs(self) -> tuple[tuple[str, int | None, int | None], ...]:
        """The cycles of each group whose cost differs: (name, mine, theirs), None for a group that a plan does not have or price."""
        one, two = ({cost.name: cost.cycles for cost in plan.costs} for plan in (self.mine, self.theirs))
        return tuple((name, one.get(name), two.get(name)) for name in dict.fromkeys((*one, *two)) if one.get(name) != two.get(name))

    @property
    def totals(self) -> tuple[int, int] | None:
        """The cycles of all groups of both plans; None if one of them is not priced."""
        sums = [[cost.cycles for cost in plan.costs] for plan in (self.mine, self.theirs)]
        if not all(sums) or any(None in one for one in sums):
            return None
        return sum(one or 0 for one in sums[0]), sum(one or 0 for one in sums[1])

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __str__(self) -> str:
        lines = [f"{where}: {mine or 'not said'}, was {theirs or 'not said'}" for where, mine, theirs in self.rows]
        lines += [f"cost of {name}: {cycles_text(mine)}, was {cycles_text(theirs)}{change_text(mine, theirs)}"
                  for name, mine, theirs in self.costs]
        if self.totals is not None and self.costs:
            lines.append(f"together: {self.totals[0]:,} cycles, was {self.totals[1]:,}{change_text(*self.totals)}")
        return "\n".join(lines) or "the plans say the same"

    def __repr__(self) -> str:
        return f"TilePlanDifference({', '.join(where for where, _, _ in self.rows) or 'none'})"


def cycles_text(cycles: int | None) -> str:
    """Return cycles as text: `374,772 cycles`, or that a plan has no such group."""
    return "not priced" if cycles is None else f"{cycles:,} cycles"


def change_text(mine: int | None, theirs: int | None) -> str:
    """Return by how much one cost is above or below another: ` (+4%)`."""
    if not mine or not theirs:
        return ""
    return f" ({100 * (mine - theirs) / theirs:+.0f}%)"

"""Write tile plans as JSON, and read them: a file to commit, in which each entry is a line.

A file that was changed by hand is read like an argument of `but`: what is wrong is named with the entry where it stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

from pto_wsp.errors import PlanEntryError, PlanFileError
from pto_wsp.schedule.tiling_entries import KEYS, PlanEntry, PlanValue, axis_text, check_value, place_text, says_nothing
from pto_wsp.schedule.tunable import Tunable
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest, printable, shortened

FORMAT, VERSION = "pto_wsp tile plan", 1
_FIELDS = ("format", "version", "function", "arch", "target", "sizes", "entries", "costs")
_MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class GroupCost:
    """The ops and the costs of a group, for display. `whole`: axes that no task cuts; `cycles`: of all tasks, None if unknown."""

    name: str
    ops: tuple[str, ...] = ()
    unit: str = ""
    whole: tuple[str, ...] = ()
    n_tasks: int = 0
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class PlanData:
    """The data of a plan that a file stores."""

    function: str
    arch: str
    target: str
    sizes: tuple[tuple[str, int], ...]
    entries: tuple[PlanEntry, ...]
    costs: tuple[GroupCost, ...]


# -- writing -----------------------------------------------------------------------------------------------------------
def plan_json(plan: PlanData) -> str:
    """Return a plan as JSON, with a line an entry."""
    head: dict[str, object] = {"format": FORMAT, "version": VERSION, "function": plan.function, "arch": plan.arch,
                               "target": plan.target, "sizes": dict(plan.sizes)}
    entries: list[dict[str, object]] = [
        {"key": entry.key, "name": entry.name, "axis": entry.axis, "value": _written(entry.value), "reason": entry.reason,
         "by_hand": entry.by_hand} for entry in plan.entries]
    costs: list[dict[str, object]] = [{"name": cost.name, "ops": cost.ops, "unit": cost.unit, "whole": cost.whole,
                                       "n_tasks": cost.n_tasks, "cycles": cost.cycles} for cost in plan.costs]
    lines = [f"  {json.dumps(key)}: {_line(value)}" for key, value in head.items()]
    lines += [f"  {json.dumps(key)}: [{_rows(rows)}]" for key, rows in (("entries", entries), ("costs", costs))]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rows(rows: list[dict[str, object]]) -> str:
    return "\n" + ",\n".join(f"    {_line(row)}" for row in rows) + "\n  " if rows else ""


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _written(value: PlanValue) -> object:
    return {"tunable": list(value.values)} if isinstance(value, Tunable) else value


# -- reading -----------------------------------------------------------------------------------------------------------
def parsed_plan(text: str, file: str) -> PlanData:
    """Return the plan of a file's text.

    Raises: J305 for text that is no plan, at the entry that is wrong.
    """
    return _PlanReader(file).plan(text)


class _PlanReader:
    def __init__(self, file: str) -> None:
        self.file = file

    def plan(self, text: str) -> PlanData:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as problem:
            self.refuse("it is no JSON", found=str(problem)[:200] or type(problem).__name__)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            self.refuse("it is no tile plan", expected=f'an object with "format": "{FORMAT}"',
                        found=shortened(printable(repr(data.get("format", sorted(data)) if isinstance(data, dict) else data))))
        if data.get("version") != VERSION or isinstance(data["version"], bool):
            self.refuse("another version of pto_wsp wrote it", expected=f'"version": {VERSION}',
                        found=shortened(printable(repr(data.get("version")))))
        self.fields("the plan", data, _FIELDS)
        sizes = data["sizes"]
        if not isinstance(sizes, dict) or not all(_is_number(number) and number != 0 for number in sizes.values()):
            self.refuse("its sizes are none", expected='symbols with numbers from 1, such as {"t": 1024}', found=_shown(sizes))
        entries = tuple(self.entry(at, one) for at, one in enumerate(self.rows("entries", data["entries"])))
        places = [entry.place for entry in entries]
        twice = next((place for place in places if places.count(place) > 1), None)
        if twice is not None:
            self.refuse(f"it has {place_text(*twice)} twice")
        costs = tuple(self.cost(at, one) for at, one in enumerate(self.rows("costs", data["costs"])))
        function, arch, target = (self.word(data, "the plan", name) for name in ("function", "arch", "target"))
        return PlanData(function, arch, target, tuple(sizes.items()), entries, costs)

    def entry(self, at: int, data: object) -> PlanEntry:
        where = f"entry {at + 1}"
        fields = self.fields(where, data, ("key", "name", "axis", "value", "reason", "by_hand"))
        key, name, axis, reason = (self.word(fields, where, one) for one in ("key", "name", "axis", "reason"))
        by_hand = fields["by_hand"]
        if key not in KEYS:
            near = nearest(key, KEYS)
            self.refuse(f"{where} has an unknown key {_shown(key)}", expected=", ".join(KEYS),
                        help=f"did you mean {near}?" if near else None)
        if not isinstance(by_hand, bool):
            self.refuse(f"{where} says neither by hand nor chosen", expected="by_hand: true or false", found=_shown(by_hand))
        try:
            value = check_value(key, name, axis_text(key, name, axis) if axis else "", self.value(where, fields["value"]))
        except PlanEntryError as problem:
            self.refuse(f"{where}: {problem.message}", expected=problem.expected, found=problem.found)
        if says_nothing(value):
            self.refuse(f"{where} has no value")
        return PlanEntry(key, name, axis, value, reason, by_hand)

    def value(self, where: str, data: object) -> object:
        if isinstance(data, dict):
            choices = data.get("tunable")
            if set(data) != {"tunable"} or not isinstance(choices, list) or not choices:
                self.refuse(f"{where} has a value that is none", expected='a value, or {"tunable": [first, second]}', found=_shown(data))
            values = [self.value(where, one) for one in choices]
            if any(isinstance(one, Tunable) or values.index(one) < at for at, one in enumerate(values)):
                self.refuse(f"{where} has a Tunable that is none", expected="several values, each once", found=_shown(data))
            return Tunable(*values)
        return tuple(data) if isinstance(data, list) else data

    def cost(self, at: int, data: object) -> GroupCost:
        where = f"cost {at + 1}"
        fields = self.fields(where, data, ("name", "ops", "unit", "whole", "n_tasks", "cycles"))
        words = {name: self.word(fields, where, name) for name in ("name", "unit")}
        lists = {name: self.words(fields, where, name) for name in ("ops", "whole")}
        cycles = None if fields["cycles"] is None else self.number(fields, where, "cycles")
        return GroupCost(words["name"], lists["ops"], words["unit"], lists["whole"], self.number(fields, where, "n_tasks"), cycles)

    # -- parts ---------------------------------------------------------------------------------------------------------
    def fields(self, where: str, data: object, names: tuple[str, ...]) -> dict[str, object]:
        if not isinstance(data, dict):
            self.refuse(f"{where} is no object", found=_shown(data))
        unknown = [name for name in data if name not in names]
        missing = [name for name in names if name not in data]
        if unknown or missing:
            near = nearest(unknown[0], missing or names) if unknown else None
            self.refuse(f"{where} has an unknown field {_shown(unknown[0])}" if unknown else f"{where} lacks {missing[0]}",
                        expected=", ".join(names), help=f"did you mean {near}?" if near else None)
        return data

    def rows(self, name: str, data: object) -> list[object]:
        if not isinstance(data, list):
            self.refuse(f"its {name} are no list", found=_shown(data))
        return data

    def word(self, data: Mapping[str, object], where: str, name: str) -> str:
        value = data[name]
        if not isinstance(value, str):
            self.refuse(f"{name} of {where} is no text", found=_shown(value))
        return value

    def words(self, data: Mapping[str, object], where: str, name: str) -> tuple[str, ...]:
        value = data[name]
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self.refuse(f"{name} of {where} is no list of words", found=_shown(value))
        return tuple(value)

    def number(self, data: Mapping[str, object], where: str, name: str) -> int:
        value = data[name]
        if not isinstance(value, int) or not _is_number(value):
            self.refuse(f"{name} of {where} is no number", expected="a whole number from 0", found=_shown(value))
        return value

    def refuse(self, what: str, *, expected: str | None = None, found: str | None = None, help: str | None = None) -> NoReturn:
        raise PlanFileError(f"{shortened(printable(self.file), 80)} holds no plan: {what}", here(), expected=expected, found=found,
                            help=help)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _shown(value: object) -> str:
    return shortened(printable(repr(value)))

"""Define the entries of a tile plan, and read those that a person gives: `tiles={"out": {1: 1024}}`.

An entry has a key, the name of a value or group in the user's function, an axis where the key needs one, and a value. Entries by hand may
leave the counter of a name out: `x` means x, x#2 and so on, and an entry for x#2 itself wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pto_wsp.errors import PlanConflictError, PlanEntryError
from pto_wsp.schedule.tunable import Tunable
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest, printable, shortened

PlainValue: TypeAlias = int | float | str | bool | tuple[int, ...] | tuple[str, ...]
PlanValue: TypeAlias = PlainValue | Tunable

# the keys, each with what it says
KEYS = {
    "groups": "the values that one kernel computes",
    "tiles": "the extent of a task's tile along an axis",
    "inner": "the steps of a product inside a core: m, n, k, and which operand stays",
    "batch": "how many neighbouring tiles one task computes",
    "tails": "how an axis that tiles do not divide ends: a short last tile, or tiles of falling sizes",
    "split": "the pieces of a sum, which a further task adds up",
    "loops": "whether a loop of the function is a loop of a kernel or of tasks",
    "order": "the nesting of a group's task loops",
    "keep": "where a value between kernels lies: scratch of a task, of the whole tensor, or computed again",
    "flat": "the axes that are the rows of a tile",
    "allow": "rewrites that change the order of sums",
    "tunables": "the values of the function's Tunable parameters",
    "collectives": "the algorithm of a collective over a mesh",
}
LOOPS = ("kernel", "tasks")
KEEPS = ("task", "whole", "again")
STAYS = ("left", "right")
REWRITES = ("row_scale", "online_softmax")
ALGORITHMS = ("ring", "tree", "direct")
STEPS = ("m", "n", "k")          # names of axes in `inner` beside those of values
STAY = "stay"
SHORT = "short"
_MOST = 1 << 40                  # an extent; more is a mistake


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One choice. `axis`: a symbol, the number of a dimension of the value as text, or `w:0`; "" where the key has no axis.

    `reason`: what was compared, with cost and capacity; "" of an entry by hand.
    """

    key: str
    name: str
    axis: str
    value: PlanValue
    reason: str = ""
    by_hand: bool = False

    @property
    def place(self) -> tuple[str, str, str]:
        """Key, name and axis: a plan has one entry for each."""
        return self.key, self.name, self.axis

    @property
    def first(self) -> PlainValue:
        """The value; of a Tunable its first one, which a call takes."""
        return plain_value(self.value)

    def __str__(self) -> str:
        return f"{place_text(*self.place)} = {value_text(self.value)}"


def plain_value(value: PlanValue) -> PlainValue:
    """Return a value as a call takes it: the first one of a Tunable."""
    found: PlainValue = value.default if isinstance(value, Tunable) else value     # type: ignore[assignment]
    return found


def place_text(key: str, name: str, axis: str) -> str:
    """Return the place of an entry in a plan, as users write it: `tiles['out'][1]`."""
    return key + (f"[{name!r}]" if name else "") + (f"[{axis if axis.isdigit() else repr(axis)}]" if axis else "")


def value_text(value: PlanValue) -> str:
    """Return a value as a table shows it."""
    match value:
        case tuple():
            return ", ".join(map(str, value))
        case Tunable():
            return "Tunable(" + ", ".join(value_text(one) for one in value.values) + ")"     # type: ignore[arg-type]
        case _:
            return str(value)


# -- names -------------------------------------------------------------------------------------------------------------
def match_of(asked: str, name: str) -> int:
    """Return how exactly a name by hand means a name of the function: -1 not at all, else how many counters it gives.

    >>> match_of("softmax.peak", "softmax#2.peak"), match_of("softmax#2.peak", "softmax#2.peak"), match_of("x", "y")
    (0, 1, -1)
    """
    if asked == name:
        return name.count("#")
    ours, theirs = asked.split("."), name.split(".")
    if len(ours) != len(theirs) or any(one not in (two, two.partition("#")[0]) for one, two in zip(ours, theirs, strict=True)):
        return -1
    return asked.count("#")


# -- reading -----------------------------------------------------------------------------------------------------------
def entries_of(given: Mapping[str, object]) -> tuple[PlanEntry, ...]:
    """Return the entries of arguments of `but`, by key; None as a value stands for: as the compiler chooses.

    Raises: J301 for a key or a value that there is not; J303 for two values of one entry.
    """
    entries: dict[tuple[str, str, str], PlanEntry] = {}
    for key, said in given.items():
        if key not in KEYS:
            raise unknown_key(key)
        for entry in _read(key, said):
            if entry.place in entries and entries[entry.place].value != entry.value:
                raise PlanConflictError(f"{place_text(*entry.place)} is given twice", here(),
                                        found=f"{value_text(entries[entry.place].value)} and {value_text(entry.value)}")
            entries[entry.place] = entry
    return tuple(entries.values())


def unknown_key(key: object) -> PlanEntryError:
    """Return the error about a key that plans do not have."""
    if key == "schedule":
        return PlanEntryError("a plan has no schedule", here(), found="schedule=",
                              help="f.lower(plan).dispatch(...) gives the workload its directives, f.using(schedule=...) the calls")
    near = nearest(str(key), KEYS)
    return PlanEntryError(f"a plan has no key {shortened(printable(repr(key)), 40)}", here(), expected=", ".join(KEYS),
                          help=f"did you mean {near}?" if near else None)


def check_value(key: str, name: str, axis: str, value: object) -> PlanValue:
    """Return the value that an entry stores for a user's value of this key.

    Raises: J301 for a value that the key does not take.
    """
    return _value(key, name, axis, value)


def _read(key: str, said: object) -> Iterator[PlanEntry]:
    if key == "allow" and isinstance(said, Sequence) and not isinstance(said, Mapping):
        yield _entry(key, "", "", (said,) if isinstance(said, str) else said or None)
        return
    if not isinstance(said, Mapping):
        raise PlanEntryError(f"{key} takes a dict", here(), expected=_EXAMPLES[key], found=shortened(printable(repr(said))))
    for name, value in said.items():
        if not isinstance(name, str) or not name:
            raise PlanEntryError(f"{key} has a name that is none", here(), expected=f"the name of {_NAMED[key]}, as text",
                                 found=shortened(printable(repr(name))))
        if isinstance(value, Mapping) and key in _WITH_AXES:
            for axis, inner in value.items():
                yield _entry(key, name, axis_text(key, name, axis), inner)
        elif key in ("tiles", "tails"):
            yield _entry(key, "", name, value)          # the axis of a symbol, in every group
        else:
            yield _entry(key, name, "", value)


def axis_text(key: str, name: str, axis: object) -> str:
    """Return an axis as an entry holds it: the name of a symbol, a number as text, or `w:0`.

    Raises: J301 for what is no axis.
    """
    if isinstance(axis, int | np.integer) and not isinstance(axis, bool | np.bool_):
        return str(int(axis))
    if isinstance(axis, str) and axis:
        return axis
    raise PlanEntryError(f"{place_text(key, name, '')} has an axis that is none", here(), found=shortened(printable(repr(axis))),
                         expected='a symbol such as "t", the number of a dimension, or "w:0", a dimension of another value')


def _entry(key: str, name: str, axis: str, value: object) -> PlanEntry:
    return PlanEntry(key, name, axis, _value(key, name, axis, value), by_hand=True)


def _value(key: str, name: str, axis: str, value: object) -> PlanValue:
    if value is None:
        return _NOTHING
    if isinstance(value, Tunable):
        return Tunable(*(_plain(key, name, axis, one) for one in value.values))
    return _plain(key, name, axis, value)


_NOTHING: PlanValue = ()      # as the compiler chooses


def says_nothing(value: PlanValue) -> bool:
    """Tell whether a value by hand takes an entry back."""
    return value == _NOTHING


def _plain(key: str, name: str, axis: str, value: object) -> PlainValue:
    kind = _KINDS["stay" if key == "inner" and axis == STAY else key]
    made = None if key == "inner" and not axis else kind(value)
    if made is None:
        raise PlanEntryError(f"{place_text(key, name, axis)} does not take this value", here(),
                             expected=_TAKES["stay" if axis == STAY and key == "inner" else key],
                             found=shortened(printable(repr(value))), help=f"for example {key}={_EXAMPLES[key]}")
    return made


def _count(value: object) -> int | None:
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_) and 1 <= value <= _MOST:
        return int(value)
    return None


def _names(value: object) -> tuple[str, ...] | None:
    if isinstance(value, tuple | list) and value and all(isinstance(one, str) and one for one in value):
        return tuple(value)
    return None


def _axes(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, tuple | list) or not value:
        return None
    plain = all((isinstance(one, str) and one) or (isinstance(one, int | np.integer) and not isinstance(one, bool)) for one in value)
    return tuple(str(one) for one in value) if plain else None


def _tail(value: object) -> PlainValue | None:
    if value == SHORT:
        return SHORT
    sizes = [_count(one) for one in value] if isinstance(value, tuple | list) else []
    return tuple(size for size in sizes if size is not None) if sizes and None not in sizes else None


def _one_of(words: Sequence[str]) -> Callable[[object], PlainValue | None]:
    return lambda value: value if isinstance(value, str) and value in words else None


def _rewrites(value: object) -> PlainValue | None:
    names = _names(value)
    return names if names is not None and all(name in REWRITES for name in names) else None


def _number(value: object) -> PlainValue | None:
    if isinstance(value, bool | int | float | str):
        return value
    return int(value) if isinstance(value, np.integer) else float(value) if isinstance(value, np.floating) else None


_KINDS: Mapping[str, Callable[[object], PlainValue | None]] = {
    "groups": _names, "tiles": _count, "inner": _count, "stay": _one_of(STAYS), "batch": _count, "tails": _tail,
    "split": _count, "loops": _one_of(LOOPS), "order": _axes, "keep": _one_of(KEEPS), "flat": _axes, "allow": _rewrites,
    "tunables": _number, "collectives": _one_of(ALGORITHMS),
}
_TAKES = {
    "groups": "the names of values, as a tuple", "tiles": "a whole number from 1", "inner": "a whole number from 1 for each of m, n, k",
    "stay": '"left" or "right"', "batch": "a whole number from 1", "tails": '"short", or sizes as a tuple',
    "split": "a whole number from 1",
    "loops": '"kernel" or "tasks"', "order": "axes as a tuple, the outermost first", "keep": '"task", "whole" or "again"',
    "collectives": '"ring", "tree" or "direct"',
    "flat": "axes as a tuple", "allow": " or ".join(map(repr, REWRITES)) + ", in a tuple", "tunables": "a number, a word, or a bool",
}
_EXAMPLES = {
    "groups": '{"all": ("normed", "out")}', "tiles": '{"out": {"t": 64, 1: 512}}', "inner": '{"out": {"k": 64, "stay": "left"}}',
    "batch": '{"normed": 4}', "tails": '{"t": (64, 16, 4, 1)}', "split": '{"out": 4}', "loops": '{"j": "tasks"}',
    "order": '{"out": (1, "t")}', "keep": '{"normed": "whole"}', "flat": '{"score": ("b", "h", "s")}', "allow": '("online_softmax",)',
    "tunables": '{"block": 256}', "collectives": '{"total": "tree"}',
}
_NAMED = {**dict.fromkeys(KEYS, "a value or group of the function"), "loops": "a loop's variable", "tunables": "a Tunable parameter",
          "tails": "a symbol, a value or a group", "tiles": "a value, a group or a symbol"}
_WITH_AXES = frozenset({"tiles", "inner", "tails", "split"})

"""Check entries by hand against the names of the function: what matches nothing, or contradicts another entry, changes nothing silently.

`FunctionNames` holds the names; `names_of` collects them from a traced function. Axes are brought to one spelling: of a symbol where the
dimension is one, else the number of the dimension, of another value as `w:0`.

    tiles={"out": {0: 64}}                before, where dimension 0 of `out` is the symbol t
    tiles["out"]["t"] = 64                after
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from pto_wsp.errors import PlanConflictError, PlanFitError, PlanNameError, PtoError, raise_all
from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Const, Scalar, SymbolRef
from pto_wsp.ir.tensor_function import Apply, Array, Put, TensorFunction
from pto_wsp.schedule.tiling_entries import STAY, STEPS, PlanEntry, match_of, place_text, says_nothing, value_text
from pto_wsp.schedule.tunable import Tunable
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A value of the function. `axes`: of each dimension the symbol, or its number as text; `extents`: the number, None for any other.

    `given`: a parameter or constant that the function does not write, which no kernel computes.
    """

    name: str
    axes: tuple[str, ...]
    extents: tuple[int | None, ...]
    given: bool = False


@dataclass(frozen=True, slots=True)
class FunctionNames:
    """All that entries may name. `groups`: the names that `with tt.group(…)` gives; `tunables`: the parameters with a choice of values.

    `kernels`: of a plan, each with the axes as entries of the plan name them.
    """

    values: tuple[NamedValue, ...]
    symbols: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    tunables: tuple[str, ...] = ()
    kernels: tuple[NamedValue, ...] = ()

    def with_plan(self, kernels: Iterable[tuple[str, Mapping[str, Scalar]]], arrays: Iterable[Array]) -> FunctionNames:
        """Return the names with those of a plan: its kernels with the extents of their axes, and the values that planning made."""
        known = {value.name for value in self.values}
        made = {array.name: _named(array, given=False) for array in arrays if array.name not in known}
        named = tuple(NamedValue(name, tuple(axes), tuple(map(_number, axes.values()))) for name, axes in kernels)
        return replace(self, values=(*self.values, *made.values()), kernels=named)

    @property
    def computed(self) -> tuple[str, ...]:
        """The values that the function computes."""
        return tuple(value.name for value in self.values if not value.given)


def names_of(function: TensorFunction, tunables: Iterable[str] = ()) -> FunctionNames:
    """Return the names of a traced function."""
    values = [_named(param.array, given=not param.written) for param in function.params]
    values.extend(_named(constant.array, given=True) for constant in function.constants)
    groups, loops = [], []
    for item in flow.walk(function.body):
        if isinstance(item, flow.Loop):
            loops.append(item.var.name)
            groups.append(item.note.group)
        if isinstance(item, flow.Do):
            values.extend(_named(array, given=False) for array in item.leaf.defines)
            if isinstance(item.leaf, Apply | Put):
                groups.append(item.leaf.group)
    return FunctionNames(tuple(values), tuple(symbol.name for symbol in function.symbols), tuple(dict.fromkeys(loops)),
                     tuple(name for name in dict.fromkeys(groups) if name), tuple(tunables))


def _named(array: Array, *, given: bool) -> NamedValue:
    axes = tuple(extent.name if isinstance(extent, SymbolRef) and extent not in array.shape[:k] else str(k)
                 for k, extent in enumerate(array.shape))
    return NamedValue(array.name, axes, tuple(map(_number, array.shape)), given)


def _number(extent: Scalar) -> int | None:
    return int(extent.value) if isinstance(extent, Const) else None


# -- checks ------------------------------------------------------------------------------------------------------------
def checked_entries(entries: Iterable[PlanEntry], names: FunctionNames) -> tuple[PlanEntry, ...]:
    """Return entries by hand with their axes in one spelling.

    Raises: J302 for a name that matches nothing, J303 for entries that contradict each other, J304 for a tile longer than its axis; one
    report of all.
    """
    given = tuple(entries)
    grouped = {entry.name: entry.first for entry in given if entry.key == "groups" and not says_nothing(entry.value)}
    problems: list[PtoError] = []
    made: dict[tuple[str, str, str], PlanEntry] = {}
    for entry in given:
        try:
            spelled = _checked(entry, names, grouped)
        except (PlanNameError, PlanConflictError, PlanFitError) as problem:
            problems.append(problem)
            continue
        other = made.get(spelled.place)
        if other is not None and other.value != spelled.value:
            problems.append(PlanConflictError(f"two entries are for {place_text(*spelled.place)}", here(),
                                              found=f"{value_text(other.value)} and {value_text(entry.value)}",
                                              help="the two axes are one: leave one entry out"))
        made[spelled.place] = spelled
    problems.extend(_contradictions(tuple(made.values())))
    raise_all(problems)
    return tuple(made.values())


def _checked(entry: PlanEntry, names: FunctionNames, grouped: Mapping[str, object]) -> PlanEntry:
    match entry.key:
        case "loops":
            _known(entry, entry.name, names.loops, "loop", "loops")
            return entry
        case "tunables":
            _known(entry, entry.name, names.tunables, "Tunable parameter", "Tunable parameters")
            return entry
        case "groups":
            fills = entry.first == (entry.name,) and any(kernel.name == entry.name for kernel in names.kernels)      # memory, no value
            for value in entry.first if isinstance(entry.first, tuple) and not fills else ():
                _known(entry, str(value), names.computed, "computed value", "computed values")
            return entry
        case _:
            pass
    values = _values_meant(entry, names, grouped)
    if entry.key in ("order", "flat") and isinstance(entry.first, tuple):
        return _with_axes(entry, values, names)
    if not entry.axis:
        return entry
    axis = _spelled(entry, entry.axis, values, names)
    spelled = replace(entry, axis=axis)
    _check_extent(spelled, values)
    return spelled


def _known(entry: PlanEntry, name: str, known: Iterable[str], one: str, many: str) -> None:
    """Check that a name by hand means something.

    Raises: J302 otherwise, with the nearest name.
    """
    names = tuple(dict.fromkeys(known))
    if any(match_of(name, real) >= 0 for real in names):
        return
    near = nearest(name, names)
    shown = ", ".join(names[:12]) + ", …" * (len(names) > 12)
    raise PlanNameError(f"{entry} matches nothing: the function has no {one} `{name}`", here(),
                        expected=f"one of its {many}: {shown}" if names else f"nothing: it has no {many}",
                        help=f"did you mean {near}?" if near else None)


def _values_meant(entry: PlanEntry, names: FunctionNames, grouped: Mapping[str, object]) -> tuple[NamedValue, ...]:
    """Return the values that an entry is about: those of a name, or those of a group; all of them for an entry of a symbol alone."""
    if not entry.name:
        if entry.axis and entry.axis not in names.symbols:
            near = nearest(entry.axis, (*names.symbols, *names.computed))
            advice = f"did you mean {near}?" if near else None
            if near == entry.axis:      # a value, and no axis of it
                axis = f'"{names.symbols[0]}"' if names.symbols else "0"
                advice = f'say which axis of the value: {entry.key}={{"{near}": {{{axis}: {entry.value}}}}}'
            elif near is None and entry.axis.isdigit():
                advice = f'a dimension is one of a value: {entry.key}={{"{next(iter(names.computed), "out")}": {{{entry.axis}: ...}}}}'
            raise PlanNameError(f"{entry} matches nothing: the function has no symbol `{entry.axis}`", here(), help=advice,
                                expected=f"one of its symbols: {', '.join(names.symbols)}" if names.symbols else
                                "a value with its axes: the function has no symbols")
        return names.values
    inside = grouped.get(entry.name)
    if isinstance(inside, tuple):
        return tuple(value for value in names.values if any(match_of(str(one), value.name) >= 0 for one in inside))
    if entry.name in names.groups:
        return tuple(value for value in names.values if not value.given)
    computed = [value for value in names.values if not value.given]
    meant = tuple(value for value in computed if match_of(entry.name, value.name) >= 0)
    meant = meant or tuple(kernel for kernel in names.kernels if kernel.name == entry.name)
    if not meant:
        _known(entry, entry.name, (*names.computed, *names.groups, *grouped), "value or group", "values and groups")
    return meant


def _spelled(entry: PlanEntry, axis: str, values: tuple[NamedValue, ...], names: FunctionNames) -> str:
    """Return the one spelling of an axis of an entry.

    Raises: J302 for an axis that the values do not have.
    """
    if entry.key == "inner" and axis in (*STEPS, STAY):
        return axis
    if any(kernel.name == entry.name and axis in kernel.axes for kernel in names.kernels):
        return axis                        # as the plan prints it
    if axis in names.symbols and (not entry.name or any(axis in value.axes for value in (*values, *names.values))):
        return axis
    other, colon, number = axis.rpartition(":")
    if colon:
        _known(entry, other, (value.name for value in names.values), "value", "values")
        meant = next((value for value in names.values if value.name == other), None) or \
            [value for value in names.values if match_of(other, value.name) >= 0][-1]
        found = _dimension(number, meant)
        if found is None:
            raise _no_axis(entry, axis, meant)
        return found if not found.isdigit() else f"{meant.name}:{found}"
    last = max(values, key=lambda value: len(value.axes), default=None)
    if last is None:
        return axis
    found = _dimension(axis, last)
    if found is None:
        raise _no_axis(entry, axis, last)
    differs = next((one for one in values if match_of(entry.name, one.name) >= 0 and _dimension(axis, one) not in (None, found)), None)
    if differs is not None and match_of(entry.name, last.name) >= 0:
        raise PlanConflictError(f"{entry} is about two axes", here(), found=f"axis {axis} is `{found}` of `{last.name}` and "
                                f"`{_dimension(axis, differs)}` of `{differs.name}`",
                                help=f"name the later value, `{max(last.name, differs.name)}`, or the axis by its symbol")
    return found


def _dimension(number: str, value: NamedValue) -> str | None:
    """Return the axis of a dimension that is given by its number, from the end if it is negative; None if there is none."""
    digits = number.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 3:
        return None
    at = int(number)
    return value.axes[at] if -len(value.axes) <= at < len(value.axes) else None


def _no_axis(entry: PlanEntry, axis: str, value: NamedValue) -> PlanNameError:
    has = [f"{k}" if name == str(k) else f"{k} (the symbol {name})" for k, name in enumerate(value.axes)]
    near = nearest(axis, [name for name in value.axes if not name.isdigit()])
    return PlanNameError(f"{entry} matches nothing: `{value.name}` has no axis `{axis}`", here(),
                         expected=f"a dimension of `{value.name}`: {', '.join(has)}" if has else f"nothing: `{value.name}` is one number",
                         help=f"did you mean {near}?" if near else None)


def _with_axes(entry: PlanEntry, values: tuple[NamedValue, ...], names: FunctionNames) -> PlanEntry:
    assert isinstance(entry.first, tuple)
    axes = tuple(_spelled(entry, str(axis), values, names) for axis in entry.first)
    if len(set(axes)) < len(axes):
        raise PlanConflictError(f"{place_text(*entry.place)} has an axis twice", here(), found=value_text(entry.value))
    return entry if isinstance(entry.value, Tunable) else replace(entry, value=axes)


def _check_extent(entry: PlanEntry, values: tuple[NamedValue, ...]) -> None:
    """Check that a tile, or the pieces of a sum, are not more than the axis has.

    Raises: J304 otherwise.
    """
    other, _, number = entry.axis.rpartition(":")
    meant = [value for value in values if not other or match_of(other, value.name) >= 0]
    if entry.key not in ("tiles", "split") or not number.isdigit():
        return
    extents = [value.extents[int(number)] for value in meant if int(number) < len(value.extents)]
    known = [extent for extent in extents if extent is not None] if None not in extents else []
    asked = entry.value.values if isinstance(entry.value, Tunable) else (entry.value,)
    largest = max((one for one in asked if isinstance(one, int)), default=0)
    if known and largest > max(known):
        raise PlanFitError(f"{place_text(*entry.place)} is longer than its axis", here(), expected=f"at most {max(known)}",
                           found=str(largest))


def _contradictions(entries: tuple[PlanEntry, ...]) -> Iterator[PlanConflictError]:
    """Yield what entries say against each other, or against themselves."""
    at: dict[str, str] = {}
    for entry in entries:
        if says_nothing(entry.value):
            continue
        if entry.key == "groups" and isinstance(entry.first, tuple):
            for value in entry.first:
                if at.setdefault(str(value), entry.name) != entry.name:
                    yield PlanConflictError(f"`{value}` is in two groups", here(), found=f"groups {at[str(value)]!r} and {entry.name!r}",
                                            help="a value is computed in one kernel; keep={...: \"again\"} computes it in several")
        if entry.key == "tails" and isinstance(entry.first, tuple):
            sizes = [int(size) for size in entry.first]
            if any(before <= after for before, after in pairwise(sizes)):
                yield PlanConflictError(f"{place_text(*entry.place)}: the sizes do not fall", here(), expected="such as 64, 16, 4, 1",
                                        found=value_text(entry.value))
            tile = next((one for one in entries if one.key == "tiles" and one.axis == entry.axis and
                         (not entry.name or match_of(one.name, entry.name) >= 0) and isinstance(one.first, int)), None)
            if tile is not None and not says_nothing(tile.value) and tile.first != sizes[0]:
                yield PlanConflictError(f"{place_text(*entry.place)} and {place_text(*tile.place)} contradict each other", here(),
                                        expected="tails that begin with the size of the tile", found=f"{sizes[0]} and {tile.first}")

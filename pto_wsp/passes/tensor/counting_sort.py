"""The counting sort by which a kernel computes `rows_of`: the lines of the sort, and the operations that the lines cost.

A first round over the table counts how many places hold each number, and so where the places of each number start; a second round puts the
places in order, with their ranks. A small table is copied on chip, and its order is stored at the end as one tile. A target whose buffers
have no parts at places from data looks through the whole table for each number instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor_function import ArrayView
from pto_wsp.passes.tensor.flatten import ExtentLimits
from pto_wsp.values import dataclass

_LINE = 32                   # bytes
_ROUTING_BYTES = 1 << 16     # of the memory for tiles, on every arch


def held_places(table: ArrayView, limits: ExtentLimits) -> tuple[int, ...]:
    """Return the most positions along each axis of a table whose numbers, places and ranks on-chip buffers hold for sure; () otherwise."""
    most = tuple([limits.of(extent) for extent in table.shape])
    if None in most:
        return ()
    held = tuple([max(1, extent) for extent in most if extent is not None])
    *rows, cols = held
    lines = rows[0] * -(-cols * table.dtype.nbytes // _LINE) if rows else cols      # a row fills whole lines
    return held if lines * _LINE + 2 * prod(held) * DType.I32.nbytes <= _ROUTING_BYTES else ()


def sort_counts(table: ArrayView, n: int, n_kept: int, n_rows: int, n_places: int, on_chip: bool) -> tuple[tuple[int, int], ...]:
    """Return pairs (columns, number of operations on tiles of so many columns) of the sort of numbers below `n`.

    `n_kept`: how many of the places and the ranks are stored. Where every place is an access of memory, the operations overlap with the
    accesses, but for the operations of one place a row.
    """
    wide, narrow = (4, 9 + n_kept) if n_kept else (2, 4)
    n_rounds, n_numbers = (n_places, n) if on_chip else (n_rows * (len(table.shape) > 1), 0)
    return (n, n_rounds * wide + 2 * n_numbers), (1, n_rounds * narrow + 5 * n_numbers)


@dataclass(frozen=True, slots=True)
class SortedTable:
    """A table of one or two axes with numbers below `n`, as the kernel's text names it.

    `shape`: the extents; `held`: the shape of the copy on chip, () for none; `size`: the number of places, "" if all those held are there.
    `order`, `starts`, `ranks`: the tensors for the results, None where nothing reads them.
    """

    name: str
    n: int
    shape: tuple[str, ...]
    held: tuple[int, ...]
    size: str
    order: str | None
    starts: str | None
    ranks: tuple[str | None, ...]


def sort_lines(table: SortedTable, fixed_parts: bool, dtype: str, name: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of the sort. `dtype`: the text of I32; `name`: makes a new name; `fixed_parts`: buffers have no parts from data."""
    rank, n, order, ranks = len(table.shape), table.n, table.order, table.ranks
    cols = table.shape[-1]
    row, col = name("row"), name("col")
    where = f"{col}, 0" if rank == 1 else f"{row}, {col}"
    number = col if rank == 1 else f"{row} * {cols} + {col}"
    first, chosen, at = name("first"), name("chosen"), name("at")

    def each(*inside: str) -> Iterator[str]:
        loops = (((row, table.shape[0]),) if rank == 2 else ()) + ((col, cols),)
        for depth, (var, stop) in enumerate(loops):
            yield f"{'    ' * depth}for {var} in pto.range({stop}):"
        yield from _indented(inside, rank)

    start = (f"{first} = pto.alloc((1, 1), {dtype}, init=0)", *_store(table.starts, first, "0"), f"for {at} in pto.range({n}):")
    end = _store(table.starts, first, f"{at} + 1")
    place_text = f"pto.full((1, 1), {number}, {dtype})"
    if fixed_parts:      # the numbers one after the other, so that no buffer has a part for each
        stored = (*_store(order, place_text, f"pto.item({first}, 0, 0)"), *(line for one in ranks for line in _store(one, first, number)))
        yield from start
        yield from _indented((*each(f"{chosen} = pto.item({table.name}, {where})", f"with pto.when({chosen} == {at}):",
                                    *_indented(stored), f"    {first}[:] = {first} + 1"), *end))
        return
    held, read = table.held, table.name
    if held:        # element by element, every access of memory would wait
        read = name("table")
        valid = f", valid=({table.shape[0]}, {'None' if rank == 1 else cols})" if table.size else ""
        yield f"{read} = pto.load({table.name}, (0, 0), shape=({held[0]}, {held[1] if rank == 2 else 1}){valid})"
    count = name("count")
    one = f"{count}[:, {chosen}:{chosen} + 1]"
    yield f"{count} = pto.alloc((1, {n}), {dtype}, init=0)"
    yield from each(f"{chosen} = pto.item({read}, {where})", f"{one} = {one} + 1")
    yield from start
    behind = name("behind")
    yield from _indented((f"{behind} = {first} + {count}[:, {at}:{at} + 1]", f"{count}[:, {at}:{at} + 1] = {first}",
                          f"{first}[:] = {behind}", *end))
    if order is None and not any(ranks):
        return
    taken, place = name("of"), name("place")
    one = f"{count}[:, {taken}:{taken} + 1]"
    kept: dict[str, str] = {}      # by the name of a parameter, the buffer that is stored to it at the end
    if held:
        kept = {target: name("places") for target in (order, *ranks) if target is not None}
        for buffer in kept.values():
            yield f"{buffer} = pto.alloc((1, {prod(held)}), {dtype}, init=0)"

    def puts(target: str | None, value: str, at: str) -> tuple[str, ...]:
        if target is None or not held:
            return _store(target, value, at)
        return (f"{kept[target]}[:, {at}:{at} + 1] = {value}",)

    yield from each(f"{taken} = pto.item({read}, {where})", f"{place} = pto.item({count}, 0, {taken})", *puts(order, place_text, place),
                    *(line for target in ranks for line in puts(target, one, number)), f"{one} = {one} + 1")
    for target, buffer in kept.items():
        there = f", (0, 0), valid=({table.size}, None)" if table.size else ""
        yield f"pto.store({target}, pto.reshape({buffer}, ({prod(held)}, 1)){there})"


def _store(target: str | None, value: str, place: str) -> tuple[str, ...]:
    return () if target is None else (f"pto.store({target}, {value}, ({place}, 0))",)


def _indented(lines: Iterable[str], depth: int = 1) -> Sequence[str]:
    return [f"{'    ' * depth}{line}" for line in lines]

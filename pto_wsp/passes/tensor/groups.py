"""Say whether statements may share a kernel, and along which axes its tasks are cut.

A kernel computes a tile of each of its results. So each axis that its tasks are cut along is *free* in all operations, and a dimension of
each result; every other axis is whole in a task: its extent needs a bound. One summed axis without a bound may be *walked* in steps: what
has the axis is computed step by step, and sums are carried from step to step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from operator import is_

from pto_wsp.errors import InternalError, UnboundedAxisError
from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Element, Scalar, SymbolRef, elements_of, print_scalar
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayView,
    Body,
    Item,
    Make,
    Put,
    Show,
    Statement,
    limit_of,
)
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Matmul, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.axes import ARANGE, ROWS_OF, TAKE, Axes, AxisRole, Crooked, Dim, defined_by, statements_of
from pto_wsp.passes.tensor.effects import group_name, is_move, made_by, vars_in
from pto_wsp.passes.tensor.flatten import ExtentLimits
from pto_wsp.passes.tensor.view_steps import dims_of_array
from pto_wsp.schedule.tiling_entries import match_of
from pto_wsp.values import dataclass

_NOBODY: frozenset[int] = frozenset()
_FEW = 4096     # elements of a value that each task may compute again


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """What a group keeps for the group that it grows to.

    `own`: Python ids of its statements; `shown`: the arrays that others use, by id; `puts`: what writes memory; `shared`: free axes that
    all results have, also those along which tasks would compute too much again.
    """

    own: frozenset[int] = frozenset()
    shown: Mapping[int, Array] = field(default_factory=dict)
    puts: tuple[Put, ...] = ()
    shared: tuple[Dim, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class KernelGroup:
    """The statements of one kernel. `local`: ids of the arrays of its tasks alone. `outputs`: values that others read.

    `tiled`: the axes that tasks are cut along, in the order of the dimensions of the largest result. `whole`: all others.
    `walked`: the axis that is walked in steps; None for none. `statements`: those of the items, in program order.
    """

    items: tuple[Item, ...]
    axes: Axes
    local: frozenset[int]
    outputs: tuple[Array, ...]
    tiled: tuple[Dim, ...]
    whole: tuple[Dim, ...]
    walked: Dim | None
    statements: tuple[Statement, ...]
    found: _Found


INDICES = tuple(dtype for dtype in DType if dtype.is_index)
_SHOWN = 64       # a print shows as many columns side by side


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What decides beside the statements: `users` of arrays (`effects.users_of`), the largest numbers that symbols may be, by name, and the
    values that each task may compute again, as the plan says. `whole_values`: kernels of the target have no parts of a buffer's columns.
    `looked_up`: the dtypes of elements that kernels of the target read by loop variables.
    """

    users: Mapping[int, frozenset[int]]
    bounds: Mapping[str, int]
    again: frozenset[str] = frozenset()
    whole_values: bool = False
    looked_up: tuple[DType, ...] = INDICES


def group_of(items: Sequence[Item], facts: GroupFacts, start: KernelGroup | None = None) -> KernelGroup | None:
    """Return the group that items form; None if they cannot share a kernel. `start`: the group of the first items, if known."""
    users, bounds = facts.users, facts.bounds
    before, inside, known, n_old = ((), frozenset[int](), _Found(), 0) if start is None else \
        (start.statements, start.local, start.found, len(start.items))
    added = tuple(statements_of(items[n_old:]))
    if any(map(is_move, added)):
        return None
    statements = (*before, *added)
    own = known.own.union(map(id, added))
    defined = {array.id: array for one in added for array in one.defines}
    shown = {one: array for one, array in (*known.shown.items(), *defined.items()) if not users.get(one, _NOBODY) <= own}
    made = {one.array.id for one in added if isinstance(one, Make)}
    inside = inside.union([one for one in defined if one not in made or one not in shown])
    puts = (*known.puts, *(one for one in added if isinstance(one, Put) and one.target.array.id not in inside))
    # a statement that stood alone, or reads what is written now, may be in the way
    checked = added if len(before) > 1 and len(puts) == len(known.puts) else statements
    if not made.isdisjoint(shown) or not _may_share(items[n_old:], checked, puts, inside, len(statements) == 1, facts.looked_up) \
            or (facts.whole_values and any(map(_takes_columns, _views_of(statements, inside)))):
        return None
    try:
        axes = Axes(statements, inside, None if start is None else start.axes)
    except Crooked:
        return None
    if axes.turned:
        return None
    outputs = tuple(shown.values())
    results = [*map(axes.of_array, outputs), *map(axes.of_written, puts),
               *(axes.of_view(statement.value) for statement in statements if isinstance(statement, Show))]
    free = {axis for axis in axes.every if not axes.roles(axis)}
    values = [array for one in statements if isinstance(one, Apply) for array in one.results] if facts.again or not results else []
    if not results:
        results = [axes.of_array(array) for array in values[-1:]]
    largest = max(results, key=len, default=())
    tiled = shared = tuple(dict.fromkeys(axis for axis in largest if axis is not None and axis in free
                                         and all(axis in result for result in results)))
    again = any(match_of(name, array.name) >= 0 for name in facts.again for array in values)
    same = start is not None and axes.extends and tiled == known.shared == start.tiled      # then the statements of `start` allow these
    for statement in (added if same else statements) if tiled else ():
        if isinstance(statement, Apply) and any([not set(axes.of_array(array)).issuperset(tiled) for array in statement.results]):
            along = _computed_again_along(axes, statement, tiled, outputs, again)
            tiled = tuple([axis for axis in tiled if axis not in along])
    if all(isinstance(statement, Show) and len(statement.value.shape) <= 2 for statement in statements):
        tiled = tuple(axis for axis in tiled if (bound_of(axes, axis, bounds) or _SHOWN + 1) > _SHOWN)      # a reader wants rows
    whole = tuple(axis for axis in axes.every if axis not in tiled)
    unbounded = [axis for axis in whole if bound_of(axes, axis, bounds) is None and not _is_rows_of(statements[0])]
    walked = None
    if unbounded:
        if len(unbounded) > 1 or not can_walk(axes, items, unbounded[0]):
            return None
        walked = unbounded[0]
    return KernelGroup(tuple(items), axes, inside, outputs, tiled, whole, walked, statements, _Found(own, shown, puts, shared))


def groups_of(body: Body, facts: GroupFacts, known: Mapping[str, KernelGroup],
              ) -> Iterator[tuple[str, KernelGroup | None, tuple[Item, ...]]]:
    """Yield the runs of a body as `_runs_of`, each with its group; None for what is no group's.

    `known`: groups by name, each taken for a run of the very same items.
    """
    for name, items in _runs_of(body, facts.users):
        group = known.get(name)
        if name and (group is None or len(group.items) != len(items) or not all(map(is_, group.items, items))):
            group = group_of(items, facts)
            assert group is not None, name
        yield name, group, items


def _runs_of(body: Body, users: Mapping[int, frozenset[int]]) -> list[tuple[str, tuple[Item, ...]]]:
    """Return the items of a body in runs: (group, its items with the `Make`s of its own state); ("", item) for an item of no group.

    `users`: see `effects.users_of`.
    """
    runs: list[tuple[str, list[Item]]] = []
    makes: list[Item] = []
    for item in (*body.items, None):
        name = "" if item is None else group_name(item)
        if item is not None and made_by(item) is not None:
            makes.append(item)
            continue
        same = bool(name) and bool(runs) and runs[-1][0] == name
        if not same:
            runs.append((name, []))
        for made in makes:
            if name:
                runs[-1][1].append(made)
            else:
                runs.insert(len(runs) - 1, ("", [made]))
        if item is not None:
            runs[-1][1].append(item)
        makes = []
    return [one for name, found in runs if found for one in _without_shared(name, found, users)]


def _without_shared(name: str, items: list[Item], users: Mapping[int, frozenset[int]]) -> list[tuple[str, tuple[Item, ...]]]:
    """Return the run of a group, behind the `Make`s of state that others use, too."""
    if not name:
        return [(name, tuple(items))]
    own = {id(statement) for statement in statements_of(items)}
    shared = [item for item in items if (made := made_by(item)) is not None and not users.get(made.id, _NOBODY) <= own]
    return [*(("", (item,)) for item in shared), (name, tuple(item for item in items if item not in shared))]


def bound_of(axes: Axes, axis: Dim, bounds: Mapping[str, int]) -> int | None:
    """Return the largest number that an axis may be; None where nothing says so."""
    extent = axes.extent(axis)
    return int(extent.value) if isinstance(extent, Const) else ExtentLimits(bounds).of(extent)


def unbounded_axis(item: Item, bounds: Mapping[str, int]) -> UnboundedAxisError:
    """Return the error of a statement that no kernel can compute: an axis that must be whole has no bound."""
    assert isinstance(item, flow.Do)
    statement = item.leaf
    axes = Axes((statement,), frozenset(defined_by((item,))))
    views = [*statement.reads, *(ArrayView(array) for array in statement.defines)]
    for view in views:
        for axis, extent in zip(axes.of_view(view), view.shape, strict=True):
            if axis is not None and axes.roles(axis) and bound_of(axes, axis, bounds) is None:
                name = print_scalar(extent)
                done = f"`{statement.op}`" if isinstance(statement, Apply) else "this"
                return UnboundedAxisError(
                    f"{done} needs the whole of an axis at once, and nothing bounds the axis", statement.span,
                    expected="an extent that is a number, or a symbol with a bound", found=f"{name}, of `{view.array.name}`",
                    help=f"tt.assume({name} <= 4096), checked at each call" if isinstance(extent, SymbolRef)
                    else "cut the axis into blocks of a known size, x[j:j + 128]")
    raise InternalError(f"no kernel can compute {statement}")


def can_walk(axes: Axes, items: Iterable[Item], axis: Dim) -> bool:
    """Tell whether a summed axis may be walked in steps: nothing that has the axis waits for the sum, and all sums can be carried."""
    if AxisRole.WHOLE in axes.roles(axis) or AxisRole.SUMMED not in axes.roles(axis):
        return False
    after: set[int] = set()
    for item in items:
        if not isinstance(item, flow.Do):
            return False
        statement = item.leaf
        if isinstance(statement, Make | Show):
            return False
        reads = statement.reads
        has_axis = any(axis in axes.of_view(view) for view in reads)
        result_has = isinstance(statement, Apply) and any(axis in axes.of_array(array) for array in statement.results)
        if isinstance(statement, Put) and has_axis:
            return False
        if has_axis or result_has:
            if any(view.array.id in after for view in reads):
                return False
            if not result_has:
                if not isinstance(statement, Apply) or not isinstance(TABLE.get(statement.op), RowReduce | ColReduce | Matmul):
                    return False
                after.update(array.id for array in statement.results)
        elif any(view.array.id in after for view in reads):
            after.update(array.id for array in statement.defines)
    return True


def _may_share(items: Sequence[Item], statements: Sequence[Statement], puts: Sequence[Put], inside: frozenset[int], alone: bool,
               looked_up: Collection[DType]) -> bool:
    """Tell whether memory is read and written in one way only, and nothing stands there that needs a task of its own.

    `puts`: of all statements of the group, those that write memory.
    """
    written: dict[int, ArrayView] = {}
    for put in puts:
        scattered = put.table is not None and put.add and not alone
        if scattered or written.setdefault(put.target.array.id, put.target) != put.target:
            return False
    through = {put.target.array.id for put in puts if put.table is not None}
    for statement in statements:
        added = None
        if isinstance(statement, Put):
            if statement.table is not None and statement.target.array.id in inside:
                return False                    # rows of memory are written through a table, not parts of a buffer
            added = statement.target if statement.add else None      # read where it is written, in one step
        elif not alone and _is_rows_of(statement):
            return False
        if written and any([view.array.id in through or view != written.get(view.array.id, view)
                            for view in statement.reads if view is not added]):
            return False
        if statement.elements and statement.elements & (written.keys() | inside):
            return False
    return all(may_be_inside(item, inside, looked_up) for item in items if not isinstance(item, flow.Do))


def _views_of(statements: Sequence[Statement], inside: frozenset[int]) -> Iterator[ArrayView]:
    return (view for statement in statements for view in statement.views if view.array.id in inside)


def _takes_columns(view: ArrayView) -> bool:
    """Tell whether a view takes a part of the last axis of its array, or may do so: a reshape, which no group reads."""
    return view.array.rank - 1 in dims_of_array(view)[1]


def _is_rows_of(statement: Statement) -> bool:
    """Tell whether a statement is `rows_of`, which reads its whole table in one task, however long the table is."""
    return isinstance(statement, Apply) and statement.op == ROWS_OF


def may_be_inside(item: Item, inside: frozenset[int], looked_up: Collection[DType]) -> bool:
    """Tell whether a loop or choice may be part of a kernel: it writes the kernel's own state, and looks up what kernels can look up."""
    for statement in statements_of((item,)):
        if _is_rows_of(statement) or (isinstance(statement, Put) and statement.target.array.id not in inside):
            return False
    return element_of_iteration(item, inside, looked_up) is None


def element_of_iteration(item: Item, inside: Collection[int], looked_up: Collection[DType]) -> Element | None:
    """Return an element that an item reads by the variable of a loop in the item, and that a kernel cannot look up; None if there is none.

    A kernel looks up whole numbers of the dtypes `looked_up`, as positions in memory: `pages[table[j]]`. `inside`: ids of the arrays that
    the kernel computes.
    """
    inner = list(flow.walk(item))
    loops = {var for one in inner for var in flow.bound_vars(one)}
    for one in inner:
        elements = list(elements_of(scalar for evaluation in flow.evaluations(one) for scalar in evaluation.scalars))
        if isinstance(one, flow.Do) and one.leaf.elements:
            elements += elements_of(_no_places(one.leaf, inside))
            elements += (element for element in elements_of(one.leaf.scalars) if element.tensor.dtype not in looked_up)
        for element in elements:
            if vars_in(element.index) & loops:
                return element
    return None


def looks_up(item: Item) -> bool:
    """Tell whether an item reads an element by the variable of a loop in the item."""
    return element_of_iteration(item, (), ()) is not None


def _no_places(statement: Statement, inside: Collection[int]) -> Iterator[Scalar]:
    """Yield the scalars of a statement that are no positions: numbers to compute with, places in values, and extents without a limit."""
    by_table = isinstance(statement, Apply) and statement.op == TAKE
    for view in statement.views:
        if by_table or view.array.id in inside:
            yield from view.scalars
    operands = statement.operands if isinstance(statement, Apply) else (statement.value,) if isinstance(statement, Put) else ()
    if not (isinstance(statement, Apply) and statement.op == ARANGE):
        yield from (one for one in operands if not isinstance(one, ArrayView))
    for shape in (*(view.shape for view in statement.views), *(array.shape for array in statement.defines)):
        yield from (extent for extent in shape if limit_of(extent) is None)


def _computed_again_along(axes: Axes, statement: Apply, tiled: Sequence[Dim], outputs: Sequence[Array], allowed: bool) -> set[Dim]:
    """Return the axes along which tasks would compute a value again that is not so small that each may; `allowed`: the plan says so."""
    again: set[Dim] = set()
    entry = TABLE.get(statement.op)
    for array in statement.results:
        missing = set(tiled) - set(axes.of_array(array))
        if not missing:
            continue
        sizes = [limit_of(extent) for extent, axis in zip(array.shape, axes.of_array(array), strict=True) if axis not in tiled]
        elements = 1
        for size in sizes:
            elements *= size if size is not None else _FEW + 1
        cheap = entry is None or isinstance(entry, Elementwise | Convert | Expand) or all(extent == Const(1) for extent in array.shape)
        if array in outputs or (not allowed and (elements > _FEW or not cheap)):
            again |= missing
    return again

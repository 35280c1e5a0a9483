"""Cards of the tensor level: a function on whole tensors, the plan that says how it is cut, and what two plans say differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Scalar, print_scalar
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Body, Make, Put, Show, Statement, TensorFunction
from pto_wsp.ir.tensor_function_text import print_array_view
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.axes import Axes, AxisRole, Crooked
from pto_wsp.schedule.tiling import PLAN_HEAD, TilePlan, TilePlanDifference, change_text, cycles_text, group_rows, other_rows
from pto_wsp.view.card import BarPart, Card, LabelledValue, Preformatted, Segment, TablePart, ValuesPart
from pto_wsp.wording import counted, shortened

_MOST_ROWS, _MOST_TEXT, _MOST_CODE = 80, 120, 2000
_INDENT = "\u00a0\u00a0"


# -- plans -------------------------------------------------------------------------------------------------------------
def plan_card(plan: TilePlan) -> Card:
    """Return the card of a plan: where the cycles go, a row a group with the reason of its tiles, then the other entries."""
    groups = list(group_rows(plan))
    others = list(other_rows(plan))
    parts: list[Any] = []
    known = [(cost.name, cost.cycles) for cost in plan.costs if cost.cycles]
    total = sum(cycles for _, cycles in known)
    if len(known) > 1:
        segments = tuple(Segment(label=name, amount=cycles, tone="work") for name, cycles in known)
        parts.append(BarPart(title="Cycles by group", unit="cycles", segments=segments))
    if groups:
        tasks = {cost.name: cost.n_tasks for cost in plan.costs}
        rows = tuple((*map(_short, cells), f"{tasks[cells[0]]:,}" if tasks.get(cells[0]) else "", _short(reason))
                     for cells, reason in groups[:_MOST_ROWS])
        head = (*PLAN_HEAD[:-1], "cycles", "tasks", "why")
        parts.append(_filled_columns("Groups, one kernel each", head, rows, (6, 7), max(0, len(groups) - _MOST_ROWS)))
    if others:
        parts.append(TablePart(title="Loops, tails and others", head=("key", "says", "why"),
                               rows=tuple((key, _short(words), _short(why)) for key, words, why in others[:_MOST_ROWS]),
                               more=max(0, len(others) - _MOST_ROWS)))
    if plan.arguments:
        code = ",\n    ".join(plan.arguments)
        parts.append(Preformatted(title="By hand", text=f"plan.but(\n    {code})"[:_MOST_CODE]))
    sizes = ", ".join(f"{name} = symbol, planned for {number:,}" for name, number in plan.sizes)
    return Card(title=plan.function, subtitle=f"Tile plan · {plan.arch}, target {plan.target}", state=sizes,
                sentence=_verdict(plan, known, total), parts=tuple(parts),
                foot="plan.but(tiles={...}) sets entries by hand; plan.diff(other) compares; plan.save(path) keeps it")


def _filled_columns(title: str, head: tuple[str, ...], rows: tuple[tuple[str, ...], ...], right: tuple[int, ...], more: int) -> TablePart:
    """Return a table without the columns in which no row has anything."""
    kept = [at for at in range(len(head)) if not rows or any(row[at] for row in rows)]
    return TablePart(title=title, head=tuple(head[at] for at in kept), rows=tuple(tuple(row[at] for at in kept) for row in rows),
                     right=tuple(new for new, at in enumerate(kept) if at in right), more=more)


def _verdict(plan: TilePlan, known: list[tuple[str, int]], total: int) -> str:
    by_hand = sum(entry.by_hand for entry in plan.entries)
    said = f"{counted(len(plan.group_names), 'group')}, {counted(by_hand, 'entry', 'entries')} by hand"
    if not total:
        return f"{said}."
    name, most = max(known, key=lambda one: one[1])
    share = f", {100 * most / total:.0f}% of them in {name}" if len(known) > 1 else ""
    return f"{said}; about {total:,} cycles{share}."


def plan_difference_card(found: TilePlanDifference) -> Card:
    """Return the card of the differences between two plans, entry by entry, and the costs of the groups."""
    rows = tuple((where, _short(mine) or "not said", _short(theirs) or "not said") for where, mine, theirs in found.rows)
    parts: list[Any] = []
    if rows:
        parts.append(TablePart(title="Entries", head=("entry", "this", "other"), rows=rows[:_MOST_ROWS],
                               more=max(0, len(rows) - _MOST_ROWS)))
    if found.costs:
        costs: list[tuple[str, ...]] = [(name, cycles_text(mine), cycles_text(theirs), change_text(mine, theirs).strip(" ()"))
                                        for name, mine, theirs in found.costs]
        if found.totals is not None:
            costs.append(("together", *map(cycles_text, found.totals), change_text(*found.totals).strip(" ()")))
        parts.append(TablePart(title="Cost", head=("group", "this", "other", "change"), rows=tuple(costs), right=(1, 2, 3)))
    sentence = f"{counted(len(rows), 'entry differs', 'entries differ')}." if rows else "They say the same."
    if rows and found.totals is not None and found.totals[0] != found.totals[1]:
        sentence = f"{sentence[:-1]}; this plan costs {cycles_text(found.totals[0])}{change_text(*found.totals)}."
    return Card(title=f"Two plans of {found.mine.function}", sentence=sentence, parts=tuple(parts))


# -- functions ---------------------------------------------------------------------------------------------------------
def function_card(function: TensorFunction) -> Card:
    """Return the card of a traced function: a row a statement, with the shape of its result, the roles of its axes, and its group."""
    rows = list(_rows(function.body, 0))
    params = tuple(LabelledValue(label=param.path or param.array.name, value=_type(param.array), note="written" if param.written else "")
                   for param in function.params)
    groups = tuple(dict.fromkeys(row[-1] for row in rows if row[-1]))
    head = ("makes", "shape", "of", "axes", "group")
    shown = tuple(tuple(map(_short, row)) for row in rows[:_MOST_ROWS])
    parts: list[Any] = [ValuesPart(values=params[:_MOST_ROWS])] if params else []
    parts.append(_filled_columns("Statements", head, shown, (), max(0, len(rows) - _MOST_ROWS)))
    n = sum(1 for _ in flow.leaves(function.body))
    named = f" in {counted(len(groups), 'group')}: {', '.join(groups[:6])}" if groups else ", not yet in groups"
    sentence = counted(n, "statement") + named
    returned = ", ".join(f"{print_array_view(view)} {_shape(view.shape)} {view.dtype}" for view in function.results)
    return Card(title=function.name, subtitle="Function on tensors", state=", ".join(symbol.name for symbol in function.symbols),
                sentence=f"{sentence}.", parts=tuple(parts), foot=f"returns {returned}" if returned else "returns nothing")


def _rows(body: Body, depth: int) -> Iterator[tuple[str, str, str, str, str]]:
    indent = _INDENT * depth
    for item in body.items:
        match item:
            case flow.Do(leaf):
                makes, shape, source, group = _cells(leaf)
                yield indent + makes, shape, source, roles_text(leaf), group
            case flow.Loop(var, start, stop, step, ordered, inside, note):
                bounds = ", ".join(map(print_scalar, (start, stop, step)))
                yield f"{indent}for {var.name}", "", f"{'loop' if ordered else 'each'}({bounds})", "", note.group
                yield from _rows(inside, depth + 1)
            case flow.Choice(branches, otherwise):
                for branch in branches:
                    yield f"{indent}when", "", print_scalar(branch.condition), "", branch.note.group
                    yield from _rows(branch.body, depth + 1)
                if otherwise.items:
                    yield f"{indent}otherwise", "", "", "", ""
                    yield from _rows(otherwise, depth + 1)
            case flow.Sequence():
                yield from _rows(item, depth)
            case _:
                yield indent + type(item).__name__, "", "", "", ""


def _cells(statement: Statement) -> tuple[str, str, str, str]:
    """Return the result of a statement, its shape, its formula, and its group."""
    match statement:
        case Apply(op, operands, results, attrs, group):
            given = [print_array_view(one) if isinstance(one, ArrayView) else print_scalar(one) for one in operands]
            given += [f"{name}={print_scalar(value) if isinstance(value, Scalar) else value}" for name, value in attrs]
            return ", ".join(one.name for one in results), ", ".join(map(_type, results)), f"{op}({', '.join(given)})", group
        case Make(array, fill):
            return array.name, _type(array), "undefined" if fill is None else f"all {fill}", ""
        case Put(target, value, table, add, group):
            into = print_array_view(target) + ("" if table is None else f" at {print_array_view(table)}")
            source = print_array_view(value) if isinstance(value, ArrayView) else print_scalar(value)
            return into, f"{_shape(target.shape)} {target.dtype}", f"{'+' if add else ''}= {source}", group
        case Show(label, value):
            return "", "", f"print {label!r}, {print_array_view(value)}", ""


def roles_text(statement: Statement) -> str:
    """Return the roles of an operation's axes: `t free, 4096 summed`; "" where a view hides them."""
    if not isinstance(statement, Apply) or statement.op not in TABLE:
        return ""
    try:
        axes = Axes((statement,), frozenset(array.id for array in statement.defines))
        found = [*(axis for view in statement.reads for axis in axes.of_view(view)),
                 *(axis for array in statement.results for axis in axes.of_array(array))]
        said = []
        for axis in dict.fromkeys(axis for axis in found if axis is not None):
            roles = axes.roles(axis)
            role = AxisRole.WHOLE if AxisRole.WHOLE in roles else AxisRole.SUMMED if AxisRole.SUMMED in roles else AxisRole.FREE
            said.append(f"{print_scalar(axes.extent(axis))} {role.value}")
        return ", ".join(said)
    except Crooked:
        return ""


def _type(array: Array) -> str:
    return f"{_shape(array.shape)} {array.dtype}"


def _shape(extents: tuple[Scalar, ...]) -> str:
    return f"[{', '.join(map(print_scalar, extents))}]"


def _short(text: str) -> str:
    return shortened(text, _MOST_TEXT)

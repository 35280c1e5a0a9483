"""Divide a function into kernels: statements of one kernel get one group name and stand side by side.

    mean, root, normed, out               before: one statement after the other
    normed: mean, root, normed            after: two groups; `normed` is whole before `out` begins
    out: out

In program order, each statement joins the group that computes what it reads, if the two may share a kernel (`groups.group_of`) and a
small tile of everything fits; else it begins a group. A loop whose state is carried in a kernel's buffers joins with its state; every other
loop is one of tasks, and its body is divided by itself. The plan's `groups` and `loops` are followed, or refused with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from pto_wsp.errors import InternalError, PlanConflictError
from pto_wsp.ir import flow
from pto_wsp.ir.kernel import MAX_ARGS
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import Const, elements_in, print_scalar
from pto_wsp.ir.tensor_function import (
    Apply,
    ArrayView,
    Body,
    BodyNote,
    Item,
    Make,
    Put,
    Show,
    Statement,
    TensorFunction,
    limit_of,
)
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.again import again_in, computed_again
from pto_wsp.passes.tensor.axes import Dim, statements_of
from pto_wsp.passes.tensor.capacity import HOST_BYTES, smallest_fit
from pto_wsp.passes.tensor.copied_reshapes import with_copied_reshapes
from pto_wsp.passes.tensor.effects import Effects, effects_of, is_move, made_by, users_of, users_of_state
from pto_wsp.passes.tensor.group_costs import FILL, fits, said_of
from pto_wsp.passes.tensor.groups import (
    INDICES,
    GroupFacts,
    KernelGroup,
    element_of_iteration,
    group_of,
    unbounded_axis,
)
from pto_wsp.passes.tensor.named_groups import NamedGroups, check_followed, group_divided, groups_in
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.passes.tensor.rows_one_by_one import with_rows_one_by_one
from pto_wsp.passes.tensor.slice_tiles import with_tile_cuts
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.source import here
from pto_wsp.values import dataclass


def partition(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function with its statements in groups, and the plan with `groups` and `loops`."""
    function = replace(planned.function, body=with_rows_one_by_one(planned.function, context.reads_entries))
    function = replace(function, body=with_copied_reshapes(function))
    function = replace(function, body=with_tile_cuts(flow.rewrite_leaves(function.body, _with_two_views)))
    work = _Partition(function, planned.plan, context)
    body = work.divided(function.body)
    saved = groups_in(planned.plan, by_hand=False)
    if saved and not again_in(planned.plan) and not saved.items() <= work.made.items():     # chosen otherwise when the plan was saved
        work = _Partition(function, planned.plan, context, follow=True)
        body = work.divided(function.body)
        check_followed(saved, work.made, function)
    work.check_asked()
    if again_in(planned.plan):
        function = replace(function, body=computed_again(replace(function, body=body), planned.plan))
        work = _Partition(function, planned.plan, context, marked=True)
        body = work.divided(function.body)
    return PlannedFunction(replace(function, body=body), work.plan, work.groups)


def group_facts(function: TensorFunction, plan: TilePlan) -> GroupFacts:
    """Return the facts that decide about the groups of a function."""
    return GroupFacts(users_of(function), function.bounds, again_in(plan))


def _with_two_views(statement: Statement) -> Statement:
    """Return a product of a tensor by itself as a product of two views: tasks cut rows of the first view, columns of the second."""
    match statement:
        case Apply(operands=(ArrayView() as one, ArrayView() as other)) if one == other and isinstance(TABLE.get(statement.op), Matmul):
            again = one.then(Permute(tuple(range(len(one.shape)))))
            return replace(statement, operands=(one, again))
        case _:
            return statement


# -- groups ------------------------------------------------------------------------------------------------------------
@dataclass(slots=True, eq=False)
class _Cluster:
    """Neighbouring items: the items of one group, or a single loop or choice of tasks (`group` None)."""

    items: list[Item]
    effects: Effects
    group: KernelGroup | None
    asked: str = ""      # the name that the user gave

    def take(self, items: Iterable[Item], effects: Effects, group: KernelGroup) -> None:
        self.items.extend(items)
        self.effects |= effects
        self.group = group


class _Partition:
    def __init__(self, function: TensorFunction, plan: TilePlan, context: TensorContext, marked: bool = False,
                 follow: bool = False) -> None:
        self.plan = plan
        self.made: dict[str, tuple[str, ...]] = {}
        self.groups: dict[str, KernelGroup] = {}
        self._context = context
        self._users = users_of(function)
        self._bounds = function.bounds
        self._facts = GroupFacts(self._users, self._bounds, again_in(plan), not context.has_parts,
                                 tuple(dtype for dtype in INDICES if context.reads_entries(dtype)))
        self._names = Names()
        self._obstacle: str | Sequence[Item] | None = None      # why state is in no kernel: in words, or what does not form one
        self._effects: dict[int, tuple[Item, Effects]] = {}     # by Python id, of items that are kept alive beside
        # statements that are marked have their groups
        self._named = NamedGroups(function, {} if marked else groups_in(plan, by_hand=True),
                                  groups_in(plan, by_hand=False) if follow else {})
        self._by_hand = replace(plan, entries=tuple(entry for entry in plan.entries if entry.by_hand))
        self._kernels: dict[str, list[tuple[str, Sequence[Item]]]] = {}      # of each group by hand: names and items
        self._apart: dict[str, Sequence[Item]] = {}      # of the body at hand: statements that could not join their group at once

    def divided(self, body: Body) -> Body:
        """Return a body with groups; those of the bodies inside included."""
        parts: list[_Cluster] = []
        waiting: dict[int, Item] = {}          # state that is made where it is used first
        items = list(body.items)
        done: set[int] = set()
        outside, self._apart = self._apart, {}
        for position, item in enumerate(items):
            if position in done:
                continue
            made = made_by(item)
            if made is not None:
                waiting[made.id] = item
                continue
            if isinstance(item, flow.Sequence):
                raise InternalError("a sequence stands directly in a sequence of a tensor function")
            taken = self._with_state(parts, waiting, items, position, done)
            moves = isinstance(item, flow.Do) and is_move(item.leaf)
            if moves:
                self._choose_algorithm(item)
            if taken is None and isinstance(item, flow.Do) and not moves:
                self._place(parts, waiting, [item])
            elif taken is None:
                effects = self._effects_of((item,))
                for one in [one for one in waiting if one in effects.reads | effects.writes]:
                    self._stand_alone(parts, waiting.pop(one))
                inside = flow.with_bodies(item, self.divided)
                parts.append(_Cluster([inside], effects, None))
            else:
                done |= taken
        for unused in waiting.values():
            self._stand_alone(parts, unused)
        for asked, apart in self._apart.items():
            if sum(part.asked == asked for part in parts) > 1:      # what came later did not join them either
                raise group_divided(asked, apart)
        self._apart = outside
        return replace(body, items=tuple(item for part in parts for item in self._marked(part)))

    def check_asked(self) -> None:
        """Check that some kernel of each group by hand computes all the values of the group that are computed at all.

        Raises: J303 for a group that is divided. A name that stands for several values, as those of a function that is called twice, may
        have a kernel for each call.
        """
        for asked, kernels in self._kernels.items():
            listed = [{value for value in self._named.asked[asked] if any(value in (one, one.partition("#")[0]) for one in self.made[name])}
                      for name, _ in kernels]
            if set().union(*listed) not in listed:
                first, last = (list(self.made).index(name) for name, _ in (kernels[0], kernels[-1]))
                between = [value for values in list(self.made.values())[first + 1:last] for value in values]
                raise group_divided(asked, kernels[-1][1], f"name {', '.join(between[:8])} as well, which stand between, or ")

    def _choose_algorithm(self, item: Item) -> None:
        """Write into the plan by which algorithm a collective moves, where the plan says nothing."""
        (move,) = flow.leaves(item)
        assert isinstance(move, Apply)
        what = dict(move.attrs)["move"]
        if what == "halo":      # from neighbours alone
            return
        algorithm, reason = _ALGORITHMS.get(what, ("ring", "each link carries one piece at a time"))
        self.plan = self.plan.with_choice("collectives", move.results[0].name, "", algorithm, reason)

    def _effects_of(self, items: Iterable[Item]) -> Effects:
        """Return the effects of items, each of which is looked at once."""
        found: Effects | None = None
        for item in items:
            known = self._effects.get(id(item))
            if known is None:
                known = self._effects[id(item)] = item, effects_of(item)
            found = known[1] if found is None else found | known[1]
        return found or Effects()

    def _stand_alone(self, parts: list[_Cluster], item: Item) -> None:
        """Put a `Make` in front of everything that uses the state, where no kernel alone uses it; a kernel of its own fills the memory."""
        assert isinstance(item, flow.Do) and isinstance(item.leaf, Make)
        made = item.leaf
        bare: Item = flow.Do(replace(made, fill=None))
        parts.append(_Cluster([bare], effects_of(bare), None))
        if made.fill is not None:
            fill = Put(ArrayView(made.array), Const(made.fill), span=made.span)
            self._users[made.array.id] = self._users.get(made.array.id, frozenset()) | {id(fill)}
            group = group_of([flow.Do(fill)], self._facts)
            assert group is not None
            cluster = _Cluster([], Effects(), None, f"{made.array.name}{FILL}")
            cluster.take(group.items, effects_of(group.items[0]), group)
            parts.append(cluster)

    def _place(self, parts: list[_Cluster], waiting: dict[int, Item], items: list[Item]) -> bool:
        """Put statements into the last cluster that they must follow, or behind all clusters; return whether they form a group."""
        effects = self._effects_of(items)
        makes = [made for one, made in waiting.items() if one in effects.reads | effects.writes | effects.defines]
        memory = [made for made in makes if 0 in self._users.get(_id_of(made), frozenset()) and _may_stand_first(made)]
        makes = [made for made in makes if made not in memory]      # a result is memory, whatever kernel writes it
        for made in memory:
            parts.insert(0, _Cluster([waiting.pop(_id_of(made))], effects_of(made), None))
        asked = next((name for item in items if (name := self._named.name_of(item))), "")
        for joined in _producers(parts, effects, asked):
            together = [part for index, part in enumerate(parts) if index in joined]
            both = [*(one for part in together for one in part.items), *makes, *items]
            group = group_of(both, self._facts, together[0].group)
            if group is None and asked and all(part.asked == asked for part in together):
                self._apart.setdefault(asked, items)
            if group is None or any(part.asked != asked for part in together):
                continue
            if asked or self._worth([*(part.group for part in together if part.group is not None)], items, group):
                for made in makes:
                    waiting.pop(_id_of(made))
                last = together[-1]
                last.items = [one for part in together for one in part.items]
                last.take((*makes, *items), self._effects_of(makes) | effects, group)
                for part in together[:-1]:
                    last.effects |= part.effects
                    parts.remove(part)
                return True
        group = group_of([*makes, *items], self._facts)
        if group is not None and len(items) > 1 and not self._fits(group):
            return False
        if group is None and len(items) == 1 and isinstance(items[0], flow.Do):
            for made in makes:
                self._stand_alone(parts, waiting.pop(_id_of(made)))
            makes = []
            group = group_of(items, self._facts)
            if group is None:
                raise unbounded_axis(items[0], self._bounds)
        if group is None:
            return False
        for made in makes:
            waiting.pop(_id_of(made))
        part = _Cluster([], Effects(), None, asked)
        part.take((*makes, *items), self._effects_of(makes) | effects, group)
        parts.append(part)
        return True

    def _worth(self, before: Sequence[KernelGroup], items: Sequence[Item], after: KernelGroup) -> bool:
        """Tell whether joining keeps tasks small and many: a small tile of everything fits, and no axis that was cut is whole now."""
        if any(one.walked is not None and after.walked is None for one in before) or not self._fits(after):
            return False
        if self._context.fineness_of(after.statements) or _has_many_tiles(after):
            return False
        if not all(self._small(one, after, _axes_in(after, one) if k else {axis: after.axes.axis(axis) for axis in one.tiled})
                   for k, one in enumerate(before)):      # `after` has the dimensions of the first
            return False
        if all(isinstance(item, flow.Do) and isinstance(item.leaf, Apply) for item in items) and (after.tiled or after.walked is not None):
            made = {axis for one in statements_of(items) for array in one.defines for axis in after.axes.of_array(array)}
            uncut = {axis for axis in made if axis is not None} - {*after.tiled, after.walked}
            if not uncut or (not self._by_hand.entries and self._most_elements(after, uncut) <= _WHOLE):
                return True       # whatever is cut where they stand alone is cut here, or short
        alone = group_of(items, self._facts)
        return alone is None or self._small(alone, after, _axes_in(after, alone))

    def _fits(self, group: KernelGroup) -> bool:
        if self._context.arch.neutral or self._context.arch.cores.shared:
            return smallest_fit(group, self._bounds, HOST_BYTES)
        return fits("", group, self._by_hand, self._context)

    def _small(self, before: KernelGroup, after: KernelGroup, became: Mapping[Dim, Dim]) -> bool:
        """Tell whether the axes that were cut before and are whole after have few elements; one that is walked now does not count.

        `became`: the axes of `before` mapped to those of `after`.
        """
        now = {became[axis] for axis in before.tiled if axis in became} - {*after.tiled, after.walked}
        asked = [said_of(self.plan, "tiles", "", before, axis, counts=False) for axis in before.tiled if now and became.get(axis) in now]
        if any(said is not None and said.by_hand for said in asked):
            return False              # a person has tiles of an axis that would be whole
        if after.tiled or not before.tiled or after.walked is not None:
            return self._most_elements(after, now) <= _WHOLE
        return self._most_elements(after, now) <= _SHORT and self._most_elements(before, (*before.tiled, *before.whole)) <= _WHOLE

    def _most_elements(self, group: KernelGroup, along: Iterable[Dim]) -> int:
        """Return how many elements there are along axes of a group, at most; a large number where nothing bounds an axis.

        Blocks that may be short count only where kernels of the target may take a part of a buffer.
        """
        extents = [group.axes.extent(axis) for axis in along]
        return prod((limit_of(extent) if self._context.has_parts or isinstance(extent, Const) else None) or 1 << 30 for extent in extents)

    def _with_state(self, parts: list[_Cluster], waiting: dict[int, Item], items: list[Item], position: int,
                    done: set[int]) -> set[int] | None:
        """Put an item, the state that the item writes, and all users of the state into one kernel; None if they do not form a kernel.

        Returns the positions of the later items placed with the item. A loop stays inside a kernel only together with the state it carries;
        statements, branches and loops that use the state before or after the loop, and what these wait for, are in the kernel, too.
        """
        item = items[position]
        if not self._may_be_in_kernel(item):
            if isinstance(item, flow.Loop) and item.var.name in self._context.of_tasks:
                self.plan = self.plan.with_choice("loops", item.var.name, "", "tasks", self._why_tasks(item))
            return None
        taken = self._taken_along(parts, waiting, items, position, done)
        for one in (item, *(items[at] for at in sorted(taken or ()))):
            if isinstance(one, flow.Loop):
                inside, reason = ("tasks", self._why_tasks(one)) if taken is None else ("kernel", "its state fits into a task")
                self.plan = self.plan.with_choice("loops", one.var.name, "", inside, reason)
        return taken or (taken if isinstance(item, flow.Loop) else None)

    def _why_tasks(self, item: Item) -> str:
        """Return why the iterations of a loop are tasks. Raises: J303 for a loop that the plan wants in a kernel."""
        assert isinstance(item, flow.Loop)
        effects = self._effects_of((item,))
        element = element_of_iteration(item, effects.writes | effects.defines, self._facts.looked_up)
        reason, places = "its state cannot stay in one task", [("the loop", item.span)]
        if element is not None:
            reason = f"a kernel cannot look up {print_scalar(element)} in each iteration"
        elif item.var.name in self._context.of_tasks:
            reason = "what it looks up has no form as tiles of one kernel"
        elif isinstance(self._obstacle, str):
            reason += f": {self._obstacle}"
        elif self._obstacle is not None and (blocking := self._blocking(self._obstacle)) is not None:
            places.append(("the statement", blocking.span))
            what = next((array.name for array in blocking.defines), None) or next(view.array.name for view in blocking.views)
            reason += f": `{what}` and the rest of the loop make no kernel"
        said = self.plan.said("loops", item.var.name)
        if said is not None and said.by_hand and said.value == "kernel":
            raise PlanConflictError(f"the loop over `{said.name}` cannot be in a kernel", here(),
                                    expected="a loop whose state is made, updated and read by statements that can share one task",
                                    found=reason, also=places, help="leave the entry out: the iterations are tasks")
        return reason

    def _blocking(self, items: Sequence[Item]) -> Statement | None:
        """Return the last statement of a loop without which, and without its readers, items form a kernel; None if there is none."""
        at, loop = next((at, one) for at, one in enumerate(items) if isinstance(one, flow.Loop))
        if group_of(items, self._facts) is not None:
            return None      # memory is too small, or the plan says otherwise
        for first in reversed(range(len(loop.body.items))):
            kept, made = list(loop.body.items[:first]), self._effects_of(loop.body.items[first:first + 1]).defines
            for item in loop.body.items[first + 1:]:
                effects = self._effects_of((item,))
                if effects.reads & made:
                    made |= effects.defines
                else:
                    kept.append(item)
            gone = {id(one) for one in statements_of(loop.body.items)} - {id(one) for one in statements_of(kept)}
            facts = replace(self._facts, users={one: found - gone for one, found in self._users.items()})
            rest: Item = replace(loop, body=replace(loop.body, items=tuple(kept)))
            if group_of([*items[:at], rest, *items[at + 1:]], facts) is not None:
                return next(flow.leaves(loop.body.items[first]))
        return None

    def _may_be_in_kernel(self, item: Item) -> bool:
        said = self.plan.said("loops", item.var.name) if isinstance(item, flow.Loop) else None
        if said is not None:
            return said.value == "kernel"
        return not isinstance(item, flow.Loop) or (item.ordered and item.var.name not in self._context.of_tasks)

    def _taken_along(self, parts: list[_Cluster], waiting: dict[int, Item], items: list[Item], position: int,
                     done: set[int]) -> set[int] | None:
        self._obstacle = None
        first = self._effects_of(items[position:position + 1])
        if not first.writes and not first.reads & waiting.keys():
            return None
        placed = {_id_of(item) for part in parts for item in part.items if part.group is not None} - {-1}
        written = {one for one in first.writes if one in waiting or one in placed}
        state = written | (first.reads & waiting.keys())
        if not state or not first.writes <= state | first.defines:
            return None
        later = {at: self._effects_of((items[at],)) for at in range(position + 1, len(items))
                 if at not in done and made_by(items[at]) is None}
        taken, brought = users_of_state(state, later, waiting)
        members = [items[at] for at in (position, *sorted(taken))]
        loops = [one for one in members if isinstance(one, flow.Loop)]
        if not all(map(self._may_be_in_kernel, loops)):
            return None
        if brought or not written or isinstance(items[position], flow.Choice):      # for the sake of a loop, and in its group
            asked = {self._named.name_of(one) for one in members} - {self._named.name_of(one) for one in loops}
            if not loops or asked - {""} or not self._has_small_parts(state, members):
                return None
        own = {id(statement) for statement in statements_of(members)} | {
            id(statement) for part in parts if part.group is not None for statement in statements_of(part.items)}
        outside = [one for one in state if not self._users.get(one, frozenset()) <= own]
        if outside:
            name = next(view.array.name for one in statements_of(members) for view in one.views if view.array.id in outside)
            self._obstacle = f"`{name}` is a result, or used behind the kernel"
            return None
        touched = self._effects_of(members).writes
        later_makes = [at for at in range(position + 1, len(items)) if _id_of(items[at]) in touched - {-1}]
        if any(not _may_stand_first(items[at]) for at in later_makes):
            return None
        made = [waiting[one] for one in state if one in waiting]
        if not self._place(parts, waiting, members):
            self._obstacle = [*made, *members] if loops else None
            return None
        for at in later_makes:
            parts.insert(0, _Cluster([items[at]], effects_of(items[at]), None))
        return taken | set(later_makes)

    def _has_small_parts(self, state: Collection[int], items: Iterable[Item]) -> bool:
        """Tell whether the target has parts of buffers, and state of which items use parts few elements: one task has the whole of it."""
        parted = {view.array for statement in statements_of(items) for view in statement.views
                  if view.array.id in state and any(isinstance(step, Cut | Pick) for step in view.steps)}
        most = _WHOLE if self._context.has_parts else 0
        return all(prod(limit_of(extent) or 1 << 30 for extent in array.shape) <= most for array in parted)

    def _marked(self, part: _Cluster) -> list[Item]:
        if part.group is None:
            return part.items
        statements = part.group.statements
        values = [array.name for statement in statements if isinstance(statement, Apply) for array in statement.results]
        written = [array.name for array in part.group.outputs] or [one.target.array.name for one in statements if isinstance(one, Put)]
        shown = [one.value.array.name for one in statements if isinstance(one, Show)]
        last = (written or values or [f"{shown[-1]}.print"])[-1]
        name = self._names.take(part.asked or last.removesuffix(".copy"))       # a result's copy is known by the value
        puts = [one.target.array for one in statements if isinstance(one, Put) and one.target.array.id not in part.group.local]
        alone = [array.name for array in dict.fromkeys(puts)
                 if puts.count(array) == self._named.n_writes(array) and array.name not in values]
        fills = part.asked.endswith(FILL)      # of memory that another kernel writes under the same name
        self.made[name] = (name,) if fills else tuple((*values, *alone) or (last,))
        if part.asked in self._named.asked:
            self._kernels.setdefault(part.asked, []).append((name, part.items))
        self.plan = self.plan.with_choice("groups", name, "", self.made[name], self._context.fineness_of(statements).reason)
        items = [_with_group(item, name) for item in part.items]
        self.groups[name] = replace(part.group, items=tuple(items), statements=tuple(statements_of(items)))
        return items


def _has_many_tiles(group: KernelGroup) -> bool:
    """Tell whether a group uses more parts of tensors than a task has arguments."""
    if len(group.statements) <= MAX_ARGS // 4:       # three operands and a result each
        return False
    views = {view for statement in group.statements for view in statement.views if view.array.id not in group.local}
    return len(views) + len(group.outputs) > MAX_ARGS


def _producers(parts: Sequence[_Cluster], effects: Effects, asked: str) -> Iterator[frozenset[int]]:
    """Yield the sets of clusters, by position, that an item may join: all clusters that the item must follow, if these clusters can be one;
    then the last of these clusters.

    Clusters can be one, at the place of the last, if no cluster between must follow one of them.
    """
    follows = [index for index, part in enumerate(parts) if effects.must_follow(part.effects)]
    same = [index for index, part in enumerate(parts) if asked and part.asked == asked]
    if same and (not follows or follows[-1] <= same[-1]):
        if len(same) > 1 and _stand_together(parts, same):
            yield frozenset(same)
        yield frozenset(same[-1:])
    if not follows or asked:
        return
    every = [index for index in follows if parts[index].group is not None]
    if every and every[-1] == follows[-1]:
        for first in range(len(every) - 1):
            if _stand_together(parts, every[first:]):
                yield frozenset(every[first:])
        yield frozenset(every[-1:])


def _stand_together(parts: Sequence[_Cluster], chosen: Sequence[int]) -> bool:
    """Tell whether clusters can all be at the place of the last: no cluster between must follow one of them."""
    between = [part for index, part in enumerate(parts) if chosen[0] < index < chosen[-1] and index not in chosen]
    return not any(part.effects.must_follow(parts[index].effects) for part in between for index in chosen)


def _axes_in(after: KernelGroup, before: KernelGroup) -> dict[Dim, Dim]:
    """Return the axes of a group mapped to the axes of a larger group that has all its statements."""
    found: dict[Dim, Dim] = {}
    for statement in before.statements:
        pairs = [(before.axes.of_view(view), after.axes.of_view(view)) for view in statement.views]
        pairs += [(before.axes.of_array(array), after.axes.of_array(array)) for array in statement.defines]
        found.update((own, other) for axes, others in pairs for own, other in zip(axes, others, strict=True)
                     if own is not None and other is not None)
    return found


_ALGORITHMS = {"all_to_all": ("direct", "each piece goes straight to its rank"), "broadcast": ("tree", "ranks that have it send it on")}
_SHORT = 128          # elements of a row that one task computes for the sake of one kernel fewer
_WHOLE = 1 << 14      # elements along axes that may be whole in a task for the sake of one kernel fewer


def _may_stand_first(item: Item) -> bool:
    """Tell whether memory can be made at the beginning of its body: no kernel fills it, and its extents wait for nothing."""
    assert isinstance(item, flow.Do) and isinstance(item.leaf, Make)
    return item.leaf.fill is None and not elements_in(item.leaf.array.shape)


def _id_of(item: Item) -> int:
    made = made_by(item)
    return -1 if made is None else made.id


def _with_group(item: Item, name: str) -> Item:
    def mark(inner: Item) -> Item:
        match inner:
            case flow.Do(leaf) if not isinstance(leaf, Make):
                return flow.Do(leaf.beside(group=name))
            case flow.Loop():
                return flow.with_bodies(replace(inner, note=BodyNote(name)), body)
            case flow.Choice(branches):
                marked = replace(inner, branches=tuple(replace(branch, note=BodyNote(name)) for branch in branches))
                return flow.with_bodies(marked, body)
            case _:
                return inner

    def body(inside: Body) -> Body:
        return replace(inside, items=tuple(map(mark, inside.items)))

    return mark(item)

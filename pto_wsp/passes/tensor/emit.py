"""Print a function in tiled form as a Python module of the level below: kernels, a workload, and `run`; execute it for the workload.

    emitted = emit(planned, context)
    emitted.source                                   the module's text: it has nothing of the tensor level in it
    emitted.workload({"x": X, "out": Y})             the workload on these tensors; on declared ones where none is given
    emitted.results                                  the names of the tensors that hold the results: out, out_1, ...

A loop with a group is a loop of its kernel, a loop without one a loop of tasks. Errors in the module's lines point at the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pto_wsp.errors import NoTileFormError
from pto_wsp.ir import flow
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import Const, SymbolRef, Var
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Body, TensorFunction
from pto_wsp.ir.tensor_layout import Replicate, Shard, TensorLayout
from pto_wsp.passes.tensor.effects import effects_of, is_move
from pto_wsp.passes.tensor.emitted import EmittedModule, ModuleTensor
from pto_wsp.passes.tensor.kernel_call import ModuleLine
from pto_wsp.passes.tensor.module_text import ModuleText, first_span
from pto_wsp.passes.tensor.planned import LocalArrays, PlannedFunction, TensorContext
from pto_wsp.passes.tensor.scratch import Run, Segment
from pto_wsp.schedule.tiling import TilePlan

_RANK = Var("rank", -1)


def emit(planned: PlannedFunction, context: TensorContext) -> EmittedModule:
    """Return a function in tiled form as a module of the level below.

    Raises: J310 at the user's line for a statement that has no form as tiles of a kernel.
    """
    if context.ranks is None:
        return ModuleText(planned.function, context.makes_package).write()
    return RankedModuleText(planned.function, context.makes_package, context.ranks, planned.plan).write()


class RankedModuleText(ModuleText):
    """The printer of a function over ranks: loops over ranks, with collectives between them."""

    def __init__(self, function: TensorFunction, for_device: bool, ranks: LocalArrays, plan: TilePlan) -> None:
        super().__init__(function, for_device)
        self._ranks, self._plan = ranks, plan
        self.mesh = ranks.mesh
        self._rank = ""
        self._picked: dict[int, str] = {}     # of arrays of which each rank has one of its own: the indices of a rank's

    @property
    def _symbols(self) -> tuple[SymbolRef, ...]:
        """None: the sizes of a rank are computed from its number."""
        return ()

    def _named_symbols(self) -> Iterable[SymbolRef]:
        return dict.fromkeys((*self._function.symbols, *self._ranks.scalars, *self._ranks.at.values()))

    def _over_all(self, array: Array) -> Array:
        whole = self._ranks.whole.get(array.id)
        return array if whole is None else replace(array, shape=tuple(map(Const, whole.shape)))

    def _layout_text(self, one: int) -> str:
        whole = self._ranks.whole.get(one)
        return "" if whole is None else _layout_text(whole.layout)

    def _body(self, bound: Sequence[ModuleTensor]) -> list[ModuleLine]:
        """Return the body as loops over ranks with collectives between the loops; tensors that several of these use are made in front."""
        ranks = self._ranks
        self._mesh = self._of_kernels.take("mesh")
        body, names = self._function.body, self._names.inner()
        self._rank = names.take("rank")
        arrays = {array.id: array for leaf in flow.leaves(body) for array in leaf.defines}
        moved = {array.id for leaf in flow.leaves(body) if is_move(leaf) for array in leaf.defines}
        users: dict[int, int] = {}
        for part in self._parts_of(body):
            for used in _used_in(part):
                users[used] = users.get(used, 0) + (2 if isinstance(part, Run) else 1)
        copied = {one.array.id: one.variable for one in bound if one.is_result and one.array.id not in moved
                  and any(ranks.whole[one.array.id].layout.dim_of(name) is None for name, size in ranks.mesh.axes if size > 1)}
        lines: list[ModuleLine] = []
        for one, array in arrays.items():
            if one in copied or (one not in self._tensors and users.get(one, 0) > 1):
                lines.append(self._for_all_ranks(array, ranks, names))
        lines += self._rank_tasks(body, 1, names, {})
        for one, variable in copied.items():
            text = f"relayout({self._tensors[one]}, {self._layout_text(one)}, out={variable}, mesh={self._mesh})"
            lines.append(ModuleLine(text, 1))
        return lines

    def _for_all_ranks(self, array: Array, ranks: LocalArrays, names: Names) -> ModuleLine:
        """Return the line that makes an array of which each rank has a part, or one of its own."""
        name = self._variable(array.name, names)
        self._tensors[array.id] = name
        self._dtypes.add(array.dtype)
        if array.id in ranks.whole:
            shape, layout = ranks.whole[array.id].shape, self._layout_text(array.id)
        else:
            rooms = [self._limits.of(extent) for extent in array.shape]
            if None in rooms:
                raise NoTileFormError(f"`{array.name}` is used on both sides of a collective, and has no bound", self._function.span)
            shape = (*ranks.mesh.shape, *(room for room in rooms if room is not None))
            layout = _layout_text(TensorLayout((*(Shard(axis) for axis, _ in ranks.mesh.axes), *(Replicate() for _ in array.shape))))
            picks = ", ".join(["0"] * len(ranks.mesh.axes) + [":" if isinstance(n, Const) else f":{self.scalar(n)}" for n in array.shape])
            self._picked[array.id] = f"[{picks}]"
        shown = ", ".join(map(str, shape)) + "," * (len(shape) == 1)
        return ModuleLine(f"{name} = Tensor.empty(({shown}), {array.dtype.name}, layout={layout})", 1)

    def _parts_of(self, body: Body) -> Iterator[Run | list[Segment]]:
        """Yield each collective of a body as a `Run`, the segments between collectives as lists; enter bodies with collectives."""
        block: list[Segment] = []
        for segment in self._homes.inside(body):
            if not _has_move(segment):
                block.append(segment)
                continue
            if block:
                yield block
                block = []
            if isinstance(segment, Run):
                yield segment
            else:
                for inner in flow.children(segment):
                    assert isinstance(inner, flow.Sequence)
                    yield from self._parts_of(inner)
        if block:
            yield block

    def _rank_tasks(self, body: Body, depth: int, names: Names, variables: dict[Var, str]) -> list[ModuleLine]:
        """Return a body as lines: tasks in loops over ranks, collectives outside of them."""
        lines: list[ModuleLine] = []
        block: list[Segment] = []
        for segment in (*self._homes.inside(body), None):
            if segment is not None and not _has_move(segment):
                block.append(segment)
                continue
            if block:
                lines += self._on_each_rank(block, depth, names, variables)
                block = []
            self._variables = variables
            if isinstance(segment, Run):
                lines += [self._move(item.leaf, depth) for item in segment.items
                          if isinstance(item, flow.Do) and isinstance(item.leaf, Apply)]
            elif isinstance(segment, flow.Loop):
                lines += self._loop(segment, depth, names, variables, self._rank_tasks)
            elif isinstance(segment, flow.Choice):
                lines += self._choice(segment, depth, names, variables, self._rank_tasks)
        return lines or [ModuleLine("pass", depth)]

    def _on_each_rank(self, block: Sequence[Segment], depth: int, names: Names, variables: dict[Var, str]) -> list[ModuleLine]:
        inner = names.inner()
        known = dict(self._tensors)
        heads: list[tuple[str, str]] = []
        for axis, at in self._ranks.at.items():
            heads.append((self._spelled[at.name], _position_text(self._rank, axis, self._ranks.mesh.axes)))
        for symbol, value in self._ranks.scalars.items():
            heads.append((self._spelled[symbol.name], self.scalar(value)))
        for one in sorted({used for used in _used_in(block) if used in known}):
            part = inner.take(f"{known[one]}_part")
            heads.append((part, f"{known[one]}.on({self._rank}){self._picked.get(one, '')}"))
            self._tensors[one] = part
        inside = self._segments(block, depth + 1, inner, {_RANK: self._rank, **variables})
        self._tensors = known
        used = {word for line in inside for word in re.findall(r"[A-Za-z_]\w*", line.text)}
        shown: list[ModuleLine] = []
        for name, text in reversed(heads):
            if name in used:
                shown.insert(0, ModuleLine(f"{name} = {text}", depth + 1))
                used |= set(re.findall(r"[A-Za-z_]\w*", text))
        if not inside:
            return []
        return [ModuleLine(f"for {self._rank} in P({self._mesh}):", depth, first_span(inside)), *shown, *inside]

    def _move(self, move: Apply, depth: int) -> ModuleLine:
        """Return the line of a collective."""
        (operand,), (result,) = move.operands, move.results
        assert isinstance(operand, ArrayView) and not operand.steps
        attrs = dict(move.attrs)
        what = attrs["move"]
        arguments = [self._tensors[operand.array.id]]
        if what == "relayout":
            arguments.append(self._layout_text(result.id))
        else:
            arguments += [repr(attrs[name]) for name in ("k", "root", "dim", "axis") if name in attrs]
        said = self._plan.said("collectives", result.name)
        arguments += [f"out={self._tensors[result.id]}"] + ([] if said is None else [f"algorithm={said.first!r}"]) + [f"mesh={self._mesh}"]
        return ModuleLine(f"{what}({', '.join(arguments)})", depth, move.span)


def _has_move(segment: Segment) -> bool:
    """Tell whether a collective stands in a segment."""
    items = segment.items if isinstance(segment, Run) else (segment,)
    return any(is_move(leaf) for item in items for leaf in flow.leaves(item))


def _used_in(part: Run | Sequence[Segment]) -> set[int]:
    """Return the ids of the arrays that segments read, write or make."""
    found: set[int] = set()
    for segment in (part,) if isinstance(part, Run) else part:
        for item in segment.items if isinstance(segment, Run) else (segment,):
            effects = effects_of(item)
            found |= effects.reads | effects.writes | effects.defines
    return found


def _position_text(rank: str, axis: str, mesh: Sequence[tuple[str, int]]) -> str:
    """Return the position of a rank along an axis as text: `rank // 2 % 4`."""
    below = 1
    for name, size in reversed(mesh):
        if name == axis:
            text = f"{rank} // {below}" if below > 1 else rank
            return text if name == mesh[0][0] else f"{text} % {size}"
        below *= size
    raise AssertionError(axis)


def _layout_text(layout: TensorLayout) -> str:
    """Return a layout as the call that makes it."""
    dist = ", ".join(f"Shard({one.axis!r})" if isinstance(one, Shard) else "Replicate()" for one in layout.dist)
    partial = ", ".join(f"Partial({one.axis!r}, {one.op!r})" for one in layout.partial)
    return f"TensorLayout(({dist}{',' * (layout.rank == 1)}){f', partial=({partial},)' if partial else ''})"

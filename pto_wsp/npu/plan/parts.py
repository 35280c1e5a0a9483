"""Split a kernel into parts, one core each, and pass values between them through crossings.

A crossing is a tensor in which one part stores a value that other parts load. Each iteration of the loops around the producer has its own
rows of the crossing. Parts run one after the other and a dependency never points to a later part, so each iteration reads what it would
have read in the whole kernel.

    for i in range(0, n, 16):                        for i in range(0, n, 16):
        %1 = load x[i, 0]                                %1 = load x[i, 0]
        %2 = matmul %1, %0                 part 0:       %2 = matmul %1, %0
        %3 = relu %2                 →                   store product[i // 16 * 16, 0], %2
        store y[i, 0], %3
                                                     for i in range(0, n, 16):
                                           part 1:       %2 = load product[i // 16 * 16, 0]
                                                         %3 = relu %2
                                                         store y[i, 0], %3

Whole tiles cross, except for products: only their nonzero part crosses, as the cube core writes no zeros. A mask crosses as the numbers 1
and 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import TypeAlias

from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.kernel_walk import Body, bodies_of, map_bodies, result_of, scalars_of, uses_of, walk
from pto_wsp.ir.names import Names
from pto_wsp.ir.rewrite import rewrite
from pto_wsp.ir.scalar import Op, ParamExtent, ParamScalar, Scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.npu.plan.circles import fold_scalar
from pto_wsp.npu.plan.descriptors import MAX_TENSORS
from pto_wsp.npu.plan.facts import Part as ValidPart
from pto_wsp.npu.plan.flow import Flow, IterationNumber, Leaf, Moving, Statements, iteration_number
from pto_wsp.npu.plan.products import is_product
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entries.compare import ne
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.kernel.context import fresh_ids
from pto_wsp.source import Span
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Crossing:
    """A tensor that passes values between parts, with rows for each iteration of the loops around the producer.

    `rows` is in terms of the whole kernel's parameters. `name` is unique in the kernel; `label` is the name that parts use if it is free.
    """

    name: str
    label: str
    dtype: DType
    rows: Scalar
    cols: int


Given: TypeAlias = ParamScalar | ParamExtent


@dataclass(frozen=True, slots=True)
class Part:
    """The work of one core in a kernel.

    `places`: the argument of each memory parameter, a parameter of the whole kernel or a crossing. `scalars`: the argument of each scalar
    parameter, in terms of the whole kernel's parameters. Parts that differ only in their crossings have equal kernels.
    """

    kernel: Kernel
    core: Unit
    access: tuple[ParamAccess, ...]
    places: tuple[str, ...]
    scalars: tuple[Given, ...]


@dataclass(frozen=True, slots=True)
class SplitKernel:
    """The parts of a kernel in a valid execution order, and the crossings between them."""

    parts: tuple[Part, ...]
    crossings: tuple[Crossing, ...] = ()


def part_of(kernel: k.Kernel, core: Unit, access: Mapping[str, ParamAccess], places: Mapping[str, str]) -> Part:
    """Return a kernel's body as a part with the parameters that it uses, in their roles there.

    `access`: of its memory parameters; `places`: the argument of each parameter whose name differs from the whole kernel's. An extent that
    every task shares becomes a constant. An extent of an unused parameter becomes an equal extent of a used one, or a scalar parameter.
    """
    loaded = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Load | k.Gather)}
    stored = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Store | k.Scatter)}
    added = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Scatter) and stmt.add}
    declared = {param.name: param for param in kernel.scalar_params}
    given: dict[str, Given] = {}
    handed: dict[s.ParamExtent, str] = {}
    unused = Names((param.name for param in kernel.params), lambda name, number: name + "_" * (number - 1))

    def settle(node: object) -> object | None:
        match node:
            case s.ParamScalar(name):
                given[name] = node
                return None
            case s.ParamExtent(name, dim):
                fixed = (access[name].rows, access[name].cols)[dim]
                if fixed is not None:
                    return s.Const(fixed)
                same = _equal_extent(node, access, loaded | stored)
                if name in loaded | stored or same is not None:
                    return None if name in loaded | stored else same
                if node not in handed:
                    handed[node] = unused.take(f"{name}_{('rows', 'cols')[dim]}")
                    given[handed[node]] = node
                return s.ParamScalar(handed[node], DType.I64)
            case _:
                return fold_scalar(node)

    body = rewrite(kernel.body, settle)
    memory = tuple(replace(param, role=_role(param, loaded, stored, added)) for param in kernel.memory_params
                   if param.name in loaded | stored)
    names = [name for name in declared if name in given] + [name for name in given if name not in declared]
    scalars = tuple(declared.get(name) or k.ScalarParamDecl(name, DType.I64) for name in names)
    return Part(replace(kernel, params=(*memory, *scalars), body=body), core, tuple(access[param.name] for param in memory),
                tuple(places.get(param.name, param.name) for param in memory), tuple(given[name] for name in names))


def _equal_extent(extent: s.ParamExtent, access: Mapping[str, ParamAccess], here: set[str]) -> s.ParamExtent | None:
    """Return an extent of a parameter in `here` that equals `extent` in every task; None if there is none."""
    groups = {name: (one.row_group, one.col_group)[extent.dim] for name, one in access.items()}
    group = groups[extent.name]
    alike = (s.ParamExtent(name, extent.dim) for name in groups if name in here and groups[name] == group)
    return None if group is None else next(alike, None)


def _role(param: k.MemoryParam, loaded: set[str], stored: set[str], added: set[str]) -> k.Role:
    if param.name not in stored:
        return k.Role.IN
    return param.role if param.role is k.Role.INOUT or param.name not in loaded | added else k.Role.INOUT


# -- crossings -------------------------------------------------------------------------------------


_MASK = DType.F32      # the dtype in which a mask crosses


@dataclass(frozen=True, slots=True)
class Bridge:
    """A value that passes between parts: its crossing, its iteration numbers, and the piece of the tile that crosses (None: all).

    `first`: the first row of the value in the crossing.
    """

    value: k.Value
    crossing: Crossing
    iterations: IterationNumber
    part: ValidPart | None = None
    first: s.Scalar = s.Const(0)

    @property
    def type(self) -> TileType:
        """Return the type of one iteration's tile in memory."""
        return TileType(self.value.type.rows, self.value.type.cols, self.crossing.dtype)

    @property
    def rows(self) -> s.Scalar:
        """Return the number of rows for all iterations, at least one tile."""
        return s.mul(s.maximum(self.iterations.count, s.Const(1)), s.Const(self.type.rows))

    @property
    def access(self) -> ParamAccess:
        """Return the access of the crossing: contiguous rows."""
        rows = self.crossing.rows
        return ParamAccess(0, 1, rows=int(rows.value) if isinstance(rows, s.Const) else None, cols=self.type.cols,
                           unit_rows=self.type.cols == 1)

    def param(self, name: str, role: k.Role) -> k.MemoryParam:
        """Return a parameter for the crossing: a tile if the crossing is exactly one tile, else a region."""
        if self.crossing.rows == s.Const(self.type.rows):
            return k.TileParam(name, role, self.type)
        return k.TensorParam(name, role, self.type.dtype)

    def stored(self, value_ids: Iterator[int], span: Span) -> Iterator[k.Stmt]:
        """Yield the statements that store the value, to be placed after its producer."""
        value = self.value
        if value.type.dtype.is_bool:
            value = k.Value(next(value_ids), self.type, self.value.name)
            yield k.Compute(value, cast.name, (self.value,), (("dtype", _MASK),), span)
        rows, cols = self.part or (None, None)
        yield k.Store(self.crossing.name, value, self._row(), s.Const(0), rows, cols, span=span)

    def loaded(self, value_ids: Iterator[int], span: Span) -> Iterator[k.Stmt]:
        """Yield the statements that load the value in another part, in place of its producer."""
        mask = self.value.type.dtype.is_bool
        value = k.Value(next(value_ids), self.type, self.value.name) if mask else self.value
        rows, cols = self.part or (None, None)
        yield k.Load(value, self.crossing.name, self._row(), s.Const(0), rows, cols, span=span)
        if mask:
            yield k.Compute(self.value, ne.name, (value, k.ScalarOperand(s.Const(0.0), _MASK)), span=span)

    def _row(self) -> s.Scalar:
        return s.add(self.first, self.iterations.row(self.type.rows))


def bridges_of(flow: Flow, makers: Sequence[Leaf]) -> tuple[Bridge, ...]:
    """Return a bridge with a unique name for the value of each leaf.

    Raises: N102 if the number of iterations is unknown.
    """
    names = Names(param.name for param in flow.of.kernel.params)
    bridges: list[Bridge] = []
    for maker in makers:
        value = flow.of.value_of(maker)
        label = _label(value, maker)
        name = names.take(label)
        dtype = _MASK if value.type.dtype.is_bool else value.type.dtype
        iterations = iteration_number(maker.loops, f"`{name}`")
        part = flow.given.part(value) if flow.of.is_product(maker) else None
        bridge = Bridge(value, Crossing(name, label, dtype, s.Const(0), value.type.cols), iterations, part)
        bridges.append(replace(bridge, crossing=replace(bridge.crossing, rows=bridge.rows)))
    return tuple(bridges)


def pack_bridges(bridges: Sequence[Bridge]) -> tuple[Bridge, ...]:
    """Return the bridges of one part with values of equal dtype and width stacked in a common crossing."""
    groups: dict[tuple[DType, int], list[Bridge]] = {}
    for bridge in bridges:
        groups.setdefault((bridge.crossing.dtype, bridge.crossing.cols), []).append(bridge)
    moved: dict[int, Bridge] = {}
    for group in groups.values():
        rows: s.Scalar = s.Const(0)
        for bridge in group:
            moved[bridge.value.id] = replace(bridge, first=rows)
            rows = s.add(rows, bridge.rows)
        for bridge in group:
            place = moved[bridge.value.id]
            moved[bridge.value.id] = replace(place, crossing=replace(group[0].crossing, rows=rows))
    return tuple(moved[bridge.value.id] for bridge in bridges)


def _label(value: k.Value, maker: Leaf) -> str:
    """Return the user's name of a value, or a name from its producer."""
    match maker.stmt:
        case k.Compute(op=op):
            made = "product" if is_product(maker.stmt) else op
        case k.Read(_, buffer):
            made = buffer.name
        case k.Load(param=param) | k.Gather(param=param):
            made = param
        case _:
            made = "value"
    return value.name or made


# -- distribution of statements --------------------------------------------------------------------


@dataclass(slots=True)
class Share:
    """The statements of a part, by `id()`: its own statements, statements that it recomputes, and statements whose values it receives."""

    unit: Unit
    own: dict[int, Leaf] = field(default_factory=dict)
    again: dict[int, Leaf] = field(default_factory=dict)
    given: dict[int, Leaf] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Distributed:
    """The body of a part, its core, and the values that it receives (`takes`) and passes on (`gives`)."""

    unit: Unit
    kernel: k.Kernel
    takes: tuple[Bridge, ...]
    gives: tuple[Bridge, ...]


def distribute(flow: Flow, levels: Mapping[int, int]) -> tuple[tuple[Distributed, ...], tuple[Crossing, ...]]:
    """Return the parts of a kernel in order of their levels, and all crossings between them.

    If a part exceeds the runtime's number of tensors, values of equal dtype and width share a crossing.

    Raises: N102 if the number of iterations of a crossing value is unknown.
    """
    shares: list[Share] = []
    for level in range(max(levels.values(), default=0) + 1):
        own = {id(leaf.stmt): leaf for leaf in flow.nodes() if levels[id(leaf.stmt)] == level}
        share = Share(next((flow.unit(leaf) for leaf in own.values()), Unit.VECTOR), own)
        for leaf in own.values():
            _gather(flow, share, leaf)
        shares.append(share)
    crossing = sorted({id(leaf.stmt): leaf for share in shares for leaf in share.given.values()}.values(), key=lambda leaf: leaf.at)
    bridges = {id(leaf.stmt): bridge for leaf, bridge in zip(crossing, bridges_of(flow, crossing), strict=True)}
    tables = {leaf.stmt.param for leaf in flow.of.leaves if id(leaf.stmt) in flow.of.items and isinstance(leaf.stmt, k.Load)}
    if any(_n_tensors(share, bridges, tables) > MAX_TENSORS for share in shares):
        for share in shares:
            mine = [key for key in bridges if key in share.own]
            bridges |= dict(zip(mine, pack_bridges([bridges[key] for key in mine]), strict=True))
    ids = fresh_ids(flow.of.kernel)
    parts: list[Distributed] = []
    for share in shares:
        body = _without_idle_items(tuple(_body(flow.of, flow.of.kernel.body, share, bridges, ids)), flow.of.items)
        takes = tuple(bridges[key] for key in bridges if key in share.given)
        gives = tuple(bridges[key] for key in bridges if key in share.own)
        parts.append(Distributed(share.unit, replace(flow.of.kernel, body=body), takes, gives))
    return tuple(parts), tuple(dict.fromkeys(bridge.crossing for bridge in bridges.values()))


def _gather(flow: Flow, share: Share, leaf: Leaf) -> None:
    """Add the transitive operands of a leaf to a share, as recomputed or received values."""
    for _, maker, again in flow.needed(leaf, share.unit):
        key = id(maker.stmt)
        if again and key not in share.own:
            if key not in share.again:
                share.again[key] = maker
                _gather(flow, share, maker)
        elif key not in share.own:
            share.given[key] = maker


def _n_tensors(share: Share, bridges: Mapping[int, Bridge], tables: Set[str]) -> int:
    """Return the number of tensors that a part takes at most. `tables`: those of which the kernel reads items."""
    params = tables | {leaf.stmt.param for leaf in (*share.own.values(), *share.again.values()) if isinstance(leaf.stmt, Moving)}
    return len(params) + sum(key in share.own or key in share.given for key in bridges)


def _body(of: Statements, body: Body, share: Share, bridges: Mapping[int, Bridge], ids: Iterator[int]) -> Iterator[k.Stmt]:
    for stmt in body:
        key = id(stmt)
        if isinstance(stmt, k.For | k.If):
            kept = map_bodies(stmt, lambda inner: tuple(_body(of, inner, share, bridges, ids)))
            if isinstance(kept, k.For) and kept.body:
                yield kept
            elif isinstance(kept, k.If) and (kept.then or kept.other):
                yield kept if kept.then else _swap_sides(kept)
        elif key in share.own:
            yield stmt
            if key in bridges:
                yield from bridges[key].stored(ids, _span(stmt))
        elif key in share.again:
            yield stmt
        elif key in share.given:
            yield from bridges[key].loaded(ids, _span(stmt))
        elif key in of.items:
            yield stmt


def _without_idle_items(body: Body, items: Set[int]) -> Body:
    """Return a body without the items that no scalar names, the loads of these, and the loops and branches that had nothing else."""
    while items:
        named = {leaf for stmt in walk(body) for node in scalars_of(stmt) for leaf in s.leaves(node) if isinstance(leaf, s.ItemRef)}
        used = {value.id for stmt in walk(body) for value in uses_of(stmt)}
        kept = tuple(_busy(body, named, used, items))
        if kept == body:
            break
        body = kept
    return body


def _busy(body: Body, named: Set[Scalar], used: Set[int], items: Set[int]) -> Iterator[k.Stmt]:
    for stmt in body:
        match stmt:
            case k.Item(item) if id(stmt) in items and item not in named:
                continue
            case k.Load(result) if id(stmt) in items and result.id not in used:
                continue
            case k.For() | k.If():
                inner = map_bodies(stmt, lambda inside: tuple(_busy(inside, named, used, items)))
                if any(bodies_of(inner)):
                    yield inner if not isinstance(inner, k.If) or inner.then else _swap_sides(inner)
            case _:
                yield stmt


def _swap_sides(branch: k.If) -> k.If:
    """Return a branch with an empty first side as an equivalent branch with an empty second side."""
    condition = branch.condition
    holds_not = s.unary(Op.NOT, condition) if s.scalar_dtype(condition).is_bool else s.binary(Op.EQ, condition, s.Const(0))
    return replace(branch, condition=holds_not, then=branch.other, other=())


def _span(stmt: k.Stmt) -> Span:
    result = result_of(stmt)
    assert result is not None and isinstance(stmt, k.Compute | k.Load | k.Gather | k.Read)
    return stmt.span

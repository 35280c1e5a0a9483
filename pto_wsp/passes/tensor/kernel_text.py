"""Print one run of a function in tiled form as a kernel: parameters for the views that lie outside, one line for each statement.

    def peak(score: In[Tile[32, 128, F32]], top: InOut[Tile[32, 1, F32]]):
        highest = pto.rowmax(score)
        top_1 = pto.maximum(top, highest)
        pto.store(top, top_1)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from math import prod
from typing import Protocol

from pto_wsp.errors import NoTileFormError
from pto_wsp.ir import flow, scalar
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import product
from pto_wsp.ir.kernel import MAX_ARGS
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import COMPARISONS, LOGICAL, Binary, Const, Element, Scalar, SymbolRef, Unary, Var, scalar_dtype
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayStep,
    ArrayView,
    Body,
    Flip,
    Insert,
    Item,
    Make,
    Put,
    Show,
    Statement,
    TileCut,
    step_scalars,
)
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.entries import cast, index
from pto_wsp.passes.tensor.axes import ROWS_OF, TAKE
from pto_wsp.passes.tensor.counting_sort import SortedTable, held_places, sort_lines
from pto_wsp.passes.tensor.flatten import (
    ExtentLimits,
    Flat,
    Folding,
    NoTile,
    ValueDim,
    flattened,
    row_places,
    usual,
    varies_with,
)
from pto_wsp.passes.tensor.kernel_call import RESERVED, KernelCall, ModuleLine, PrintedParam, binding, certainly_apart, identifier
from pto_wsp.passes.tensor.op_text import Spelled, spelled
from pto_wsp.passes.tensor.scalar_text import number_text, scalar_text
from pto_wsp.passes.tensor.scratch import ArrayHome, Homes, Run
from pto_wsp.passes.tensor.tile_values import Behind, KernelValue, arranged, part, refolded, shape_text
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass


class Outside(Protocol):
    """The workload around a kernel, as text."""

    def scalar(self, node: Scalar) -> str:
        """Return a scalar as text of the workload."""
        ...

    def tensor(self, array: Array) -> str:
        """Return the name of the tensor that an array is."""
        ...

    def array(self, number: int) -> Array:
        """Return an array of the function by its id."""
        ...

    @property
    def has_fixed_parts(self) -> bool:
        """Whether parts of a kernel's buffers start at constants alone."""
        ...


def kernel_of(run: Run, homes: Homes, limits: ExtentLimits, outside: Outside) -> KernelCall:
    """Return a run as a kernel and its call.

    Raises: J310 at the user's line for what has no form in a kernel.
    """
    return _KernelPrinter(run, homes, limits, outside).write()


@dataclass(slots=True, eq=False)
class _KnownTiles:
    """The tiles that exist at a place of the body: stored values by the view that they were stored to, and loaded tiles."""

    stored: dict[ArrayView, KernelValue] = field(default_factory=dict)
    loaded: dict[ArrayView, KernelValue] = field(default_factory=dict)
    elements: dict[Element, str] = field(default_factory=dict)

    def forget(self, array: Array) -> None:
        """Forget what is known of an array's elements."""
        for known in (self.stored, self.loaded):
            for view in [view for view in known if view.array.id == array.id]:
                del known[view]


class _KernelPrinter:
    def __init__(self, run: Run, homes: Homes, limits: ExtentLimits, outside: Outside) -> None:
        self._run, self._homes, self.limits, self._outside = run, homes, limits, outside
        self._names = Names(RESERVED)
        self._locals: set[str] = set()
        self._lines: list[ModuleLine] = []
        self._depth = 1
        self._span = UNKNOWN
        self._params: dict[tuple[int, str, tuple[int, ...] | None], PrintedParam] = {}
        self._scalars: dict[tuple[Scalar, DType], str] = {}
        self._values: dict[int, KernelValue] = {}
        self._loops: dict[Var, str] = {}
        self._scope = _KnownTiles()
        self._in_branch = 0
        self._done: set[int] = set()
        self._fixed: set[str] = set()         # names of values, which never change, unlike buffers and parameters
        self._dtypes: set[DType] = set()
        self._span_of_run = next((leaf.span for item in run.items for leaf in flow.leaves(item) if leaf.span != UNKNOWN), UNKNOWN)

    # -- the kernel ----------------------------------------------------------------------------------------------------
    def write(self) -> KernelCall:
        for array in self._homes.leaving(self._run):
            self._dtypes.add(array.dtype)
        self._items(self._run.items)
        self._check_aliases()
        bound = list(self._params.values())
        if (n_tiles := sum(param.n_tiles for param in bound)) > MAX_ARGS:      # each of a stack is an argument
            instead = ("cut all but two of the axes into tiles of 1" if n_tiles > len(bound) else
                       "let fewer values be one kernel: plan key `groups`")
            raise no_form(NoTile(f"{n_tiles} tiles of tensors in a task", instead), self._span_of_run)
        params = [f"{param.name}: {param.annotation}" for param in bound]
        params += [f"{name}: Scalar[{dtype.name}]" for (_, dtype), name in self._scalars.items()]
        arguments = [param.argument for param in bound] + [self._outside.scalar(node) for node, _ in self._scalars]
        self._dtypes |= {param.array.dtype for param in bound} | {dtype for _, dtype in self._scalars}
        return KernelCall(tuple(params), _without_idle_loads(self._lines), tuple(arguments), frozenset(self._locals),
                          frozenset(self._dtypes), self._span_of_run)

    def _items(self, items: Iterable[Item]) -> None:
        for item in items:
            match item:
                case flow.Do(leaf):
                    self._span = leaf.span if leaf.span != UNKNOWN else self._span_of_run
                    with_form(leaf, self._span, lambda leaf=leaf: self._statement(leaf))   # type: ignore[misc]
                case flow.Loop():
                    self._span = item.span if item.span != UNKNOWN else self._span_of_run
                    with_form(item, self._span, lambda item=item: self._loop(item))        # type: ignore[misc]
                case flow.Choice():
                    with_form(item, self._span, lambda item=item: self._choice(item))      # type: ignore[misc]
                case flow.Sequence():
                    self._items(item.items)
                case _:
                    raise NoTileFormError("only loops and branches stand in a kernel", self._span, found=type(item).__name__)

    def _body(self, body: Body) -> None:
        outer = self._scope
        written = _written(body)
        loaded = {view: tile for view, tile in outer.loaded.items() if view.array.id not in written}
        self._scope = _KnownTiles({}, loaded, {**outer.elements})
        self._depth += 1
        start = len(self._lines)
        self._items(body.items)
        if len(self._lines) == start:
            self.line("pass")
        self._depth -= 1
        self._scope = _KnownTiles(elements=outer.elements)
        for view in outer.stored | outer.loaded:
            if not any(view.array.id == array for array in _written(body)):
                if view in outer.stored:
                    self._scope.stored[view] = outer.stored[view]
                if view in outer.loaded:
                    self._scope.loaded[view] = outer.loaded[view]

    def _loop(self, loop: flow.Loop[Statement, object, object, object, object]) -> None:
        if not isinstance(loop.step, Const):
            raise NoTile("a loop in a kernel whose step is no number", "give the loop a step that is a number")
        bounds = [self.scalar(one) for one in (loop.start, loop.stop, loop.step)]
        if bounds[2] == "1":
            bounds.pop()
        if len(bounds) == 2 and bounds[0] == "0":
            bounds.pop(0)
        name = self.name(loop.var.name)
        self._load_what_stays(loop)
        self.line(f"for {name} in pto.range({', '.join(bounds)}):")
        self._loops[loop.var] = name
        self._in_branch += 1
        self._body(loop.body)      # type: ignore[arg-type]
        self._in_branch -= 1
        del self._loops[loop.var]

    def _load_what_stays(self, loop: flow.Loop[Statement, object, object, object, object]) -> None:
        """Load in front of a loop in a loop the pieces of memory that no iteration of it changes: the operand that stays."""
        if not self._loops:
            return                     # what no loop changes is a parameter
        written = _written(loop.body)      # type: ignore[arg-type]
        inside = frozenset({loop.var, *(var for item in flow.walk(loop) for var in flow.bound_vars(item))})
        for leaf in flow.leaves(loop.body):
            for view in leaf.reads:
                if self._homes.of(view.array) is not ArrayHome.MEMORY or view.array.id in written or view.array.id in self._values:
                    continue
                changes = varies_with(inside)
                scalars = [one for step in view.steps for one in step_scalars(step)]
                if any(map(varies_with(frozenset(self._loops)), scalars)) and not any(map(changes, scalars)):
                    self.read(view)

    def _choice(self, choice: flow.Choice[Statement, object, object, object, object]) -> None:
        self._in_branch += 1
        depth = self._depth
        for branch in choice.branches:
            if branch is not choice.branches[0]:
                self.line("with pto.otherwise():")
                self._depth += 1
            if branch.span != UNKNOWN:
                self._span = branch.span
            self.line(f"with pto.when({self.condition(branch.condition)}):")
            self._body(branch.body)      # type: ignore[arg-type]
        if choice.otherwise.items:
            self.line("with pto.otherwise():")
            self._body(choice.otherwise)      # type: ignore[arg-type]
        self._depth = depth
        self._in_branch -= 1

    # -- text ----------------------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        """Append a line for the statement that is being printed."""
        self._lines.append(ModuleLine(text, self._depth, self._span))

    def name(self, wanted: str) -> str:
        """Return a name of the kernel that nothing else has."""
        taken = self._names.take(identifier(wanted))
        self._locals.add(taken)
        return taken

    def dtype(self, dtype: DType) -> str:
        """Return the name of a dtype in the module."""
        self._dtypes.add(dtype)
        return dtype.name

    def let(self, wanted: str, text: str) -> str:
        """Append a line that gives a value a name; return the name."""
        name = self.name(wanted)
        self.line(f"{name} = {text}")
        return name

    def scalar(self, node: Scalar, dtype: DType | None = None) -> str:
        """Return a scalar as text of the kernel: what does not change while the task runs is a parameter."""
        if isinstance(node, Const):
            return number_text(node.value)
        return scalar_text(node, lambda inner: self._leaf(inner, dtype))

    def condition(self, node: Scalar) -> str:
        """Return a condition as kernel text: comparisons stay comparisons, their operands may become parameters of the kernel."""
        if _is_condition(node):
            return scalar_text(node, lambda inner: None if _is_condition(inner) else self._leaf(inner, None))
        return f"{self.scalar(node)} != 0"

    def _leaf(self, node: Scalar, dtype: DType | None) -> str | None:
        if isinstance(node, Const):
            return None
        if isinstance(node, Var) and node in self._loops:
            return self._loops[node]
        if any(leaf in self._loops for leaf in scalar.leaves(node) if isinstance(leaf, Var)):
            if isinstance(node, Element):
                return self._looked_up(node)
            return None
        kind = scalar_dtype(node)
        found = dtype or (node.dtype if isinstance(node, SymbolRef) and node.dtype is not None else
                          DType.F32 if kind.is_float else DType.BOOL if kind.is_bool else DType.I64)
        key = (node, found)
        if key not in self._scalars:
            wanted = node.name if isinstance(node, Var | SymbolRef) else "n"
            self._scalars[key] = self.name(wanted)
        return self._scalars[key]

    def _looked_up(self, element: Element) -> str:
        """Return the name of an element that the kernel reads by a loop variable."""
        if element not in self._scope.elements:
            steps = tuple(Pick(0, at) for at in element.index)
            param = self.bound(ArrayView(self._outside.array(element.tensor.id), steps))
            param.reads = True
            at, _, _ = self._piece(param)
            self._scope.elements[element] = self.let(f"{param.array.name}_item", f"pto.item({param.name}, {at[1:-1]})")
        return self._scope.elements[element]

    # -- statements ----------------------------------------------------------------------------------------------------
    def _statement(self, statement: Statement) -> None:
        match statement:
            case Make():
                self._make(statement)
            case Put():
                if id(statement) not in self._done:
                    self._put(statement)
            case Show(label, view):
                self._print(label, self.read(view))
            case Apply():
                self._apply(statement)

    def _print(self, label: str, value: KernelValue) -> None:
        """Append a print of a value, without the rows and columns that are not there."""
        groups = (range(value.folding.first, value.folding.second), range(value.folding.second, len(value.dims)))
        valid = ["None", "None"]
        for place, group in enumerate(groups):
            for dim in (dim for dim in group if value.dims[dim].short):
                if any(value.dims[outer].limit > 1 for outer in range(group.start, dim)):
                    raise NoTile("a print of an axis, the last tile of which may be short, among others", "print x[i]")
                inner = prod(value.dims[one].limit for one in group if one > dim)
                valid[place] = self.scalar(scalar.mul(value.dims[dim].extent, Const(inner)))
        if any(dim.short for dim in value.dims[:value.folding.first]):
            raise NoTile("a print of an axis, the last tile of which may be short, among others", "print x[i]")
        there = "" if valid == ["None", "None"] else f", valid=({', '.join(valid)})"
        self.line(f"pto.print({label!r}, {value.text}{there})")

    def _make(self, make: Make) -> None:
        dims = self.limits.dims(make.array.shape)
        value = KernelValue(self.name(make.array.name), dims, usual(len(dims)), make.array.dtype)
        number = make.fill if make.fill is not None or not self._needs_number(make.array) else 0
        fill = "" if number is None else f", init={number_text(bool(number) if make.array.dtype.is_bool else number)}"
        self.line(f"{value.text} = pto.alloc({shape_text(value.tile_shape)}, {self.dtype(make.array.dtype)}{fill})")
        self._values[make.array.id] = value

    def _needs_number(self, array: Array) -> bool:
        """Tell whether a buffer needs a first number though the function gives none: its first write is no write of the whole buffer."""
        for item in self._run.items:
            for leaf in flow.leaves(item):
                if isinstance(leaf, Put) and leaf.target.array.id == array.id:
                    return bool(leaf.target.steps) or not isinstance(item, flow.Do)
        return True

    def _apply(self, statement: Apply) -> None:
        if statement.op == TAKE:
            source, table = statement.operands
            assert isinstance(source, ArrayView) and isinstance(table, ArrayView)
            self._result(statement, self._taken(statement, source, table))
            return
        if statement.op == ROWS_OF:
            self._rows_of(statement)
            return
        operands: list[KernelValue | Scalar] = [self.read(operand) if isinstance(operand, ArrayView) else operand
                                              for operand in statement.operands]
        self._result(statement, spelled(self, statement, operands))

    def _result(self, statement: Apply, made: Spelled) -> None:
        for array, value in zip(statement.results, self._named(statement, made), strict=True):
            self._values[array.id] = value
            if self._homes.of(array) is ArrayHome.MEMORY:
                self._store(ArrayView(array), value)

    def _named(self, statement: Apply, made: Spelled) -> list[KernelValue]:
        array = statement.results[0]
        name = self.name(array.name)
        self._fixed.add(name)
        self.line(f"{made.before}{name}{made.behind} = {made.value.text}")
        return [replace(made.value, text=name, load="")]

    # -- reading -------------------------------------------------------------------------------------------------------
    def read(self, view: ArrayView) -> KernelValue:
        """Return a view as a value, as it is now."""
        value = self._values.get(view.array.id)
        if value is not None and self._homes.of(view.array) is not ArrayHome.MEMORY:
            for step in view.steps:
                value = part(value, step, self.limits, self.scalar)
            return value
        if view in self._scope.stored:
            return self._scope.stored[view]
        if view in self._scope.loaded:
            return self._scope.loaded[view]
        try:
            param = self.bound(view)
        except NoTile:
            rows = self._rows_apart(view)
            if rows is None:
                raise
            return rows
        param.reads = True
        flat = param.flat
        if param.shape is not None:
            tile = KernelValue(param.name, flat.memory_dims, flat.folding, view.dtype, Behind.ZERO)
        else:
            tile = KernelValue(self._loaded(param), flat.memory_dims, flat.folding, view.dtype, Behind.ZERO)
        value = arranged(tile, flat.order, flat.view_dims)
        for dim in flat.flipped:
            value = part(value, Flip(dim), self.limits, self.scalar)
        if param.shape is None:
            name = self.name(f"{view.array.name}_tile")
            self.line(f"{name} = {value.text}")
            value = replace(value, text=name, load=value.text if value.text == tile.text else "")
            self._scope.loaded[view] = value
        return value

    def _rows_apart(self, view: ArrayView) -> KernelValue | None:
        """Return a view as rows of a matrix that are picked one by one, not neighbours; None for any other view."""
        found = row_places(view, self.limits)
        if found is None:
            return None
        rows, first, apart, columns = found
        param = self._region(ArrayView(view.array), 1)
        param.reads = True
        places = f"pto.iota(({rows.size}, 1), {self.dtype(DType.I32)}, 0) * {apart} + {self._atom(first)}"
        name = self.name("rows")
        self.line(f"{name} = {places}")
        valid = f", valid={self.scalar(rows.extent)}" if rows.is_short else ""
        cols = f"({self.scalar(columns.start)}, {columns.size})"
        dims = self.limits.dims(view.shape)
        text = f"pto.{index.gather.name}({param.name}, {name}, cols={cols}{valid})"
        value = KernelValue(self.let(f"{view.array.name}_tile", text), dims, usual(len(dims)), view.dtype, Behind.ZERO)
        self._scope.loaded[view] = value
        return value

    def _atom(self, node: Scalar) -> str:
        text = self.scalar(node)
        return text if text.isidentifier() or text.isdigit() else f"({text})"

    def _loaded(self, param: PrintedParam) -> str:
        at, shape, valid = self._piece(param)
        there = "" if valid is None else f", valid={valid}"
        return f"pto.load({param.name}, {at}, shape={shape}{there})"

    def _piece(self, param: PrintedParam) -> tuple[str, str, str | None]:
        """Return offset, shape and valid part of a piece of a region."""
        flat, varies = param.flat, varies_with(frozenset(self._loops))
        taken = [flat.dims[at] for at in flat.bound]
        offsets = ["0" if not varies(one.start) else self.scalar(one.start) for one in taken]
        valid = [None if not one.is_short else self.scalar(one.extent) if varies(one.start) or varies(one.extent)
                 else f"{param.name}.shape[{dim + 2 - len(taken)}]" for dim, one in enumerate(taken)]
        sizes = [str(one.size) for one in taken]
        while len(sizes) < 2:
            sizes.insert(0, "1")
            offsets.insert(0, "0")
            valid.insert(0, None)
        there = None if valid == [None, None] else f"({valid[0]}, {valid[1]})"
        return f"({', '.join(offsets)})", f"({', '.join(sizes)})", there

    def bound(self, view: ArrayView) -> PrintedParam:
        """Return the parameter that a view of memory is bound to."""
        varies = varies_with(frozenset(self._loops))
        flat = flattened(view, self.limits, varies)
        is_region = any(varies(one.start) or varies(one.extent) for one in flat.dims)
        if any((one.step != 1 and (varies(one.start) or varies(one.extent))) or (one.within is not None and varies(one.within.start))
               for one in flat.dims):
            raise NoTile("a slice with a step, or of a slice, that a loop of the kernel moves",
                         "let the loop be one of tasks: plan key `loops`")
        if is_region and len(flat.bound) > 2:
            raise NoTile("a piece of more than two axes that a loop of the kernel moves", "cut all but two of the axes into tiles of 1")
        argument = binding(flat, self._outside.tensor(view.array), self._outside.scalar, varies)
        shape = None if is_region else flat.folding.tile_shape(flat.memory_dims)
        return self.param(view.array, argument, flat, shape)

    def param(self, array: Array, argument: str, flat: Flat, shape: tuple[int, ...] | None) -> PrintedParam:
        """Return the parameter of an argument; one is made where the kernel has none yet."""
        key = (array.id, argument, shape)
        if key not in self._params:
            self._params[key] = PrintedParam(self.name(array.name), array, argument, flat, shape)
        found = self._params[key]
        found.flat = flat
        return found

    # -- writing -------------------------------------------------------------------------------------------------------
    def _put(self, put: Put) -> None:
        value = self.read(put.value) if isinstance(put.value, ArrayView) else put.value
        if put.table is not None:
            self._scatter(put, value)
        elif self._homes.of(put.target.array) is ArrayHome.BUFFER:
            self._assign(put.target, value)
        else:
            self._store(put.target, value)

    def _assign(self, target: ArrayView, value: KernelValue | Scalar) -> None:
        buffer = self._values[target.array.id]
        place = buffer
        steps, order = _turned_last(target)
        if order and isinstance(value, KernelValue):
            for _ in range(len(order) - len(value.dims)):
                value = part(value, Insert(0), self.limits, self.scalar)
            value = part(value, Permute(tuple(map(order.index, range(len(order))))), self.limits, self.scalar)
        for step in steps:
            place = part(place, step, self.limits, self.scalar)
        brackets = _joined_brackets(place.text.removeprefix(buffer.text))
        if not (place.text.startswith(buffer.text) and re.fullmatch(r"(\[[^\[\]]*\])?", brackets)):
            raise NoTile("a part of state that is no block of rows and columns", "write the state in another order of its axes")
        text = self.scalar(value) if not isinstance(value, KernelValue) else self._fitted(value, place).text
        self.line(f"{buffer.text}{brackets or '[:]'} = {text}")

    def _fitted(self, value: KernelValue, place: KernelValue) -> KernelValue:
        """Return a value in the folding of the place to write; a dimension of the value that broadcasts keeps the extent 1."""
        missing = len(place.dims) - len(value.dims)
        dims = (*(ValueDim(1, Const(1)) for _ in range(missing)), *value.dims)
        wide = replace(value, dims=dims, folding=Folding(value.folding.first + missing, value.folding.second + missing))
        fitted = refolded(wide, place.folding)
        tile, full = fitted.tile_shape, place.tile_shape
        if len(tile) < len(full) or any(one not in (1, whole) for one, whole in zip(tile[-2:], full[-2:], strict=True)):
            raise NoTile("a value that broadcasts along an axis among others that are rows", "cut that axis into tiles of 1")
        return fitted

    def _store(self, target: ArrayView, value: KernelValue | Scalar) -> None:
        param = self.bound(target)
        param.writes = True
        flat = param.flat
        if param.shape is not None and self._in_branch:
            param.reads = True        # what is not stored stays
        self._scope.forget(target.array)
        if isinstance(value, KernelValue):
            place = KernelValue("", flat.view_dims, _folding_for(flat), target.dtype)
            fitted = self._fitted(value, place)
            for dim in flat.flipped:
                fitted = part(fitted, Flip(dim), self.limits, self.scalar)
            broadcasts = [dim.limit for dim in fitted.dims] != [dim.limit for dim in flat.view_dims]
            if broadcasts and (param.shape is None or list(flat.order) != sorted(flat.order)):
                fitted = replace(fitted, text=f"pto.expand({fitted.text}, {shape_text(place.tile_shape)})", dims=place.dims)
                broadcasts = False
            if broadcasts:
                text = fitted.text
            else:
                inverse = [flat.order.index(k) for k in range(len(flat.order))]
                text = refolded(arranged(fitted, inverse, flat.memory_dims), flat.folding).text
            if not flat.flipped and not broadcasts and fitted.text in self._fixed:
                self._scope.stored[target] = replace(fitted, dims=flat.view_dims, load="")
        else:
            text = self.scalar(value)
        if param.shape is not None:
            self.line(f"pto.store({param.name}, {text})")
            return
        at, shape, valid = self._piece(param)
        if not isinstance(value, KernelValue):
            text = f"pto.full({shape}, {text}, {self.dtype(target.dtype)})"
        there = "" if valid is None else f", valid={valid}"
        self.line(f"pto.store({param.name}, {text}, {at}{there})")

    # -- rows that a table names ---------------------------------------------------------------------------------------
    def _region(self, view: ArrayView, n_open: int) -> PrintedParam:
        """Return the parameter for all of a view of memory, of which places in the first dimensions come from data."""
        varies = varies_with(frozenset(self._loops))
        flat = flattened(view, self.limits, varies, n_open)
        if any(varies(one.start) or varies(one.extent) for one in flat.dims):
            raise NoTile("rows that a table names, of a part that a loop of the kernel moves", "let the loop be one of tasks")
        if any(one.is_short and not one.is_open for one in flat.dims):
            raise NoTile("rows that a table names, with a short tile of their columns", "choose a tile that divides the columns")
        argument = binding(flat, self._outside.tensor(view.array), self._outside.scalar, varies)
        return self.param(view.array, argument, flat, None)

    def _index(self, table: ArrayView) -> tuple[KernelValue, str]:
        """Return the places of a table as one column, and the text of how many there are, "" if all."""
        value = self.read(table)
        column = refolded(value, Folding(0, len(value.dims)))
        if not value.dtype.is_index:
            column = replace(column, text=f"pto.{cast.cast.name}({column.text}, {self.dtype(DType.I32)})", dtype=DType.I32)
        if any(dim.short for dim in value.dims[1:]):
            raise NoTile("a table whose last axis is a short tile", "let the last axis of the table be whole")
        rest = 1
        for dim in value.dims[1:]:
            rest *= dim.limit
        short = bool(value.dims) and value.dims[0].short
        return column, f", valid={self.scalar(scalar.mul(value.dims[0].extent, Const(rest)))}" if short else ""

    def _taken(self, statement: Apply, source: ArrayView, table: ArrayView) -> Spelled:
        column, valid = self._index(table)
        dims = self.limits.dims(statement.results[0].shape)
        n_table = len(column.dims)
        folding = Folding(0, n_table)
        if self._homes.of(source.array) is not ArrayHome.MEMORY:
            value = self.read(source)
            rows = refolded(value, Folding(0, 1))
            text = f"pto.{index.gather.name}({rows.text}, {column.text}, axis=0)"
            if valid:
                raise NoTile("a short table of places in a value that the kernel computes", "store the value first")
            return Spelled(KernelValue(text, dims, folding, source.dtype))
        param = self._region(source, 1)
        param.reads = True
        if list(param.flat.order) != sorted(param.flat.order) or param.flat.flipped:
            raise NoTile("rows whose axes are in another order in memory", "store the value in a tensor of its own first")
        n_columns = folding.tile_shape(dims)[1]
        text = f"pto.{index.gather.name}({param.name}, {column.text}, cols={n_columns}{valid})"
        return Spelled(KernelValue(text, dims, folding, source.dtype, Behind.ZERO))

    def _scatter(self, put: Put, value: KernelValue | Scalar) -> None:
        assert put.table is not None
        if self._homes.of(put.target.array) is ArrayHome.BUFFER:
            raise NoTile("a write through a table to state of the kernel", "let the statement be a kernel of its own: plan key `groups`")
        column, valid = self._index(put.table)
        param = self._region(put.target, 1)
        param.writes = True
        param.reads |= put.add
        self._scope.forget(put.target.array)
        if list(param.flat.order) != sorted(param.flat.order) or param.flat.flipped:
            raise NoTile("rows whose axes are in another order in memory", "write a tensor of its own first")
        dims = (*column.dims, *param.flat.view_dims)
        place = KernelValue("", dims, Folding(0, len(column.dims)), put.target.dtype)
        n_columns = place.tile_shape[1]
        text = self._fitted(value, place).text if isinstance(value, KernelValue) else self.scalar(value)
        name = (index.scatter_add if put.add else index.scatter).name
        self.line(f"pto.{name}({param.name}, {column.text}, {text}, cols={n_columns}{valid})")

    def _rows_of(self, statement: Apply) -> None:
        """Print the counting sort of a table, see `counting_sort`."""
        (table,) = statement.operands
        assert isinstance(table, ArrayView)
        n = int(dict(statement.attrs)["n"])
        rank = len(table.shape)
        if not 1 <= rank <= 2:
            raise NoTile("places in a table of more than two axes", "reshape the table")
        source = self._region(table, rank)
        source.reads = True
        targets = [None if (target := self._target_of(array)) is None else self._region(target, 1) for array in statement.results]
        for written in targets:
            if written is not None:
                written.writes = True
        order, starts, *ranks = [None if target is None else target.name for target in targets]
        held = () if self._outside.has_fixed_parts else held_places(table, self.limits)
        shape = tuple(map(self.scalar, table.shape))
        size = self.scalar(product(table.shape)) if held and not all(isinstance(extent, Const) for extent in table.shape) else ""
        sorted_table = SortedTable(source.name, n, shape, held, size, order, starts, tuple(ranks))
        for text in sort_lines(sorted_table, self._outside.has_fixed_parts, self.dtype(DType.I32), self.name):
            self.line(text)

    def _target_of(self, array: Array) -> ArrayView | None:
        """Return the memory that a result of the run is stored to, in place of a value; the statement that stores it is done then.

        None for a result that nothing reads.
        """
        if self._homes.of(array) is ArrayHome.MEMORY:
            return ArrayView(array)
        for item in self._run.items:
            if isinstance(item, flow.Do) and isinstance(item.leaf, Put) and item.leaf.value == ArrayView(array):
                self._done.add(id(item.leaf))
                return item.leaf.target
        if not any(view.array.id == array.id for item in self._run.items for leaf in flow.leaves(item) for view in leaf.reads):
            return None
        raise NoTile("places that are used where they are computed", "let the places be a kernel of their own: plan key `groups`")

    # -- what may meet -------------------------------------------------------------------------------------------------
    def _check_aliases(self) -> None:
        by_array: dict[int, list[PrintedParam]] = {}
        for param in self._params.values():
            by_array.setdefault(param.array.id, []).append(param)
        for params in by_array.values():
            if not any(param.writes for param in params):
                continue
            for k, one in enumerate(params):
                for other in params[k + 1:]:
                    if (one.writes or other.writes) and not certainly_apart(one.flat, other.flat):
                        raise NoTileFormError(f"a task writes a part of `{one.array.name}` and uses another part that may meet it",
                                            self._span_of_run, expected="parts that are the same, or that certainly do not meet",
                                            found=f"{one.argument} and {other.argument}",
                                            help="let the two statements be kernels of their own: plan key `groups`")


def _without_idle_loads(lines: Sequence[ModuleLine]) -> tuple[ModuleLine, ...]:
    """Return lines without loads that nothing reads: their readers have loaded again, with another number behind."""
    words = [set(re.findall(r"[A-Za-z_]\w*", line.text)) for line in lines]
    return tuple(line for k, line in enumerate(lines) if not (
        (found := re.match(r"(\w+) = pto\.load\(", line.text)) and not any(found.group(1) in word for word in words[k + 1:])))


def _is_condition(node: Scalar) -> bool:
    return isinstance(node, Binary | Unary) and (node.op in COMPARISONS or node.op in LOGICAL)


def _written(body: Body) -> set[int]:
    return {leaf.target.array.id for item in body.items for leaf in flow.leaves(item) if isinstance(leaf, Put)} | {
        array.id for item in body.items for leaf in flow.leaves(item) if isinstance(leaf, Apply) for array in leaf.results}


def _folding_for(flat: Flat) -> Folding:
    """Return the folding of the view's dimensions that the tile in memory has, rows and columns exchanged where the view is turned."""
    above = [place for place, dim in enumerate(flat.view_dims) if dim.limit > 1]
    if len(flat.bound) > 2:
        return Folding(above[-2], above[-1])
    rows = flat.folding.second
    if list(flat.order) != sorted(flat.order):
        rows = list(flat.order).index(0)
    return Folding(0, 0 if not rows else above[rows] if rows < len(above) else len(flat.view_dims))


def _joined_brackets(text: str) -> str:
    """Return a part of rows and then of columns, or the other way round, as one subscript: `[4:8][:, 0:2]` is [4:8, 0:2]."""
    if found := re.fullmatch(r"\[([^\[\],]+)\]\[:, ([^\[\],]+)\]", text):
        return f"[{found[1]}, {found[2]}]"
    if found := re.fullmatch(r"\[:, ([^\[\],]+)\]\[([^\[\],]+)\]", text):
        return f"[{found[2]}, {found[1]}]"
    return text


def _turned_last(view: ArrayView) -> tuple[tuple[ArrayStep, ...], tuple[int, ...]]:
    """Return the steps of a view with what exchanges axes taken out, and the order of axes that would follow; () for none.

        buf.T[0:3]      buf[:, 0:3], and then (1, 0)
    """
    if not any(isinstance(step, Permute) for step in view.steps) or not all(
            isinstance(step, Permute | Pick | Cut | TileCut) for step in view.steps):
        return view.steps, ()
    steps: list[ArrayStep] = []
    order = list(range(view.array.rank))
    for step in view.steps:
        match step:
            case Permute(by):
                order = [order[k] for k in by]
            case Pick(dim, at):
                own = order.pop(dim)
                steps.append(Pick(own, at))
                order = [k - (k > own) for k in order]
            case Cut(dim) | TileCut(dim):
                steps.append(replace(step, dim=order[dim]))
    return tuple(steps), () if order == sorted(order) else tuple(order)


def with_form(what: object, span: Span, do: Callable[[], None]) -> None:
    """Do something; what has no form is an error at the user's line."""
    try:
        do()
    except NoTile as problem:
        raise no_form(problem, span) from None


def no_form(problem: NoTile, span: Span) -> NoTileFormError:
    """Return the error for what has no form as a tile."""
    found, instead = problem.args
    return NoTileFormError("this has no form as tiles of a kernel", span, found=found, help=instead)

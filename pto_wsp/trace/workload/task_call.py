"""Trace a kernel call in a workload: bind the arguments, check their types at the user's line, append the task.

A kernel is traced once per specialisation: its Constexpr values, the dtypes of its Tensor arguments, and the values captured from its
scope.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import CellType, FrameType, FunctionType, ModuleType
from typing import assert_never

import numpy as np

from pto_wsp.errors import (
    ArgumentDTypeError,
    ArgumentKindError,
    ArgumentRankError,
    ArgumentShapeError,
    ArityError,
    InternalError,
    LoopVariableError,
    NumberError,
    OutsideTraceError,
    PtoError,
    RankError,
    ValueScopeError,
)
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir import workload as wl
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.exchange import is_array, kind_of
from pto_wsp.ir.kernel import Kernel, Role, TileParam
from pto_wsp.ir.mesh import OnRank
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic, as_scalar
from pto_wsp.ir.tensor import Tensor, TensorView
from pto_wsp.ir.tile import StackType, TileType, extents_of
from pto_wsp.ir.view import Pick, View, ViewDim, declared, place_of, print_view
from pto_wsp.ops.entry import active, is_active
from pto_wsp.source import Span, argument_span, here, user_frame
from pto_wsp.trace.kernel.accumulate import accumulator
from pto_wsp.trace.kernel.annotations import (
    ConstexprAnnotation,
    KernelParam,
    ScalarAnnotation,
    SizedTileAnnotation,
    TensorAnnotation,
    TileAnnotation,
)
from pto_wsp.trace.kernel.definition import KernelDef
from pto_wsp.trace.kernel.trace import KernelTrace
from pto_wsp.trace.workload.trace import MadeTask, TaskHandle, WorkloadTrace, current_trace
from pto_wsp.wording import counted

MAX_BRACKETS = 8
MAX_LABEL = 200


def call_kernel(definition: KernelDef, index: Sequence[object], args: Sequence[object], kwargs: Mapping[str, object],
                after: object, label: object = None) -> TaskHandle:
    """Append one task to the workload being traced; return its handle.

    `label`: text that is a part of the task's name for people; of a kernel with a parameter of that name, the argument.
    Raises: K105 outside a workload; T101, T102, T103, T201, T205 for arguments that do not fit; W103 for names out of scope.
    """
    if is_active():
        in_kernel = isinstance(active(definition.name), KernelTrace)
        body = "kernel" if in_kernel else "function on tensors"
        raise OutsideTraceError(f"kernel `{definition.name}` was called in the body of a {body}", here(),
                                help="kernels do not call kernels: share a plain Python function, or make two tasks in the workload"
                                if in_kernel else "f.lower(plan, x=X, out=Y) >> w() runs the function's tasks, then those of a workload w")
    trace = current_trace(f"kernel `{definition.name}` was called")
    frame, span = user_frame(), here()
    if label is not None and any(param.name == "label" for param in definition.params):
        kwargs, label = {**kwargs, "label": label}, None
    bound = _bind(definition, args, kwargs, span)
    if definition.size_names:
        definition = definition.sized(_sizes(definition, bound, trace, frame, span))
    constexprs = {p.name: bound[p.name] for p in definition.params if isinstance(p.annotation, ConstexprAnnotation)}
    dtypes = {p.name: _view_of(definition, p, bound[p.name], span).dtype
              for p in definition.params if isinstance(p.annotation, TensorAnnotation)}
    kernel = _specialise(trace, definition, constexprs, dtypes)
    task_args = tuple(arg for k, param in enumerate(definition.params)
                      for arg in _argument(definition, param, bound[param.name], k, trace, frame, span))
    totals = {p.name: p for p in definition.params if isinstance(p.annotation, TileAnnotation) and p.annotation.combine}
    if len(index) > MAX_BRACKETS:
        raise ArityError(f"kernel `{definition.name}` has too many bracket indices", span, expected=f"at most {MAX_BRACKETS}",
                         found=str(len(index)))
    bracket = tuple(trace.use(_bracket(node, span), frame, span) for node in index)
    handle = trace.new_handle(definition.name)
    on = rank_of_task(definition, bound, trace, frame, span)
    task = wl.Task(kernel, bracket, task_args, handle.id, _after(after, trace, span), span, _label(definition, label, span), on)
    if not totals:
        trace.append(flow.Do(task))
        return handle
    return _accumulate(definition, task, totals, trace, span)


def _accumulate(definition: KernelDef, task: wl.Task, totals: Mapping[str, KernelParam], trace: WorkloadTrace, span: Span) -> TaskHandle:
    """Append a task that writes its parts into fresh tensors, and the task that combines them with the views bound to Acc parameters.

    Returns the handle of the second task: whoever waits for it waits for both.
    """
    bound = {arg.param: arg for arg in task.args if isinstance(arg, wl.ViewArg) and arg.param in totals}
    parts: dict[str, wl.ViewArg] = {}
    declared: list[TileParam] = []
    scope = trace.scopes[-1]
    first = len(scope.items)
    for name, arg in bound.items():
        annotation = totals[name].annotation
        assert isinstance(annotation, TileAnnotation)
        declared.append(TileParam(name, annotation.role, annotation.type, totals[name].span, annotation.combine))
        part = _part_like(arg.view, annotation.type, f"{name}_part")
        trace.keep(part.owner)
        parts[name] = replace(arg, view=part.view)
    key = ("accumulator", definition, *declared)
    combining = trace.kernels.get(key)
    if not isinstance(combining, Kernel):
        combining = accumulator(definition.name, declared)
        trace.kernels[key] = combining
    handle = trace.new_handle(definition.name)
    read = tuple(replace(parts[total.name], param=param.name) for param, total in zip(combining.memory_params, declared, strict=False))
    made: tuple[wl.Item, ...] = (
        flow.Do(replace(task, args=tuple(parts.get(arg.param, arg) for arg in task.args))),
        flow.Do(wl.Task(combining, task.index, (*read, *bound.values()), handle.id, (), span, task.label, task.on)))
    if scope.is_pipe:       # the two tasks are one statement, and so one process
        scope.items[first:] = [flow.Sequence((*scope.items[first:], *made))]
    else:
        scope.items.extend(made)
    return handle


def rank_of_task(definition: KernelDef, bound: Mapping[str, object], trace: WorkloadTrace, frame: FrameType,
                 span: Span) -> OnRank | None:
    """Return the rank that a task runs on: that of its arguments, else of the loop over the mesh around it; None without a mesh.

    Raises: M103 for parts of two ranks, for a tensor with a layout that is used whole, for a tensor that says nothing of ranks, for a
    replicated array that the task writes.
    """
    mesh = trace.ranks.mesh
    ranks: dict[s.Scalar, str] = {}      # the rank of each argument, by the first parameter
    for position, param in enumerate(definition.params):
        value = bound[param.name]
        if not isinstance(value, TensorView):
            continue
        at, tensor = argument_span(span, param.name, position), value.owner
        name = trace.use(value.view, frame, span).tensor.shown
        if value.at is not None:
            _refuse_replicated_output(definition, param, value, at)
            ranks.setdefault(value.at.rank, param.name)
        elif tensor.layout is not None:
            raise RankError(f"kernel `{definition.name}`: argument `{param.name}` is a tensor over ranks", at,
                            expected=f"the part of one rank: {name}.on(r)", found=f"the whole, of layout {tensor.layout!r}")
        elif mesh is not None and tensor.made_in is None:
            raise RankError(f"kernel `{definition.name}`: argument `{param.name}` says nothing of ranks", at, found=repr(value),
                            expected="a tensor with a layout, or one that the body of a loop over the mesh makes",
                            help=f"Tensor(array, layout=TensorLayout.replicated({tensor.rank})), then {name}.on(r)")
        elif mesh is not None and trace.ranks.loops:
            ranks.setdefault(trace.ranks.loops[-1], param.name)
    if mesh is None:
        return None
    if len(ranks) > 1:
        (one, first), (two, second), *_ = ranks.items()
        raise RankError(f"kernel `{definition.name}`: arguments `{first}` and `{second}` are parts of two ranks", span,
                        expected="the parts of one rank", found=f"rank {print_scalar(one)} and rank {print_scalar(two)}",
                        help="copy one first: copy(B.on(q), C.on(r))")
    if not ranks and not trace.ranks.loops:
        raise RankError(f"kernel `{definition.name}` runs on no rank", span,
                        help="give it a part, A.on(r), or call it in `for r in P(mesh)`")
    return OnRank(mesh.axes, trace.use(next(iter(ranks), trace.ranks.loops[-1] if trace.ranks.loops else s.Const(0)), frame, span))


def _refuse_replicated_output(definition: KernelDef, param: KernelParam, value: TensorView, span: Span) -> None:
    """Refuse a replicated array that a task writes: every rank would write its one copy.

    Raises: M103.
    """
    tensor, role = value.owner, getattr(param.annotation, "role", None)
    if tensor.layout is None or tensor.intermediate or value.at is None or not isinstance(role, Role) or not role.writes:
        return
    free = [name for name, size in value.at.mesh.axes if size > 1 and tensor.layout.named_on(value.at.mesh).dim_of(name) is None]
    if free:
        raise RankError(f"kernel `{definition.name}`: a rank writes `{tensor.ref.shown}`, which every rank along {', '.join(free)} has",
                        span, expected="a shard, or a tensor of the program", found=f"an array of layout {tensor.layout!r}",
                        help="write Tensor.empty(shape, dtype, layout=...), and bring it to the array: relayout(T, layout, out=array)")


def _part_like(view: View, tile: TileType, name: str) -> TensorView:
    """Return a fresh tensor of a tile's shape, cut to what a view has of the tile in a run."""
    part: TensorView = Tensor.empty(tile.shape, tile.dtype, name)
    dims = place_of(view).dims
    if len(dims) == 1:
        part = part[0]
    if all(isinstance(declared(dim.extent), s.Const) for dim in dims):
        return part
    cut: TensorView = part[tuple(slice(0, Symbolic(dim.extent)) for dim in dims)].clip(*tile.shape[-len(dims):])
    return cut


def _bind(definition: KernelDef, args: Sequence[object], kwargs: Mapping[str, object], span: Span) -> dict[str, object]:
    names = [param.name for param in definition.params]
    problem = None
    if len(args) > len(names):
        problem = f"{len(args)} positional arguments"
    positional = dict(zip(names, args, strict=False))
    twice = [name for name in kwargs if name in positional]
    unknown = [name for name in kwargs if name not in names]
    missing = [name for name in names if name not in positional and name not in kwargs]
    if twice:
        problem = f"{_names(twice)} twice"
    elif unknown:
        problem = f"unknown {_names(unknown)}"
    elif missing and problem is None:
        problem = f"{_names(missing)} missing"
    if problem is not None:
        raise ArityError(f"kernel `{definition.name}` does not take these arguments", span,
                         expected=f"{definition.name}({', '.join(f'{p.name}: {p.annotation!r}' for p in definition.params)})",
                         found=problem)
    return {name: positional[name] if name in positional else kwargs[name] for name in names}


def _sizes(definition: KernelDef, bound: Mapping[str, object], trace: WorkloadTrace, frame: FrameType, span: Span) -> dict[str, int]:
    """Return the number of each name in the tile types of a kernel, from the views bound to them.

    Raises: T201 for a size that is known only in a run, or not the same for every view.
    """
    sizes: dict[str, int] = {}
    for position, param in enumerate(definition.params):
        if not isinstance(param.annotation, SizedTileAnnotation):
            continue
        at = argument_span(span, param.name, position)
        handled, tile = _view_of(definition, param, bound[param.name], at), param.annotation.type
        trace.keep(handled.owner)
        view = trace.use(handled.view, frame, span)
        dims = _dims(definition, param, view, at, expected=repr(tile), rank=len(tile.extents))
        for name, dim in zip(tile.extents[-len(dims):], dims, strict=True):
            if isinstance(name, str):
                size = tile_extent(dim)
                if not isinstance(size, s.Const):
                    raise ArgumentShapeError(f"kernel `{definition.name}`: size `{name}` of argument `{param.name}` is known only in a run",
                                             at, expected=repr(param.annotation), found=f"{print_scalar(size)}, {_about(view)}",
                                             help=".clip(rows, cols) bounds a view: the kernel is made for the bounds")
                check_size(definition, param, name, int(size.value), sizes, at)
        if len(dims) == 1 and isinstance(tile.extents[0], str):
            check_size(definition, param, tile.extents[0], 1, sizes, at)
    return sizes


def check_size(definition: KernelDef, param: KernelParam, name: str, size: int, sizes: dict[str, int], span: Span) -> None:
    """Add the number of a name to `sizes`.

    Raises: T201 if another argument gave it another number, or for none.
    """
    if size < 1 or sizes.setdefault(name, size) != size:
        raise ArgumentShapeError(f"kernel `{definition.name}`: size `{name}` of argument `{param.name}` does not fit", span,
                                 expected=f"{name} = {sizes[name]}, of an argument before" if size > 0 else "at least 1",
                                 found=f"{name} = {size}")


def _specialise(trace: WorkloadTrace, definition: KernelDef, constexprs: Mapping[str, object],
                dtypes: Mapping[str, DType]) -> Kernel:
    """Return the kernel traced for these constants and dtypes, cached within the trace by these and the captured values."""
    captured = _captured(definition.function)
    if captured is None:
        return definition.trace(constexprs, dtypes)
    key = (definition, tuple((n, type(v), repr(v)) for n, v in constexprs.items()), tuple(dtypes.items()), captured)
    cached = trace.kernels.get(key)
    if not isinstance(cached, Kernel):
        cached = definition.trace(constexprs, dtypes)
        trace.kernels[key] = cached
    return cached


def _captured(function: Callable[..., object], depth: int = 4) -> tuple[object, ...] | None:
    """Return a key of everything that a function reads from its scope; None if the scope may change between calls.

    Items of a list and attributes of an object may change, so a kernel that reads them is traced at each call.
    """
    code = getattr(function, "__code__", None)
    if code is None or depth == 0:
        return None
    cells = [_cell(cell) for cell in function.__closure__ or ()]
    scope = function.__globals__
    parts: list[object] = []
    for value in (*cells, *(scope.get(name) for name in code.co_names)):
        if isinstance(value, int | float | str | np.generic | None):
            parts.append((type(value), repr(value)))
        elif isinstance(value, FunctionType):
            inner = _captured(value, depth - 1)
            if inner is None:
                return None
            parts.append((value, inner))
        elif isinstance(value, ModuleType | type) or (_is_ours(value) and isinstance(value, Hashable)):
            parts.append(value)
        else:
            return None
    return tuple(parts)


def _cell(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_ours(value: object) -> bool:
    return type(value).__module__.startswith("pto_wsp.") and not isinstance(value, Symbolic | TensorView)


def _argument(definition: KernelDef, param: KernelParam, value: object, position: int, trace: WorkloadTrace, frame: FrameType,
              span: Span) -> tuple[wl.Arg, ...]:
    """Return the task's argument for a parameter; of a tile of rank 3 and more an argument for each of its tiles, none of a Constexpr."""
    annotation = param.annotation
    try:
        match annotation:
            case ConstexprAnnotation():
                return ()
            case ScalarAnnotation(dtype):
                return (wl.ScalarArg(param.name, trace.use(scalar_argument(definition, param, value, dtype, span), frame, span), span),)
            case TileAnnotation() | TensorAnnotation():
                handled = _view_of(definition, param, value, span)
                trace.keep(handled.owner)
                view = trace.use(handled.view, frame, span)
                if isinstance(annotation, TensorAnnotation):
                    check_region(definition, param, view, span)
                elif isinstance(annotation.type, StackType):
                    check_tile(definition, param, view, annotation.type, span)
                    return _parts(definition, param, view, annotation.type, trace, span)
                else:
                    check_tile(definition, param, view, annotation.type, span)
                return (wl.ViewArg(param.name, view, span),)
            case SizedTileAnnotation():
                raise InternalError("a tile without a size is bound", f"{definition.name}.{param.name}")
            case _:
                assert_never(annotation)
    except PtoError as problem:
        if problem.span == span:   # point at the argument, not at the whole call
            problem.span = argument_span(span, param.name, position)
        raise


def _parts(definition: KernelDef, param: KernelParam, view: View, stack: StackType, trace: WorkloadTrace, span: Span) -> tuple[wl.Arg, ...]:
    """Return the arguments for the tiles of a stack: the view at each index of its leading dimensions, whose extents stay as they are.

    Raises: T201 for a leading extent that is known only in a run.
    """
    leading = place_of(view).dims[:len(stack.leading)]
    if any(not isinstance(declared(dim.extent), s.Const) for dim in leading):
        shape = ", ".join(_extent_text(dim) for dim in place_of(view).dims)
        raise ArgumentShapeError(f"kernel `{definition.name}`: a leading extent of argument `{param.name}` is known only in a run", span,
                                 expected=repr(stack), found=f"[{shape}] {view.tensor.dtype}, {_about(view)}",
                                 help="rows and columns may have a valid part; loop over the leading positions in the workload")
    for dim in leading:
        for leaf in s.leaves(dim.extent):
            if isinstance(leaf, s.DimOf):
                trace.read_extent(leaf.tensor, leaf.dim)
    return tuple(wl.ViewArg(name, View(view.tensor, (*view.steps, *(Pick(0, s.Const(at)) for at in index))), span)
                 for name, index in zip(param.parts, stack.indices, strict=True))


def _view_of(definition: KernelDef, param: KernelParam, value: object, span: Span) -> TensorView:
    if isinstance(value, TensorView):
        return value
    raise ArgumentKindError(f"kernel `{definition.name}`: argument `{param.name}` is not a view of a tensor", span,
                            expected=repr(param.annotation), found=_shown(value),
                            help="wrap the array: X = Tensor(array), then X[b][t]" if is_array(value) else None)


def _shown(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array {list(value.shape)} of {value.dtype}"
    if is_array(value):
        return kind_of(value)
    return f"{type(value).__name__}: {value!r:.60}"


def scalar_argument(definition: KernelDef, param: KernelParam, value: object, dtype: DType, span: Span) -> s.Scalar:
    """Return the scalar of an argument.

    Raises: T205 for a value that is not a scalar, T102 for a value outside the parameter's dtype.
    """
    if isinstance(value, TensorView) and value.rank:
        raise ArgumentKindError(f"kernel `{definition.name}`: argument `{param.name}` is a scalar", span,
                                expected=repr(param.annotation), found=repr(value), help="pick one element: one index a dimension")
    try:
        node = as_scalar(value)
    except PtoError:
        raise ArgumentKindError(f"kernel `{definition.name}`: argument `{param.name}` is a scalar", span,
                                expected=repr(param.annotation), found=f"{type(value).__name__}: {value!r:.60}") from None
    if dtype.is_float:   # a Symbol has the dtype of its use
        node = s.substitute(node, lambda inner: replace(inner, dtype=dtype)
                            if isinstance(inner, s.SymbolRef) and inner.dtype is None and inner.default is None else None)
    if isinstance(node, s.Const) and not isinstance(node.value, float) and not dtype.holds(int(node.value)):
        raise ArgumentDTypeError(f"kernel `{definition.name}`: argument `{param.name}` does not fit {dtype}", span,
                                 expected=repr(param.annotation), found=str(node.value))
    kind = s.scalar_dtype(node)
    if kind.is_float and not dtype.is_float:
        raise ArgumentDTypeError(f"kernel `{definition.name}`: argument `{param.name}` is {dtype}", span,
                                 expected=repr(param.annotation), found=f"a float: {print_scalar(node)}")
    return node


def check_tile(definition: KernelDef, param: KernelParam, view: View, tile: TileType, span: Span) -> None:
    """Check that a view binds to a Tile parameter.

    Raises: T102, T103 or T201 otherwise.
    """
    dims = _dims(definition, param, view, span, expected=repr(tile), rank=len(extents_of(tile)))
    if view.tensor.dtype is not tile.dtype:
        raise ArgumentDTypeError(f"kernel `{definition.name}`: argument `{param.name}` has the wrong dtype", span,
                                 expected=repr(tile), found=f"{view.tensor.dtype}, {_about(view)}",
                                 help=f"wrap an array of dtype {tile.dtype}, or annotate {param.name} with DType.{view.tensor.dtype.name}")
    extents = extents_of(tile)[-len(dims):]
    fits = len(dims) >= 2 or tile.rows == 1
    for dim, extent in zip(dims, extents, strict=True):
        size = tile_extent(dim)
        fits = fits and (not isinstance(size, s.Const) or size.value == extent)
    if not fits:
        shape = ", ".join(_extent_text(dim) for dim in dims)
        raise ArgumentShapeError(f"kernel `{definition.name}`: argument `{param.name}` has the wrong shape", span,
                                 expected=repr(tile), found=f"[{shape}] {view.tensor.dtype}, {_about(view)}",
                                 help=_shape_help(view, dims, tile))


def tile_extent(dim: ViewDim) -> s.Scalar:
    """Return the extent of the tile that a dimension of a view binds to: of a clipped view, its limit."""
    return declared(dim.extent) if dim.limit is None else s.Const(dim.limit)


def check_region(definition: KernelDef, param: KernelParam, view: View, span: Span) -> None:
    """Check that a view binds to a Tensor parameter.

    Raises: T103 otherwise.
    """
    _dims(definition, param, view, span, expected="a view with two dimensions (or one, as a single row)")


def _dims(definition: KernelDef, param: KernelParam, view: View, span: Span, *, expected: str, rank: int = 2) -> tuple[ViewDim, ...]:
    dims = place_of(view).dims
    if len(dims) != rank and (rank > 2 or len(dims) != 1):
        shape = ", ".join(_extent_text(dim) for dim in dims)
        more = len(dims) - rank
        raise ArgumentRankError(f"kernel `{definition.name}`: argument `{param.name}` has {counted(len(dims), 'dimension')}", span,
                                expected=f"{expected}: {'two' if rank == 2 else rank} dimensions",
                                found=f"[{shape}] {view.tensor.dtype}, {_about(view)}",
                                help=f"index {more} more {'axis' if more == 1 else 'axes'}, e.g. "
                                     f"{print_view(view)}{'[…]' * more}" if more > 0 else None)
    return dims


def _about(view: View) -> str:
    return f"a view of `{view.tensor.shown}` {list(view.tensor.shape)}"


def _extent_text(dim: ViewDim) -> str:
    extent = declared(dim.extent)
    return print_scalar(extent)


def _shape_help(view: View, dims: tuple[ViewDim, ...], tile: TileType) -> str | None:
    extents = [declared(dim.extent) for dim in dims]
    if len(extents) == 2 and not isinstance(tile, StackType) and all(isinstance(e, s.Const) for e in extents):
        rows, cols = (int(e.value) for e in extents if isinstance(e, s.Const))
        if (cols, rows) == tile.shape:
            return f"transpose it: {print_view(view)}.T"
        if cols == tile.cols and rows % tile.rows == 0 and rows > tile.rows:
            return f"slice it: {print_view(view)}[i*{tile.rows}:(i+1)*{tile.rows}]"
        if cols == tile.cols and rows != tile.rows:
            return f"for a block that may be short: {print_view(view)}[i*{tile.rows}:].clip({tile.rows}, {tile.cols})"
    if len(extents) == 1 and tile.rows > 1:
        return f"a view of one dimension binds as one row; {tile!r} has {tile.rows}"
    return None


def _bracket(node: object, span: Span) -> s.Scalar:
    value = as_scalar(node)
    if not s.scalar_dtype(value).is_integer:
        raise NumberError("a bracket index is a whole number", span, found=repr(node))
    return value


def is_label(label: object) -> bool:
    """Tell whether a value is a task's label: printable text, or none."""
    return isinstance(label, str) and label.isprintable() and len(label) <= MAX_LABEL


def _label(definition: KernelDef, label: object, span: Span) -> str:
    if label is None:
        return ""
    if not isinstance(label, str) or not label.strip() or not is_label(label):
        raise ArgumentKindError(f"kernel `{definition.name}`: label= is text for people", span, found=f"{label!r:.60}",
                                expected=f'printable text of at most {MAX_LABEL} characters, e.g. label="layer 3 q"')
    return label


def _after(after: object, trace: WorkloadTrace, span: Span) -> tuple[int, ...]:
    handles = after if isinstance(after, Iterable) and not isinstance(after, MadeTask) else (after,)
    handle_ids: list[int] = []
    for entry in handles:
        handle = entry.handle if isinstance(entry, MadeTask) else entry
        if not isinstance(handle, TaskHandle):
            raise ValueScopeError("after= takes what kernel calls return", span, expected="a task handle, or a list of them",
                                  found=f"{type(handle).__name__}: {handle!r:.60}")
        if handle.trace is not trace:
            raise LoopVariableError(f"after= names a task of another workload: {handle!r}", span,
                                    help="order whole workloads with sequential(a, b) or a >> b")
        if trace.excludes(handle):
            raise LoopVariableError(f"after= names a task of another branch of the same choice: {handle!r}", span,
                                    help="only one of the branches runs, so there is nothing to wait for")
        handle_ids.append(handle.id)
    return tuple(dict.fromkeys(handle_ids))


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)

"""Describe views to the device runtime: tensor descriptors, the kernels that read them, and the runtime's limits.

A descriptor is a window in the dimensions of a tensor, which is contiguous on the device whatever the strides of the user's array.
`describe` folds the steps of a view into windows and finds the dimensions of rows and columns:

>>> describe(View(x, (Pick(0, Const(2)), Permute((1, 0))))).access     # x[2].T of a [4, 16, 128] tensor
ParamAccess(row_dim=2, col_dim=1, rows=None, cols=None, unit_cols=False, unit_rows=True, ...)

`find_uses` merges tasks that differ only in row and column counts into one kernel, which reads the counts from its descriptors.
`extent_checks` then guards the counts that a kernel treats as constants or as equal. The rest of the module reports what exceeds the
runtime's limits (tensors and scalars of a task, kernels of a program, nested scopes, empty arguments, unreadable elements).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import TypeAlias, assert_never

from pto_wsp.errors import DeviceLimitError, PtoError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.digest import kernel_digest
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import Do, children, evaluations, leaves, walk
from pto_wsp.ir.kernel import Kernel, MemoryParam, TileParam
from pto_wsp.ir.layout import Layout
from pto_wsp.ir.plan import Check, CheckKind, Submit, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, View, declared, print_view
from pto_wsp.npu.isa.runtime import limit
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.npu.plan.arguments import MAX_DIMS, extents_of
from pto_wsp.npu.plan.model import NpuItem, NpuKernel, NpuPlan, Reshaped, Scope, Window
from pto_wsp.source import Span
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class ViewSteps:
    """The steps of a descriptor, the access of its rows and columns, and their counts."""

    steps: tuple[Window | Reshaped, ...]
    access: ParamAccess
    extents: tuple[s.Scalar, s.Scalar]


@dataclass(slots=True)
class _Dim:
    """A dimension of the current view: the matching dimension of the underlying array, and the step between its elements."""

    dim: int
    step: int = 1


@dataclass(slots=True)
class _ArrayWindow:
    """A contiguous array and the window that the view's steps select. `whole`: extents of the array; `sizes`: declared extents."""

    whole: tuple[s.Scalar, ...]
    sizes: tuple[int, ...]
    offset: list[s.Scalar] = field(init=False)
    shape: list[s.Scalar] = field(init=False)
    dims: list[_Dim] = field(init=False)

    def __post_init__(self) -> None:
        self.offset = [s.Const(0)] * len(self.whole)
        self.shape = list(self.whole)
        self.dims = [_Dim(k) for k in range(len(self.whole))]

    def window(self) -> tuple[Window, ...]:
        """Return the window as a tuple of one, or an empty tuple if the window is the whole array."""
        everything = all(start == s.Const(0) for start in self.offset) and tuple(self.shape) == self.whole
        return () if everything else (Window(tuple(self.offset), tuple(self.shape)),)

    def stride(self, at: _Dim) -> int:
        """Return the distance in elements between neighbours along a dimension of the view."""
        return Layout.contiguous(self.sizes).strides[at.dim] * at.step

    def extent(self, at: _Dim) -> s.Scalar:
        """Return the extent of a dimension of the view."""
        return s.ceil_div(self.shape[at.dim], s.Const(at.step)) if at.step > 1 else self.shape[at.dim]

    def pick(self, position: int, index: s.Scalar) -> None:
        """Select one position of a dimension and drop the dimension."""
        axis = self.dims.pop(position)
        self._move(axis, index)
        self.shape[axis.dim] = s.Const(1)

    def cut(self, position: int, cut: Cut) -> None:
        """Select start, start + step, … below stop along a dimension."""
        axis = self.dims[position]
        rest = s.sub(self.shape[axis.dim], s.mul(cut.start, s.Const(axis.step)))
        wanted = s.mul(s.sub(cut.stop, cut.start), s.Const(axis.step))
        self._move(axis, cut.start)
        self.shape[axis.dim] = rest if cut.stop == s.ceil_div(self.shape[axis.dim], s.Const(axis.step)) else (
            wanted if axis.step == 1 else s.minimum(wanted, rest))
        self.dims[position] = _Dim(axis.dim, axis.step * cut.step)

    def clip(self, limits: Sequence[int | None]) -> None:
        """Limit each dimension to a number of positions; None: no limit."""
        for axis, n_positions in zip(self.dims, limits, strict=True):
            if n_positions is not None:
                self.shape[axis.dim] = s.minimum(self.shape[axis.dim], s.Const(n_positions * axis.step))

    def is_contiguous(self) -> bool:
        """Return whether the view's elements are contiguous in row-major order."""
        shape = [declared(self.extent(at)) for at in self.dims]
        extents = tuple(int(extent.value) if isinstance(extent, s.Const) else 0 for extent in shape)
        dense = Layout.contiguous(extents).strides
        return 0 in extents or all(extent == 1 or self.stride(at) == want
                                   for extent, at, want in zip(extents, self.dims, dense, strict=True))

    def _move(self, at: _Dim, index: s.Scalar) -> None:
        self.offset[at.dim] = s.add(self.offset[at.dim], s.mul(index, s.Const(at.step)))


def describe(view: View, span: Span, *, allocated: bool = False) -> ViewSteps:
    """Return the descriptor of a view of rank 1 or 2, with declared constant extents in its access.

    `allocated`: the tensor is not an argument, so its declared extents are its actual extents.

    Raises: N101 for more dimensions than the runtime supports, and for reshaping a view that is not contiguous on the device.
    """
    tensor = view.tensor
    frame = _ArrayWindow(extents_of(tensor, allocated=allocated), tensor.shape)
    _check_rank(view, tensor.shape, span)
    steps: list[Window | Reshaped] = []
    for step in view.steps:
        match step:
            case Pick(dim, index):
                frame.pick(dim, index)
            case Cut(dim):
                frame.cut(dim, step)
            case Clip(limits):
                frame.clip(limits)
            case Permute(order):
                frame.dims = [frame.dims[k] for k in order]
            case Reshape(shape):
                _check_rank(view, shape, span)
                if not frame.is_contiguous():
                    raise DeviceLimitError(f"`{print_view(view)}` reshapes what does not lie contiguously on the device", span,
                                           expected="a contiguous view of a tensor in row-major order",
                                           help="bind the array in the shape that the kernels need")
                for at in frame.dims:
                    if at.step > 1:   # a contiguous stepped dimension has at most one position
                        frame.shape[at.dim] = s.minimum(frame.shape[at.dim], s.Const(1))
                steps += (*frame.window(), Reshaped(shape))
                frame = _ArrayWindow(tuple(s.Const(extent) for extent in shape), shape)
            case _:
                assert_never(step)
    return ViewSteps((*steps, *frame.window()), _access(frame), _extents(frame))


def _check_rank(view: View, shape: tuple[int, ...], span: Span) -> None:
    if len(shape) > MAX_DIMS:
        raise DeviceLimitError(f"`{print_view(view)}` has too many dimensions for the device runtime", span,
                               expected=f"at most {MAX_DIMS} dimensions", found=f"{len(shape)}: {list(shape)}",
                               help="wrap the array with its leading dimensions as one: Tensor(array.reshape(-1, ...))")


def _rows_and_columns(frame: _ArrayWindow) -> tuple[_Dim | None, _Dim]:
    """Return the dimensions of rows and columns; a view of rank 1 is a single row."""
    *rows, cols = frame.dims
    return rows[0] if rows else None, cols


def _extents(frame: _ArrayWindow) -> tuple[s.Scalar, s.Scalar]:
    rows, cols = _rows_and_columns(frame)
    return s.Const(1) if rows is None else frame.extent(rows), frame.extent(cols)


def _access(frame: _ArrayWindow) -> ParamAccess:
    rows, cols = _rows_and_columns(frame)
    n_rows, n_cols = (_declared(extent) for extent in _extents(frame))
    unit_cols = n_cols == 1 or frame.stride(cols) == 1
    if rows is None:
        return ParamAccess(None, cols.dim, 1, cols.step, n_rows, n_cols, unit_cols, True)
    return ParamAccess(rows.dim, cols.dim, rows.step, cols.step, n_rows, n_cols, unit_cols, n_rows == 1 or frame.stride(rows) == 1)


def _declared(extent: s.Scalar) -> int | None:
    number = declared(extent)
    return int(number.value) if isinstance(number, s.Const) else None


def merged_access(accesses: Sequence[ParamAccess]) -> ParamAccess:
    """Merge accesses that differ only in extents: an extent that differs between them is read at run time."""
    first = accesses[0]
    rows = first.rows if all(access.rows == first.rows for access in accesses) else None
    cols = first.cols if all(access.cols == first.cols for access in accesses) else None
    return replace(first, rows=rows, cols=cols)


def with_constant_window(found: ViewSteps, access: ParamAccess) -> ViewSteps:
    """Return the descriptor with the access's constant extents put into its window; `extent_checks` guards those constants."""
    last = found.steps[-1] if found.steps else None
    if not isinstance(last, Window):
        return found
    shape = list(last.shape)
    extents = list(found.extents)
    axes = (access.row_dim, access.row_step, access.rows), (access.col_dim, access.col_step, access.cols)
    for at, (dim, step, extent) in enumerate(axes):
        if dim is not None and step == 1 and extent is not None:
            shape[dim] = extents[at] = s.Const(extent)
    return replace(found, steps=(*found.steps[:-1], Window(last.offset, tuple(shape))), extents=(extents[0], extents[1]))


# -- limits of the runtime -------------------------------------------------------------------------


MAX_TENSORS, MAX_SCALARS, MAX_KERNELS, MAX_SCOPES = map(limit, ("tensors", "scalars", "callables", "scopes"))
READS_COMPUTED = "tensormap_and_ringbuffer"


def limit_errors(plan: NpuPlan) -> tuple[PtoError, ...]:
    """Return an error for each task, and for the program, that exceeds a limit of the runtime."""
    errors: list[PtoError] = []
    for launch in leaves(plan.body):
        kernel = plan.kernels[launch.kernel]
        for what, found, most in (("tensors", len(launch.arguments), MAX_TENSORS), ("scalars", len(launch.scalars), MAX_SCALARS)):
            if found > most:
                errors.append(DeviceLimitError(f"a task of kernel `{kernel.kernel.name}` has too many {what}", launch.span,
                                               expected=f"at most {most} {what}", found=f"{found} {what}", help=_HELP[what]))
    if len(plan.kernels) > MAX_KERNELS:
        errors.append(_too_many(plan.kernels))
    errors += _too_deep(plan.body, 1)      # the runtime opens one scope around all tasks
    return tuple(errors)


def _too_deep(item: NpuItem, depth: int) -> Iterator[PtoError]:
    """Yield an error for the first scope that is nested too deeply."""
    depth += isinstance(item, Scope)
    if depth > MAX_SCOPES:
        yield DeviceLimitError("tensors that the runtime allocates lie in too many scopes", next(leaves(item)).span,
                               expected=f"at most {MAX_SCOPES} scopes, that around all tasks among them", found=f"{depth}",
                               help="make some of the tensors outside of the innermost loops")
        return
    for inner in children(item):
        yield from _too_deep(inner, depth)


def empty_errors(plan: TaskPlan) -> tuple[PtoError, ...]:
    """Return an error for each task argument that is empty by its declared shape: every tile has at least one element."""
    errors: list[PtoError] = []
    for task in submits(plan):
        for place in task.places:
            extents = tuple(declared(extent) for extent in place.extent)
            if s.Const(0) in extents:
                shape = ", ".join(print_scalar(extent) for extent in extents)
                errors.append(DeviceLimitError(f"kernel `{plan.kernels[task.kernel].kernel.name}` is given no elements", task.span,
                                               expected="at least one row and one column, as every tile has",
                                               found=f"`{print_view(place.view)}`, which is [{shape}]",
                                               help="leave the task out, or declare the extents that there will be when it runs"))
    return tuple(errors)


def runtime_errors(plan: NpuPlan, runtime: str) -> tuple[PtoError, ...]:
    """Return an error for each task and loop that needs elements which the named runtime cannot read.

    Only the runtime READS_COMPUTED reads elements that tasks write: the other runtimes create all tasks before the first one runs.
    """
    errors: list[PtoError] = []
    written = {slot.ref.id for slot in plan.tensors if slot.writes or slot.allocated}
    found = ((span, node) for item in walk(plan.body) for span, parts in _evaluated_scalars(item) for node in nodes(parts)
             if isinstance(node, s.Element))
    for span, node in dict.fromkeys(found):
        if runtime != READS_COMPUTED and node.tensor.id in written:
            errors.append(DeviceLimitError(f"the runtime {runtime} cannot read `{print_scalar(node)}`, which tasks write", span,
                                           expected=f"the runtime {READS_COMPUTED}, or a tensor that tasks only read", found=runtime,
                                           help=f"{runtime} makes all tasks before it runs one; make the number a Symbol, or give it in a "
                                                "tensor"))
        elif node.tensor.dtype not in _READABLE:
            errors.append(DeviceLimitError(f"the device's runtime cannot read `{print_scalar(node)}`", span,
                                           expected=f"one of {', '.join(map(str, _READABLE))}", found=str(node.tensor.dtype),
                                           help="hold the numbers that make tasks in an integer tensor"))
    return tuple(errors)


def _evaluated_scalars(item: NpuItem) -> Iterator[tuple[Span, object]]:
    """Yield the scalars that an item evaluates while tasks are created, with source positions; nested items are left out."""
    match item:
        case Do(launch):
            yield launch.span, launch
        case Scope(intermediates=intermediates) if intermediates:
            yield next(leaves(item)).span, intermediates
        case _:
            yield from ((each.span, each.scalars) for each in evaluations(item))


_READABLE = (DType.I8, DType.I16, DType.I32, DType.I64, DType.U8, DType.U16, DType.U32, DType.U64, DType.BOOL, DType.F32, DType.F64)
_HELP = {"tensors": "pack some into one tensor and take views of it in the kernel, or split the kernel",
         "scalars": "pass some in a tensor, or make them Constexpr"}


def _too_many(kernels: Sequence[NpuKernel]) -> PtoError:
    return DeviceLimitError("the program has too many kernels", kernels[MAX_KERNELS].kernel.span, expected=f"at most {MAX_KERNELS}",
                            found=f"{len(kernels)} for one core each",
                            help="make what differs between them Scalar, bind views that lie in memory alike, or make several programs")


# -- checks of extents -----------------------------------------------------------------------------


Pair: TypeAlias = tuple[s.Scalar, s.Scalar]


def extent_checks(task: Submit, kernel: Kernel, arguments: Sequence[ViewSteps], access: Sequence[ParamAccess]) -> tuple[Check, ...]:
    """Return the checks of a task for the extents that its kernel treats as constants or as equal to each other.

    Checks that the task already has are left out.
    """
    found: dict[Check, None] = {}

    def check(value: s.Scalar, wanted: s.Scalar, at: int) -> None:
        subject, param = print_view(task.places[at].view), kernel.memory_params[at].name
        found[Check(CheckKind.TILE, value, wanted, wanted, subject, param, task.span)] = None

    for at, (described, one) in enumerate(zip(arguments, access, strict=True)):
        for dim, (known, first) in enumerate(((one.rows, one.row_group), (one.cols, one.col_group))):
            extent = described.extents[dim]
            if known is not None and not isinstance(extent, s.Const):
                check(extent, s.Const(known), at)
            if first is not None:
                same = arguments[first].extents[dim]
                dims = _differing_dims(extent, same)      # no loop changes dimensions of tensors, so one comparison of them is enough
                for value, wanted in ((extent, same),) if dims is None else dims:
                    check(value, wanted, at)
    made = {(check.value, check.lower, check.upper) for check in task.note.checks}
    return tuple(check for check in found if (check.value, check.lower, check.upper) not in made)


def _differing_dims(one: s.Scalar, other: s.Scalar) -> tuple[Pair, ...] | None:
    """Return the pairs of tensor dimensions whose equality implies that two scalars are equal; None if the scalars differ otherwise.

    >>> _differing_dims(minimum(sub(DimOf(y, 0), i), Const(16)), minimum(sub(DimOf(x, 0), i), Const(16)))
    ((DimOf(y, 0), DimOf(x, 0)),)
    """
    match one, other:
        case _ if one == other:
            return ()
        case s.DimOf(), s.DimOf():
            return ((one, other),)
        case (s.Unary(op), s.Unary(same)) | (s.Binary(op), s.Binary(same)) if op is same:
            inside = [_differing_dims(*pair) for pair in zip(s.children(one), s.children(other), strict=True)]
            known = [pairs for pairs in inside if pairs is not None]
            return tuple(pair for pairs in known for pair in pairs) if len(known) == len(inside) else None
        case _:
            return None


# -- kernels of a plan -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NpuUse:
    """A kernel and the access of each memory parameter. `shared`: pairs of parameters that some task binds to one tensor."""

    kernel: Kernel
    access: tuple[ParamAccess, ...]
    shared: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class NpuTask:
    """A task site: the index of its use, its descriptors, and the checks of extents that its kernel relies on."""

    use: int
    arguments: tuple[ViewSteps, ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class NpuUses:
    """The uses in order of their first task, and the tasks by site."""

    uses: tuple[NpuUse, ...]
    tasks: Mapping[int, NpuTask]


def find_uses(plan: TaskPlan) -> NpuUses:
    """Return the kernels that a plan runs on the NPU, and its tasks with their descriptors.

    Tasks share a use if their kernels are equal and their accesses differ in row and column counts only.

    Raises: N101 for a view without a descriptor.
    """
    numbers: dict[object, int] = {}
    members: list[list[tuple[Submit, tuple[ViewSteps, ...]]]] = []
    for task in submits(plan):
        arguments = tuple(describe(place.view, task.span, allocated=plan.tensors[place.slot].allocated) for place in task.places)
        kernel = plan.kernels[task.kernel].kernel
        fits = tuple(_with_fixed_extents(param, found) for param, found in zip(kernel.memory_params, arguments, strict=True))
        arguments = tuple(replace(found, access=access) for found, access in zip(arguments, fits, strict=True))
        key = kernel_digest(kernel), tuple(replace(access, rows=None, cols=None) for access in fits)
        if key not in numbers:
            numbers[key] = len(members)
            members.append([])
        members[numbers[key]].append((task, arguments))
    uses = tuple(_use(plan.kernels[group[0][0].kernel].kernel, group) for group in members)
    tasks = {task.site: NpuTask(number, tuple(with_constant_window(found, access) for found, access in zip(arguments, uses[number].access,
                                                                                                   strict=True)),
                                extent_checks(task, uses[number].kernel, arguments, uses[number].access))
             for number, group in enumerate(members) for task, arguments in group}
    return NpuUses(uses, tasks)


def _with_fixed_extents(param: MemoryParam, found: ViewSteps) -> ParamAccess:
    """Return the access with the extents that a kernel may rely on.

    These are the extents of a tile, and of a region the columns and a constant row count: a region may have another number of rows when
    another array is bound.
    """
    access = found.access
    if isinstance(param, TileParam):
        rows, cols = param.type.shape
        return replace(access, rows=rows if access.rows == rows else None, cols=cols if access.cols == cols else None)
    return access if isinstance(found.extents[0], s.Const) else replace(access, rows=None)


def _use(kernel: Kernel, group: Sequence[tuple[Submit, tuple[ViewSteps, ...]]]) -> NpuUse:
    names = [param.name for param in kernel.memory_params]
    access = tuple(merged_access([arguments[k].access for _, arguments in group]) for k in range(len(names)))
    shared = {(one, other) for task, _ in group
              for one, first in zip(names, task.places, strict=True)
              for other, second in zip(names, task.places, strict=True) if one != other and first.slot == second.slot}
    rows, cols = (_comparable([tuple(arguments[k].extents[dim] for _, arguments in group) for k in range(len(names))],
                              [param.role.writes for param in kernel.memory_params]) for dim in (0, 1))
    grouped = tuple(replace(one, row_group=None if one.rows is not None else _group(rows, k),
                            col_group=None if one.cols is not None else _group(cols, k), memory=memory)
                    for k, (one, memory) in enumerate(zip(access, _memories(kernel, shared), strict=True)))
    return NpuUse(kernel, grouped, frozenset(shared))


def _memories(kernel: Kernel, shared: Set[tuple[str, str]]) -> list[int | None]:
    """Return an alias class for each memory parameter that may alias a written one; None for the others."""
    found = {param.name: k for k, param in enumerate(kernel.memory_params)}
    writes = {param.name for param in kernel.memory_params if param.role.writes}
    meeting = [(one, other) for one, other in sorted(shared) if one in writes or other in writes]
    for one, other in meeting:
        first, then = sorted((found[one], found[other]))
        found = {name: first if number == then else number for name, number in found.items()}
    met = {name for pair in meeting for name in pair}
    return [found[param.name] if param.name in met else None for param in kernel.memory_params]


def _comparable(extents: Sequence[tuple[s.Scalar, ...]], written: Sequence[bool]) -> list[tuple[s.Scalar, ...]]:
    """Return the extents, replaced by their declared values if an output has the same declared value: a check keeps those equal."""
    told = [tuple(declared(extent) for extent in one) for one in extents]
    outputs = {one for one, is_output in zip(told, written, strict=True) if is_output}
    return [short if short in outputs else one for one, short in zip(extents, told, strict=True)]


def _group(extents: Sequence[tuple[s.Scalar, ...]], k: int) -> int | None:
    """Return the first parameter whose extents equal those of parameter `k` in every task; None if `k` has no equal."""
    return extents.index(extents[k]) if extents.count(extents[k]) > 1 else None

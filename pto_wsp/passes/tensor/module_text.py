"""Print a function in tiled form: its kernels, its tasks and the functions around them, line by line."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from pto_wsp.errors import NoTileFormError
from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import Const, Element, Scalar, SymbolRef, Var, add, ceil_div, leaves, mul, sub
from pto_wsp.ir.tensor_function import Array, ArrayConstant, ArrayView, Body, Make, Put, TensorFunction
from pto_wsp.ir.view import Cut
from pto_wsp.passes.tensor.emitted import EmittedModule, ModuleTensor
from pto_wsp.passes.tensor.flatten import ExtentLimits
from pto_wsp.passes.tensor.kernel_call import RESERVED, KernelCall, ModuleLine, identifier
from pto_wsp.passes.tensor.kernel_text import kernel_of
from pto_wsp.passes.tensor.own_results import in_shape_of_results, with_own_results
from pto_wsp.passes.tensor.scalar_text import FUNCTIONS, scalar_text
from pto_wsp.passes.tensor.scratch import Run, Segment, plan_scratch
from pto_wsp.passes.tensor.substitute import substituted
from pto_wsp.source import UNKNOWN, Span

_IMPORTED = ("DType", "In", "InOut", "Injective", "Mesh", "Monotone", "Out", "P", "Partial", "Replicate", "Scalar", "Shard", "Symbol",
             "Tensor", "TensorLayout", "Tile", "all_to_all", "allgather", "allreduce", "broadcast", "ceildiv", "halo", "kernel",
             *sorted(FUNCTIONS.values()), "pto", "reduce_scatter", "relayout", "workload")
_TAKEN = RESERVED | {*_IMPORTED, "np", "cache", "run", "program"}
_OF_RUN = {*keyword.kwlist, "program", "np", "ceildiv", *FUNCTIONS.values(), *(dtype.name for dtype in DType)}


class ModuleText:
    """The printer of one module. `RankedModuleText` prints functions over ranks."""

    def __init__(self, function: TensorFunction, for_device: bool) -> None:
        self._for_device = for_device
        self._function = in_shape_of_results(with_own_results(function, of_state=True))
        self._homes = plan_scratch(self._function)
        self._limits = ExtentLimits(function.bounds)
        wanted = {identifier(_kernel_name(part)) for parts in self._homes.segments.values() for part in parts if isinstance(part, Run)}
        name = Names(_TAKEN).take(identifier(function.name))
        self._name = name
        self._names = Names(_TAKEN | {name} | wanted)          # of tensors, symbols and loop variables: kernels keep their names
        self._of_kernels = Names(_TAKEN | {name}, "{}_k{}".format)     # no tensor is called so
        self._kernels: dict[tuple[str, ...], str] = {}
        self._kernel_lines: list[ModuleLine] = []
        self._groups: dict[str, str] = {}
        self._dtypes: set[DType] = set()
        given = (*(one.array for one in function.params), *(one.array for one in function.constants))
        self._given: dict[int, Array] = {array.id: array for array in given}
        self._bound_of = _parts(self._function)
        self._spelled: dict[str, str] = {}
        self._tensors: dict[int, str] = {}
        self._variables: dict[Var, str] = {}
        self._used: set[str] = set()          # symbols that the workload knows, so that a run may bind them
        self._mesh = ""                       # name of the mesh in the module
        self._keep: list[Body] = []           # bodies made here: segments are known by the identity of their body

    def write(self) -> EmittedModule:
        """Return the function as a module of kernels and a workload."""
        function = self._function
        name = self._name
        bound = self._bound()
        for symbol in (*self._named_symbols(), *function.scalars):
            self._spelled[symbol.name] = self._of_kernels.take(self._variable(symbol.name, self._names))
        constants = {one.array.id: self._of_kernels.take(self._variable(one.array.name, self._names)) for one in function.constants}
        self._tensors = {one.array.id: one.variable for one in bound} | constants
        body = self._body(bound)
        known = frozenset(self._used)
        lines = self._assembled(name, bound, constants, body, known)
        text = "".join(f"{'    ' * line.depth}{line.text}".rstrip() + "\n" for line in lines)
        spans = {number: line.span for number, line in enumerate(lines, 1) if line.span != UNKNOWN}
        digest = sha256(f"{text}{sorted(spans.items(), key=lambda pair: pair[0])}".encode()).hexdigest()[:8]
        return EmittedModule(name, text, bound, self._symbols, function.scalars, self._groups,
                             f"<tensor function {function.name} {digest}>", spans, dict(self._spelled),
                             self.mesh)

    # -- what ranks change ---------------------------------------------------------------------------------------------
    mesh: Mesh | None = None

    @property
    def _symbols(self) -> tuple[SymbolRef, ...]:
        """The sizes that a run binds."""
        return self._function.symbols

    def _named_symbols(self) -> Iterable[SymbolRef]:
        """Return the symbols that have names in the module."""
        return self._function.symbols

    def _body(self, bound: Sequence[ModuleTensor]) -> list[ModuleLine]:
        """Return the body of the workload as lines."""
        return self._tasks(self._function.body, 1, self._names.inner(), {})

    def _over_all(self, array: Array) -> Array:
        """Return an array with its extents over all ranks."""
        return array

    def _layout_text(self, one: int) -> str:
        """Return the layout of an array as text; "" without ranks."""
        return ""

    # -- tensors -------------------------------------------------------------------------------------------------------
    def _bound(self) -> tuple[ModuleTensor, ...]:
        names = Names(_OF_RUN)
        params = [(names.take(identifier(param.path or param.array.name)), param) for param in self._function.params]
        inputs = tuple(ModuleTensor(name, param.path or param.array.name, self._over_all(param.array), self._of_tensor(name), False,
                                    self._layout_text(param.array.id)) for name, param in params)
        results = tuple(names.take("out" if k == 0 else f"out_{k}") for k in range(len(self._function.results)))
        arrays = [self._over_all(replace(view.array, shape=view.shape, contracts=())) for view in self._function.results]
        outputs = tuple(ModuleTensor(name, name, array, self._of_tensor(name), True, self._layout_text(array.id))
                        for name, array in zip(results, arrays, strict=True))
        return (*inputs, *outputs)

    def _of_tensor(self, name: str) -> str:
        """Return the variable of a tensor that a run binds: no kernel is called so, a numbered one neither."""
        return self._of_kernels.take(self._variable(name, self._names))

    def _variable(self, wanted: str, names: Names) -> str:
        """Return a variable of the workload: the name, or `name_tensor` where a kernel is called so."""
        spelled = identifier(wanted)
        taken = names.inner().take(spelled)
        return names.take(taken if taken == spelled else f"{spelled}_tensor")

    def tensor(self, array: Array) -> str:
        """Return the name of the tensor that an array is."""
        self._used |= {extent.name for extent in array.shape if isinstance(extent, SymbolRef)}
        return self._tensors[array.id]

    def array(self, number: int) -> Array:
        """Return an array of the function by its id."""
        return self._given.get(number) or next(
            array for leaf in flow.leaves(self._function.body) for array in leaf.defines if array.id == number)

    @property
    def has_fixed_parts(self) -> bool:
        """Whether parts of a kernel's buffers start at constants alone."""
        return self._for_device

    def scalar(self, node: Scalar) -> str:
        """Return a scalar as text of the workload."""
        return scalar_text(node, self._leaf)

    def _leaf(self, node: Scalar) -> str | None:
        match node:
            case Var():
                return self._variables[node]
            case SymbolRef(name):
                self._used.add(name)
                return self._spelled[name]
            case Element(tensor, index):
                return f"{self._tensors[tensor.id]}[{', '.join(map(self.scalar, index))}]"
            case _:
                return None

    # -- tasks ---------------------------------------------------------------------------------------------------------
    def _tasks(self, body: Body, depth: int, names: Names, variables: dict[Var, str]) -> list[ModuleLine]:
        """Return a body of tasks as lines."""
        return self._segments(self._homes.inside(body), depth, names, variables) or [ModuleLine("pass", depth)]

    def _segments(self, segments: Iterable[Segment], depth: int, names: Names, variables: dict[Var, str]) -> list[ModuleLine]:
        lines: list[ModuleLine] = []
        for segment in segments:
            self._variables = variables
            if isinstance(segment, Run):
                lines.extend(self._call(segment, depth, names, variables))
            elif isinstance(segment, flow.Do):
                assert isinstance(segment.leaf, Make)
                lines.extend(self._made(segment.leaf, depth, names, variables))
            elif isinstance(segment, flow.Loop):
                lines.extend(self._loop(segment, depth, names, variables))
            elif isinstance(segment, flow.Choice):
                lines.extend(self._choice(segment, depth, names, variables))
            elif isinstance(segment, flow.Sequence):
                lines.extend(self._tasks(segment, depth, names, variables))
            else:
                raise NoTileFormError("only loops and branches stand in a function on tensors", self._function.span,
                                    found=type(segment).__name__)
        return lines

    def _loop(self, loop: Any, depth: int, names: Names, variables: dict[Var, str],
              tasks: Callable[..., list[ModuleLine]] | None = None) -> list[ModuleLine]:
        """Return a loop as lines. `tasks` prints the body of an ordered loop."""
        inner = names.inner()
        name = inner.take(identifier(loop.var.name))
        plain = loop.start == Const(0) and loop.step == Const(1)
        count = loop.stop if plain else ceil_div(sub(loop.stop, loop.start), loop.step)
        body = loop.body
        if not plain:
            position = add(loop.start, mul(loop.var, loop.step))
            body = substituted(body, {loop.var: position})
            self._homes.adopt(body)
            self._keep.append(body)
        ordered = loop.ordered or tasks is not None or _writes_by_table(body)
        head = f"for {name} in {'P.seq' if ordered else 'P'}({self.scalar(count)}):"
        inside = (tasks or self._tasks)(body, depth + 1, inner, {**variables, loop.var: name})
        self._variables = variables
        return [ModuleLine(head, depth, loop.span if loop.span != UNKNOWN else first_span(inside)), *inside]

    def _choice(self, choice: Any, depth: int, names: Names, variables: dict[Var, str],
                tasks: Callable[..., list[ModuleLine]] | None = None) -> list[ModuleLine]:
        tasks = tasks or self._tasks
        lines: list[ModuleLine] = []
        for k, branch in enumerate(choice.branches):
            self._variables = variables
            lines.append(ModuleLine(f"with P.{'elif_' if k else 'when'}({self.scalar(branch.condition)}):", depth, branch.span))
            lines.extend(tasks(branch.body, depth + 1, names.inner(), variables))
        if choice.otherwise.items:
            lines.append(ModuleLine("with P.otherwise():", depth))
            lines.extend(tasks(choice.otherwise, depth + 1, names.inner(), variables))
        return lines

    def _made(self, make: Make, depth: int, names: Names, variables: dict[Var, str]) -> list[ModuleLine]:
        assert make.fill is None, "a kernel of its own fills it, see partition"
        return [] if make.array.id in self._tensors else [self._scratch(make.array, depth, names, make.span)]

    def _scratch(self, array: Array, depth: int, names: Names, span: Span) -> ModuleLine:
        name = self._variable(array.name, names)
        self._tensors[array.id] = name
        self._dtypes.add(array.dtype)
        rooms = [self._room(extent) for extent in array.shape]
        shape = ", ".join(self.scalar(room) for room in rooms) + "," * (array.rank == 1)
        cuts = [":" if room == extent else f":{self.scalar(extent)}" for room, extent in zip(rooms, array.shape, strict=True)]
        part = f"[{', '.join(cuts)}]" if any(cut != ":" for cut in cuts) else ""
        return ModuleLine(f"{name} = Tensor.empty(({shape}), {array.dtype.name}){part}", depth, span)

    def _room(self, extent: Scalar) -> Scalar:
        """Return the number of positions to allocate for an extent: the upper bound for an extent that tasks compute."""
        computed = any(isinstance(leaf, Element) and leaf.tensor.id not in self._given for leaf in leaves(extent))
        return self._bound_of.get(extent, extent) if computed else extent

    def _call(self, run: Run, depth: int, names: Names, variables: dict[Var, str]) -> list[ModuleLine]:
        lines = [self._scratch(array, depth, names, UNKNOWN) for array in self._homes.leaving(run) if array.id not in self._tensors]
        self._variables = variables
        try:
            call = kernel_of(run, self._homes, self._limits, self)
        except NoTileFormError as problem:
            problem.group = run.group
            raise
        name = self._kernel(call, _kernel_name(run))
        self._dtypes |= call.dtypes
        index = f"[{', '.join(list(variables.values())[-8:])}]" if variables else ""
        return [*lines, ModuleLine(f"{name}{index}({', '.join(call.arguments)})", depth, call.span)]

    def _kernel(self, call: KernelCall, wanted: str) -> str:
        """Return the name of a kernel; the kernel is printed unless one of the same shape has been."""
        if call.shape not in self._kernels:
            name = self._of_kernels.take(identifier(wanted))
            self._kernels[call.shape] = name
            self._groups[name] = wanted
            self._kernel_lines += [ModuleLine(""), ModuleLine(""), ModuleLine("@kernel", 0, call.span),
                                   ModuleLine(f"def {name}({', '.join(call.params)}):", 0, call.span), *call.body]
        return self._kernels[call.shape]

    # -- the module ----------------------------------------------------------------------------------------------------
    def _assembled(self, name: str, bound: Sequence[ModuleTensor], constants: Mapping[int, str],
                   body: list[ModuleLine], known: frozenset[str]) -> list[ModuleLine]:
        function = self._function
        symbols = [self._spelled[symbol.name] for symbol in (*self._symbols, *function.scalars)]
        self._dtypes |= {one.array.dtype for one in bound} | {one.array.dtype for one in function.constants}
        self._dtypes |= {symbol.dtype for symbol in function.scalars if symbol.dtype is not None}
        head = [f"{dtype.name} = DType.{dtype.name}" for dtype in sorted(self._dtypes, key=lambda dtype: dtype.name)]
        head += [f"{constants[one.array.id]} = {_constant_text(one, constants[one.array.id], self._layout_text(one.array.id))}"
                 for one in function.constants]
        if self.mesh is not None:
            head.append(f"{self._mesh} = {self.mesh!r}")
        parameters = ", ".join([*(one.variable for one in bound), *symbols])
        lines = [*_plain("\n".join(head)), *self._kernel_lines, *_plain("\n\n@workload", function.span),
                 ModuleLine(f"def {name}({parameters}):", 0, function.span), *body]
        tail = _TAIL.format(symbols=", ".join(f"{text!r}: Symbol({text!r})" for text in symbols), parameters=", ".join(symbols),
                            tensors="\n".join(f"        {one.name!r}: {self._declared(one)}," for one in bound), name=name)
        read = {word for line in body for word in re.findall(r"[A-Za-z_]\w*", line.text)}
        lines += _plain(tail + self._run_text(bound, known, read))
        used = {word for line in lines for word in re.findall(r"[A-Za-z_]\w*", line.text)}
        imports = f'"""The function `{function.name}` as kernels and a workload."""\n\n' + "import math\n" * ("math" in used)
        imports += "from functools import cache\n\n" + "import numpy as np\n\n" * ("np" in used)
        imports += f"from pto_wsp import {', '.join(one for one in _IMPORTED if one in used)}\n"
        return [*_plain(imports), *lines]

    def _declared(self, one: ModuleTensor) -> str:
        layout = f", layout={one.layout}" if one.layout else ""
        text = f"Tensor(shape=({self._shape(one.array)}), dtype={one.array.dtype.name}, name={one.name!r}{layout})"
        for contract in () if one.is_result else one.array.contracts:      # a contract is of what tasks only read
            text = f"{contract.value.capitalize()}({text})"
        return text

    def _run_text(self, bound: Sequence[ModuleTensor], known: frozenset[str], read: set[str]) -> str:
        """Return the text of `run`, which binds tensors and symbols. `known`: symbols of the workload; `read`: words of its text."""
        function = self._function
        inputs = [one for one in bound if not one.is_result]
        outputs = [one for one in bound if one.is_result]
        scalars = [self._spelled[one.name] for one in function.scalars]
        bindable = {self._spelled[name] for name in known}
        sizes: dict[str, str] = {}
        for one in inputs:
            for dim, extent in enumerate(one.array.shape):
                if isinstance(extent, SymbolRef) and extent in self._symbols:
                    sizes.setdefault(self._spelled[extent.name], f"{one.name}.shape[{dim}]")
        made = [f"{name} = {text}" for name, text in sizes.items()]
        made += [f"{one.name} = np.empty(({self._shape(one.array)}), {one.array.dtype.name}.np)" for one in outputs]
        names = [*(one.name for one in bound if one.variable in read), *(one for one in (*sizes, *scalars) if one in bindable)]
        bindings = ", ".join(f"{name}={name}" for name in names)
        made.append(f"program().run({bindings})")
        if outputs:
            made.append(f"return {', '.join(one.name for one in outputs)}")
        parameters = ", ".join([*(one.name for one in inputs), *scalars])
        return _RUN.format(parameters=parameters, body="\n".join(f"    {line}" for line in made))

    def _shape(self, array: Array) -> str:
        return ", ".join(map(self.scalar, array.shape)) + "," * (array.rank == 1)


_TAIL = '''

def symbols():
    """Return the sizes and numbers that each run binds."""
    return {{{symbols}}}


def tensors({parameters}):
    """Return the tensors that each run binds."""
    return {{
{tensors}
    }}


@cache
def program():
    """Return the compiled workload, for arrays of any sizes."""
    sizes = symbols().values()
    return {name}(*tensors(*sizes).values(), *sizes).compile()
'''
_RUN = '''

def run({parameters}):
    """Return what the function gives for arrays."""
{body}
'''


def _plain(text: str, span: Span = UNKNOWN) -> list[ModuleLine]:
    """Return text as lines of the module that come from one line of the user's, or none."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return [ModuleLine(line.lstrip(" "), (len(line) - len(line.lstrip(" "))) // 4, span) for line in lines]


def _parts(function: TensorFunction) -> dict[Scalar, Scalar]:
    """Return by the extent of a part, which data may say, the extent of what the part is taken of."""
    found: dict[Scalar, Scalar] = {}
    for leaf in flow.leaves(function.body):
        for view in leaf.views:
            for place, step in enumerate(view.steps):
                if isinstance(step, Cut) and step.step == 1:
                    found.setdefault(sub(step.stop, step.start), ArrayView(view.array, view.steps[:place]).shape[step.dim])
    return found


def _writes_by_table(body: Body) -> bool:
    """Tell whether tasks write rows through a table: no proof is found below, for all sizes, that they write rows of their own."""
    return any(isinstance(leaf, Put) and leaf.table is not None for leaf in flow.leaves(body))


def first_span(lines: Sequence[ModuleLine]) -> Span:
    """Return the user's line of the first line that has one."""
    return next((line.span for line in lines if line.span != UNKNOWN), UNKNOWN)


def _kernel_name(run: Run) -> str:
    """Return the name of a kernel: its group, else the value that the kernel makes last."""
    if run.group:
        return run.group
    names = [array.name for item in run.items for leaf in flow.leaves(item) for array in leaf.defines]
    written = [leaf.target.array.name for item in run.items for leaf in flow.leaves(item) if isinstance(leaf, Put)]
    return (written or names or ["show"])[-1]


def _constant_text(constant: ArrayConstant, name: str, layout: str = "") -> str:
    array = constant.array
    shape = tuple(int(extent.value) for extent in array.shape if isinstance(extent, Const))
    values = np.frombuffer(constant.data, array.dtype.np).reshape(shape)
    text = f"np.frombuffer(bytes.fromhex({constant.data.hex()!r}), {array.dtype.name}.np).reshape({shape}).copy()"
    if array.dtype.is_integer or (array.dtype.np == np.float64 and bool(np.isfinite(values).all())):
        text = f"np.array({values.tolist()!r}, {array.dtype.name}.np)"
    declared = f"Tensor({text}, name={name!r}{f', layout={layout}' if layout else ''})"
    for contract in array.contracts:
        declared = f"{contract.value.capitalize()}({declared})"
    return declared

"""Define `@kernel` and the kernels it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pto_wsp import doors
from pto_wsp.arch.model import Arch
from pto_wsp.calls import user_call, user_calls
from pto_wsp.errors import ArgumentKindError, ArityError, OutsideTraceError, PtoError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.exchange import array_of
from pto_wsp.ir.kernel import Kernel as KernelIR
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.text import listed, wrap_text
from pto_wsp.ir.tile import is_extent
from pto_wsp.ops.entry import is_active
from pto_wsp.pickling import PickledByName
from pto_wsp.schedule.keys import KernelNamed
from pto_wsp.source import here, user_frame
from pto_wsp.trace.kernel.annotations import ConstexprAnnotation, KernelParam, TensorAnnotation, annotation_of
from pto_wsp.trace.kernel.definition import KernelDef
from pto_wsp.trace.workload.task_call import call_kernel
from pto_wsp.trace.workload.trace import TaskHandle, is_tracing

if TYPE_CHECKING:
    from pto_wsp.api.kernel_alone import KernelAlone
    from pto_wsp.arch.kernel_cost import KernelCost
    from pto_wsp.check.capacity import MemoryMap


@user_calls(leave_out=("__call__",))
class Kernel(KernelNamed, PickledByName, doors.Displayed):
    """A kernel: `k[b, t](x=…, out=…)` in a workload adds a task; `k.run(x, …)` evaluates its NumPy meaning on arrays."""

    def __init__(self, function: Callable[..., object], scope: Mapping[str, object],
                 options: Mapping[str, object] = MappingProxyType({}), *, instructions: bool = False) -> None:
        self._definition = KernelDef.from_function(function, scope, options, instructions=instructions)
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    @classmethod
    def from_ir(cls, ir: KernelIR) -> Kernel:
        """Return a kernel of this IR: of one that was read (`parse`), built, or changed by a program.

        The IR is held to the rules of a traced kernel.
        Raises: W113 for IR that no trace gives.
        """
        doors.late_module("pto_wsp.trace.kernel_data").check_kernel(ir, bodies=True)
        return cls.of_ir(ir)

    @classmethod
    def of_ir(cls, ir: KernelIR) -> Kernel:
        """Return a kernel with the given IR, which must satisfy the rules of a traced kernel."""
        made = cls.__new__(cls)
        params = tuple(KernelParam(param.name, annotation_of(param), param.span) for param in ir.params)
        made._definition = KernelDef(_no_body, ir.name, params, ir.span, ir.bodies, ir=ir)
        made.__name__ = made.__qualname__ = ir.name
        made.__doc__ = None
        return made

    def __reduce__(self) -> str | tuple[object, ...]:
        return super().__reduce__() if "__wrapped__" in vars(self) else (Kernel.of_ir, (self._definition.ir,))

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._definition.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KernelIR) and self._definition.ir is not None:
            return self._definition.ir == other
        if isinstance(other, Kernel) and self._definition.ir is not None:
            return self._definition.ir == other._definition.ir
        return True if self is other else NotImplemented

    def __hash__(self) -> int:
        return hash(self._definition) if self._definition.ir is None else hash(self._definition.ir)

    @property
    def ir(self) -> KernelIR:
        """The kernel's IR; `str` prints it, and `pto_wsp.parse` reads the text back.

        A kernel with Constexpr, Tensor or sized Tile parameters has one IR per specialisation; see `ir_of`.
        """
        return self.ir_of()

    def ir_of(self, /, **given: object) -> KernelIR:
        """Return the IR of a specialisation: `given` are values of Constexpr parameters, dtypes of Tensor parameters, tile sizes.

        Raises: T101 if one is missing.
        """
        return self._specialised(given, "ir_of(")

    def specialise(self, /, **given: object) -> KernelIR:
        """Return the kernel IR for values of Constexpr parameters, dtypes of Tensor parameters (a DType, an array or a Tensor), tile sizes.

        Raises: T101 if one is missing.
        """
        return self._specialised(given, "specialise(")

    def _specialised(self, given: Mapping[str, object], call: str) -> KernelIR:
        """Return the kernel IR for these values; `call` is the beginning of the method call, for the error message."""
        if self._definition.ir is not None and all(isinstance(p.annotation, TensorAnnotation) for p in self._definition.params
                                                   if p.name in given):
            return self._definition.trace({}, {name: _dtype_of(value) for name, value in given.items()})
        needed = {p.name: p.annotation for p in self._definition.params
                  if isinstance(p.annotation, ConstexprAnnotation | TensorAnnotation)}
        sizes = self._definition.size_names
        if {*needed, *sizes} != given.keys():
            values = [f"{name}={'DType.F32' if isinstance(a, TensorAnnotation) else '...'}" for name, a in needed.items()]
            values += [f"{name}=16" for name in sizes]
            arguments = ", ".join([call.partition("(")[2], *values] if not call.endswith("(") else values)
            raise ArityError(f"kernel `{self.name}` is specialised by {', '.join((*needed, *sizes)) or 'nothing'}", here(),
                             expected=f"{self.name}.{call.partition('(')[0]}({arguments})", found=", ".join(given) or "nothing")
        constexprs = {name: given[name] for name, a in needed.items() if isinstance(a, ConstexprAnnotation)}
        dtypes = {name: _dtype_of(given[name]) for name, a in needed.items() if isinstance(a, TensorAnnotation)}
        return self._definition.sized({name: self._size(name, given[name]) for name in sizes}).trace(constexprs, dtypes)

    def _size(self, name: str, value: object) -> int:
        if not is_extent(value):
            raise ArgumentKindError(f"kernel `{self.name}`: `{name}` is a size of its tiles", here(), expected="a whole number >= 1",
                                    found=f"{type(value).__name__}: {value!r:.60}")
        return value

    def cost(self, /, arch: str | Arch = "unit", **given: object) -> KernelCost:
        """Return the cost of one task in cycles, by pipe and in total: a number, or a formula if a size is unknown.

        `given`: Constexpr values; sizes of `Tile["R", "C", dtype]` by name; dtypes, arrays or Tensors for Tensor parameters, which bind
        their extents too; numbers for Scalar parameters that bound a loop. A Tile parameter is taken whole.
        Raises: C115 for an arch that does not say how fast a unit is, T101 when a Constexpr or a dtype is missing.
        """
        return self._alone().cost(arch, given)

    def check(self, /, arch: str | Arch, **given: object) -> MemoryMap:
        """Return the live tiles in each on-chip memory of an arch at its peak. `given` is as for `cost`.

        Raises: K110 if a memory is too small.
        """
        return self._alone().check(arch, given)

    def __getitem__(self, index: object) -> BoundKernel:
        return BoundKernel(self._definition, index if isinstance(index, tuple) else (index,))

    def at(self, /, **index: object) -> BoundKernel:
        """Return the kernel with bracket indices by name: `k.at(b=b, t=t)(x=…)` is `k[b, t](x=…)`."""
        return BoundKernel(self._definition, tuple(index.values()))

    def __call__(self, /, *args: object, after: object = (), label: object = None, **kwargs: object) -> TaskHandle:
        """Add a task without bracket indices to the workload being traced; `after` and `label` are as for a kernel with indices.

        Raises: K105 outside a workload, with a hint to use `run`.
        """
        if not is_tracing() and not is_active():
            raise OutsideTraceError(f"kernel `{self.name}` was called outside a workload", here(),
                                    help=f"call it in a function decorated with @workload; for NumPy arrays at once: "
                                         f"{self.name}.run(...)")
        return call_kernel(self._definition, (), args, kwargs, after, label)

    def run(self, /, *args: object, **kwargs: object) -> npt.NDArray[Any] | tuple[npt.NDArray[Any], ...] | None:
        """Run the kernel on arrays of any library and return its outputs: one NumPy array, or a tuple in the order of the parameters.

        The array for a Tile parameter has the tile's shape, or a smaller one, which is then the valid part. Out arrays are optional.

        Raises: T101, T102, T201 for arrays that do not match; R101 for a piece outside its region.
        """
        return self._alone().run(args, kwargs)

    def _alone(self) -> KernelAlone:
        return doors.kernel_alone()(self._definition, self._specialised)

    @property
    def type(self) -> str:
        """The parameters, in lines of at most 100 columns: `Kernel[x: In[Tile[16, 128, f32]], out: Out[Tile[16, 128, f32]]]`."""
        return wrap_text(listed("Kernel[", self._params, ",", "]"))

    @property
    def _params(self) -> tuple[str, ...]:
        return tuple(f"{p.name}: {p.annotation!r}" for p in self._definition.params)

    def __repr__(self) -> str:
        return wrap_text(listed(f"kernel {self.name}(", self._params, ",", ")"))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def _text(self) -> str:
        return repr(self)

    @property
    def card(self) -> Any:
        """All that a notebook shows as data: its source beside its tile IR, and what each line costs on this machine's CPU."""
        ir, wanted, problem = None, "", ""
        try:
            ir = self._specialised({}, 'card_on("ascend_910b"')
        except ArityError as lacking:
            wanted = lacking.expected or lacking.message
        except PtoError as found:
            problem = str(found)
        except Exception as raised:     # of the user's body; a view never raises
            problem = f"{type(raised).__name__}: {raised}"
        return self._card(ir, doors.host_cpu(), wanted=wanted, problem=problem)

    def card_on(self, /, arch: str | Arch, **given: object) -> Any:
        """Return the card with costs on another arch: source, tile IR, cycles by line and pipe, and memory. `given` is as for `cost`.

        Raises: C115 if there is no such arch, T101 when a Constexpr, a dtype or a tile size is missing.
        """
        model, ir, scalars, extents = self._alone().priced(arch, given)
        return self._card(ir, model, scalars=scalars, extents=extents)

    def _card(self, ir: KernelIR | None, arch: Arch, **known: Any) -> Any:
        cards = doors.late_module("pto_wsp.view.kernel_cards")
        code = None if self._definition.function is _no_body else self._definition.function.__code__
        return cards.kernel_card(cards.KernelShown(self.name, self._params, self._definition.span, code, ir, **known), arch)


class BoundKernel:
    """A kernel with its bracket indices; a call adds a task."""

    __slots__ = ("_definition", "_index")

    def __init__(self, definition: KernelDef, index: tuple[object, ...]) -> None:
        self._definition = definition
        self._index = index

    def __call__(self, /, *args: object, after: object = (), label: object = None, **kwargs: object) -> TaskHandle:
        """Add a task to the workload being traced.

        `after`: the handles of tasks that must run earlier. `label`: text that is a part of the task's name in traces, graph and errors.
        """
        return call_kernel(self._definition, self._index, args, kwargs, after, label)

    def __repr__(self) -> str:
        return f"kernel {self._definition.name}[{', '.join(map(repr, self._index))}]"


@user_call()
def kernel(function: Callable[..., object] | None = None, **options: object) -> Any:
    """Decorate a function as a kernel. Its parameters are annotated; its body computes on tiles and is traced, not run.

    Options provide bodies in a target's language: `c_src` (text) or `c_path` (file) is the body of a C function for cpu_sim, with
    `scratch_bytes` of scratch memory; `cpp_src`, `cpp_body_path` or `cpp_tu_path` is C++ for the NPU. The Python body remains the
    meaning. If it is `...`, the kernel has no meaning and runs only on targets with a body.

    Raises: K101 for missing or invalid annotations; K107 for bodies that cannot be used.
    """
    frame = user_frame()
    if function is None:
        return lambda inner: Kernel(inner, enclosing_names(frame, inner), options)
    return Kernel(function, enclosing_names(frame, function), options)


@user_call()
def ptoisa_kernel(function: Callable[..., object] | None = None, **options: object) -> Any:
    """Decorate a function as a kernel of instructions: the body declares tiles, and each `ptoisa.` call adds an instruction, in order.

    Options and errors are those of `kernel`.

    Raises: K111 for an op without a destination.
    """
    frame = user_frame()
    if function is None:
        return lambda inner: Kernel(inner, enclosing_names(frame, inner), options, instructions=True)
    return Kernel(function, enclosing_names(frame, function), options, instructions=True)


def enclosing_names(frame: FrameType | None, function: object) -> Mapping[str, object]:
    """Return the local names of the functions around a kernel's `def`, for annotations that are text; inner names win.

    An annotation does not make a name a closure variable, so the frames of those functions are found by their qualified names.
    """
    outer_names = getattr(function, "__qualname__", "").split(".<locals>.")[:-1]
    enclosing = {".<locals>.".join(outer_names[:k + 1]) for k in range(len(outer_names))}
    names = {} if frame is None else dict(frame.f_locals)
    while frame is not None and enclosing:
        if frame.f_code.co_qualname in enclosing:
            names = {**frame.f_locals, **names}
            enclosing.discard(frame.f_code.co_qualname)
        frame = frame.f_back
    return names


jit_kernel = kernel


def _no_body(*_: object) -> None:
    """Stand for the function of a kernel that has none."""


def _dtype_of(value: object) -> DType:
    if (dtype := DType.of(value)) is not None:
        return dtype
    if isinstance(value, Tensor):
        return value.dtype
    array = array_of(value)
    return DType.from_numpy(array.dtype) if isinstance(array, np.ndarray) else DType.from_numpy(value)  # type: ignore[arg-type]

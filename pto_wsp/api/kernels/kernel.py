"""`@kernel`: what the user's decorated function becomes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArityError, OutsideTraceError
from pto_wsp.expr.kernel import Kernel as KernelIR
from pto_wsp.expr.kernel_text import print_kernel
from pto_wsp.expr.layout_text import laid_out, listed
from pto_wsp.frontend.kernel.annotations import ConstexprAnnotation, TensorAnnotation
from pto_wsp.frontend.kernel.definition import KernelDef
from pto_wsp.frontend.workload.task_call import call_kernel
from pto_wsp.frontend.workload.trace import TaskHandle, is_tracing
from pto_wsp.ops.tracing import is_active
from pto_wsp.schedule.keys import KernelNamed
from pto_wsp.source import here
from pto_wsp.types.dtype import DType
from pto_wsp.types.tensor import Tensor

if TYPE_CHECKING:
    from pto_wsp.api.kernels.alone import KernelAlone
    from pto_wsp.arch.kernel_cost import KernelCost
    from pto_wsp.verify.capacity import MemoryMap


class Kernel(KernelNamed):
    """A kernel: `k[b, t](x=…, out=…)` in a workload makes tasks; `k.run(x, …)` gives NumPy's meaning of one at once."""

    def __init__(self, function: Callable[..., object], scope: Mapping[str, object],
                 options: Mapping[str, object] = MappingProxyType({}), *, instructions: bool = False) -> None:
        self._definition = KernelDef.from_function(function, scope, options, instructions=instructions)
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    @property
    def name(self) -> str:
        """The function's name."""
        return self._definition.name

    @property
    def ir(self) -> str:
        """The kernel's IR as text. A kernel with Constexpr or Tensor parameters has one a specialisation: see `ir_of`."""
        return self.ir_of()

    def ir_of(self, /, **given: object) -> str:
        """Return the IR of a specialisation as text, from the values of Constexpr parameters and the dtypes of Tensor ones.

        Raises: T101 when one is missing.
        """
        return print_kernel(self._specialised(given, "ir_of("))

    def specialise(self, /, **given: object) -> KernelIR:
        """Return the kernel IR for the given Constexpr values and the dtypes of Tensor parameters (a DType, an array or a Tensor).

        Raises: T101 when one is missing.
        """
        return self._specialised(given, "specialise(")

    def _specialised(self, given: Mapping[str, object], call: str) -> KernelIR:
        """Return the kernel IR for some values; `call`: how the method begins that was called, for the error."""
        needed = {p.name: p.annotation for p in self._definition.params
                  if isinstance(p.annotation, ConstexprAnnotation | TensorAnnotation)}
        if needed.keys() != given.keys():
            values = [f"{name}={'DType.F32' if isinstance(a, TensorAnnotation) else '...'}" for name, a in needed.items()]
            said = ", ".join([call.partition("(")[2], *values] if not call.endswith("(") else values)
            raise ArityError(f"kernel `{self.name}` is specialised by {', '.join(needed) or 'nothing'}", here(),
                             expected=f"{self.name}.{call.partition('(')[0]}({said})", found=", ".join(given) or "nothing")
        constexprs = {name: given[name] for name, a in needed.items() if isinstance(a, ConstexprAnnotation)}
        dtypes = {name: _dtype_of(given[name]) for name, a in needed.items() if isinstance(a, TensorAnnotation)}
        return self._definition.trace(constexprs, dtypes)

    def cost(self, /, arch: str | Arch = "unit", **given: object) -> KernelCost:
        """Return what one task costs, in cycles by pipe and in all: a number, or a formula where a size is not known.

        `given`: Constexpr values; dtypes, arrays or Tensors for Tensor parameters, which bind their extents too; numbers for Scalar
        parameters that bound a loop. A Tile parameter is taken whole.
        Raises: C104 for an arch that does not say how fast a unit is, T101 when a Constexpr or a dtype is missing.
        """
        return self._alone().cost(arch, given)

    def check(self, /, arch: str | Arch, **given: object) -> MemoryMap:
        """Return who lives in the on-chip memories of an arch where each is fullest. `given`: as for `cost`.

        Raises: K110 when a memory is too small.
        """
        return self._alone().check(arch, given)

    def __getitem__(self, index: object) -> BoundKernel:
        return BoundKernel(self._definition, index if isinstance(index, tuple) else (index,))

    def at(self, /, **index: object) -> BoundKernel:
        """Return the kernel with bracket indices by name: `k.at(b=b, t=t)(x=…)` is `k[b, t](x=…)`."""
        return BoundKernel(self._definition, tuple(index.values()))

    def __call__(self, /, *args: object, after: object = (), **kwargs: object) -> TaskHandle:
        """Add a task without bracket indices to the workload being traced.

        Raises: K105 outside a workload, which points to `run`.
        """
        if not is_tracing() and not is_active():
            raise OutsideTraceError(f"kernel `{self.name}` was called outside a workload", here(),
                                    help=f"call it in a function decorated with @workload; for NumPy arrays at once: "
                                         f"{self.name}.run(...)")
        return call_kernel(self._definition, (), args, kwargs, after)

    def run(self, /, *args: object, **kwargs: object) -> npt.NDArray[Any] | tuple[npt.NDArray[Any], ...] | None:
        """Run the kernel on NumPy arrays at once and return its outputs: one array, or a tuple in the order of the parameters.

        Shapes: a Tile parameter takes an array of its shape, or a smaller one as its valid part; an Out one may be left out.
        Raises: T101, T102, T201 for arrays that do not fit, R101 for a piece outside its region.
        """
        return self._alone().run(args, kwargs)

    def _alone(self) -> KernelAlone:
        from pto_wsp.api.kernels.alone import KernelAlone  # loads the interpreter, prices and the checks of memory

        return KernelAlone(self._definition, self._specialised)

    @property
    def type(self) -> str:
        """What a call takes: `Kernel[x: In[Tile[16, 128, f32]], out: Out[Tile[16, 128, f32]]]`, in lines of at most 100 columns."""
        return laid_out(listed("Kernel[", self._params, ",", "]"))

    @property
    def _params(self) -> tuple[str, ...]:
        return tuple(f"{p.name}: {p.annotation!r}" for p in self._definition.params)

    def __repr__(self) -> str:
        return laid_out(listed(f"kernel {self.name}(", self._params, ",", ")"))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


class BoundKernel:
    """A kernel with its bracket indices; calling it adds a task."""

    __slots__ = ("_definition", "_index")

    def __init__(self, definition: KernelDef, index: tuple[object, ...]) -> None:
        self._definition = definition
        self._index = index

    def __call__(self, /, *args: object, after: object = (), **kwargs: object) -> TaskHandle:
        """Add a task to the workload being traced; `after` takes handles of tasks that must come first."""
        return call_kernel(self._definition, self._index, args, kwargs, after)

    def __repr__(self) -> str:
        return f"kernel {self._definition.name}[{', '.join(map(repr, self._index))}]"


def kernel(function: Callable[..., object] | None = None, **options: object) -> Any:
    """Decorate a function as a kernel. Its parameters are annotated; its body computes on tiles and is traced, not run.

    Options give bodies in a target's own language: `c_src` (text) or `c_path` (file) the body of a C function for cpu_sim, with
    `scratch_bytes` of scratch memory; `cpp_src`, `cpp_body_path` or `cpp_tu_path` C++ for the NPU. The Python body stays the
    meaning; where it is `...` the kernel has none, and runs only on targets that it has a body for.
    Raises: K101 for parameters that are not annotated, or wrongly; K107 for bodies that cannot be used.
    """
    frame = sys._getframe(1)
    if function is None:
        return lambda inner: Kernel(inner, _enclosing_names(frame, inner), options)
    return Kernel(function, _enclosing_names(frame, function), options)


def ptoisa_kernel(function: Callable[..., object] | None = None, **options: object) -> Any:
    """Decorate a function as a kernel of instructions: tiles are declared, and each `ptoisa.` call writes one, in the order written.

    Takes the options of `kernel` and raises what it does; the body raises K111 for an op without a destination.
    """
    frame = sys._getframe(1)
    if function is None:
        return lambda inner: Kernel(inner, _enclosing_names(frame, inner), options, instructions=True)
    return Kernel(function, _enclosing_names(frame, function), options, instructions=True)


def _enclosing_names(frame: FrameType | None, function: object) -> Mapping[str, object]:
    """Return the local names of the functions that a kernel's `def` stands in, for annotations that are text; inner ones win.

    Annotations are no use of a name that makes a closure, so the frames of those functions are looked up by their qualified names.
    """
    around = getattr(function, "__qualname__", "").split(".<locals>.")[:-1]
    enclosing = {".<locals>.".join(around[:k + 1]) for k in range(len(around))}
    names = {} if frame is None else dict(frame.f_locals)
    while frame is not None and enclosing:
        if frame.f_code.co_qualname in enclosing:
            names = {**frame.f_locals, **names}
            enclosing.discard(frame.f_code.co_qualname)
        frame = frame.f_back
    return names


jit_kernel = kernel


def _dtype_of(value: object) -> DType:
    if isinstance(value, DType):
        return value
    if isinstance(value, Tensor):
        return value.dtype
    return DType.from_numpy(value.dtype) if isinstance(value, np.ndarray) else DType.from_numpy(value)  # type: ignore[arg-type]

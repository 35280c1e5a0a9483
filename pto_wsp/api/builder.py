"""`KernelBuilder`: make a kernel without a function of its own, for generators and tests.

The tracer of `@kernel` takes the statements, so types, bounds and order have the same rules, and `build` returns a kernel like any other.

>>> build = KernelBuilder("axpy", {"x": In[Tile[4, 8, DType.F32]], "a": Scalar[DType.F32], "y": InOut[Tile[4, 8, DType.F32]]})
>>> with build as (x, a, y):
...     pto.store(y, x * a + y)
>>> axpy = build.kernel
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from keyword import iskeyword
from types import MappingProxyType, TracebackType
from typing import NoReturn

from pto_wsp.api.kernel import Kernel
from pto_wsp.calls import user_calls
from pto_wsp.errors import KernelSignatureError, OutsideTraceError, SymbolicControlError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType, DTypeLike
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ops.entry import activate
from pto_wsp.source import Span, here
from pto_wsp.trace.kernel import control, memory
from pto_wsp.trace.kernel.annotations import Annotation, ConstexprAnnotation, KernelParam, SizedTileAnnotation, TensorAnnotation
from pto_wsp.trace.kernel.definition import KernelDef
from pto_wsp.trace.kernel.printing import python_print_traced
from pto_wsp.trace.kernel.tile_value import BufferRef
from pto_wsp.trace.kernel.trace import KernelTrace

_EXPECTED = 'a dict of annotations: {"x": In[Tile[4, 8, DType.F32]], "n": Scalar[DType.I32]}'


@user_calls()
class KernelBuilder:
    """A kernel in the making: inside `with build as (x, y):`, `pto.` operations on the parameters are its statements."""

    def __init__(self, name: str, params: Mapping[str, Annotation], dtypes: Mapping[str, DTypeLike] = MappingProxyType({})) -> None:
        """Declare the kernel. `params`: annotations by name, in order; `dtypes`: of the Tensor parameters, by name.

        Raises: K101 for a name or an annotation that no parameter has, and for a Tensor parameter without a dtype.
        """
        span = here()
        if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
            _refuse("a kernel's name is a Python identifier", found=repr(name))
        if not isinstance(params, Mapping) or not isinstance(dtypes, Mapping):
            _refuse(f"kernel `{name}`: these are no parameters", expected=_EXPECTED, found=repr(params))
        for param, annotation in params.items():
            if not isinstance(param, str) or not param.isidentifier() or iskeyword(param):
                _refuse(f"kernel `{name}`: a parameter's name is a Python identifier", found=repr(param))
            if not isinstance(annotation, Annotation) or isinstance(annotation, ConstexprAnnotation | SizedTileAnnotation):
                _refuse(f"kernel `{name}`: parameter `{param}` has an annotation that a builder does not take",
                        expected="In, Out or InOut of Tile[rows, cols, dtype] or Tensor; Scalar[dtype]", found=repr(annotation),
                        help="sizes and constants are Python numbers of the program that builds")
        tensors = [param for param, annotation in params.items() if isinstance(annotation, TensorAnnotation)]
        self._dtypes = {param: dtype for param in dtypes if (dtype := DType.of(dtypes[param])) is not None}
        if self._dtypes.keys() != {*tensors} or self._dtypes.keys() != dtypes.keys():
            _refuse(f"kernel `{name}`: `dtypes` are of its Tensor parameters",
                    expected=f"a dtype each of {', '.join(tensors) or 'none'}", found=repr(dict(dtypes)))
        self._definition = KernelDef(_no_body, name, tuple(KernelParam(*each, span) for each in params.items()), span)
        self._trace = KernelTrace(name, [*params])
        self._declared, self._arguments = self._definition.arguments(self._trace, {}, self._dtypes)
        self._open: ExitStack | None = None
        self._kernel: Kernel | None = None
        self._used = False

    def __enter__(self) -> tuple[object, ...]:
        if self._used:
            raise OutsideTraceError(f"kernel `{self._definition.name}` is built already", here(), help="one `with` builds one kernel")
        self._used = True
        self._open = ExitStack()
        self._open.enter_context(activate(self._trace))
        self._open.enter_context(python_print_traced())
        return tuple(self._arguments)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._open is not None
        with self._open:
            if kind is None:
                self._kernel = Kernel.of_ir(self._definition.finished(self._trace, self._declared, {}))
        self._open = None

    @property
    def kernel(self) -> Kernel:
        """The kernel; it runs, stands in workloads and compiles like one of `@kernel`.

        Raises: K105 before the `with` block has ended.
        """
        if self._kernel is None:
            raise OutsideTraceError(f"kernel `{self._definition.name}` is not built yet", here(),
                                    expected="a `with build as (...)` block that has ended without an error")
        return self._kernel

    def loop(self, start: object, stop: object = None, step: object = 1, name: str = "i") -> AbstractContextManager[Symbolic]:
        """Open a loop of the kernel, as pto.range does; `name`: of its variable, which `as` gives.

        Unlike in the body of a function, what Python variables hold is not followed: state goes through buffers.
        Raises: T209 for bounds that are no whole numbers, K105 outside the `with` block of the builder.
        """
        self._check_open("loop")
        bounds = control.range_(start, stop, step).bounds
        if not isinstance(name, str) or not name.isidentifier():
            _refuse("a loop variable's name is a Python identifier", found=repr(name))
        return self._loop_block(name, bounds, here())

    @contextmanager
    def _loop_block(self, name: str, bounds: tuple[s.Scalar, s.Scalar, s.Scalar], span: Span) -> Iterator[Symbolic]:
        var = self._trace.blocks.open_loop(name, bounds, span)
        yield Symbolic(var)
        self._trace.blocks.close_loop(var)

    @contextmanager
    def when(self, condition: object) -> Iterator[None]:
        """Open the side of a branch where a condition on scalars holds, as pto.when does.

        Raises: T210 for what is no condition, K105 outside the `with` block of the builder.
        """
        self._check_open("when")
        side = control.when(condition)
        blocks = self._trace.blocks
        blocks.awaited.opened(side)
        body = blocks.open_branch(self._trace.number("`when`", condition))
        assert body is not None
        yield
        blocks.close_branch(body, early=False)

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Open the other side of the `when` directly before.

        Raises: K103 where no `when` has just ended, K105 outside the `with` block of the builder.
        """
        self._check_open("otherwise")
        body = self._trace.blocks.open_branch(None)
        if body is None:
            raise SymbolicControlError("`otherwise()` does not stand directly after a `with build.when(...)`", here(),
                                       expected="with build.when(c): ... directly before", found="something else")
        yield
        self._trace.blocks.close_branch(body, early=False)

    def buffer(self, name: str, shape: Sequence[int], dtype: DTypeLike, init: object = None) -> BufferRef:
        """Allocate a buffer with a name, as pto.alloc does.

        Raises: T207, T209 for what does not fit, K105 outside the `with` block of the builder.
        """
        self._check_open("buffer")
        if not isinstance(name, str) or not name.isidentifier():
            _refuse("a buffer's name is a Python identifier", found=repr(name))
        return memory.allocate(self._trace, name, shape, dtype, init)

    def _check_open(self, what: str) -> None:
        if self._open is None:
            raise OutsideTraceError(f"`{what}` stands outside the `with` block of kernel `{self._definition.name}`", here(),
                                    expected="with build as (...): ...")

    def __repr__(self) -> str:
        return f"KernelBuilder({self._definition.name})"


def _refuse(message: str, *, expected: str | None = None, found: str, help: str | None = None) -> NoReturn:
    raise KernelSignatureError(message, here(), expected=expected, found=found[:100], help=help)


def _no_body(*_: object) -> None:
    """Stand for the function of a kernel that has none."""

"""Define `@jit` and the functions it returns: a call on whole arrays plans, compiles and runs the body, or finds what it compiled before.

    @jit
    def rmsnorm(x: Tensor["t", 4096, F32], g: Tensor[4096, F32], eps: float = 1e-6):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * g

    y = rmsnorm(x, g)                        # arrays of NumPy, torch, JAX or Tensors in, the same kind out; any t
    plan = rmsnorm.plan(x, g)                # how it is cut into kernels and tasks
    w = rmsnorm.lower(plan, x=X, g=G)        # a workload, as if written by hand
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, NoReturn, TypeVar, cast, overload

from pto_wsp import doors
from pto_wsp.api.kernel import enclosing_names
from pto_wsp.api.tensors.arguments import ArgumentReader
from pto_wsp.api.tensors.calls import ReadyCall, numbers_of
from pto_wsp.api.tensors.known import CompiledCall, KnownFunctions
from pto_wsp.api.tensors.options import JitOptions, arch_of
from pto_wsp.api.tensors.over_ranks import RankCall
from pto_wsp.calls import user_call, user_calls
from pto_wsp.errors import JitOptionError, PtoError, TensorBodyError, TensorSignatureError, UnknownNameError
from pto_wsp.ir.exchange import is_array
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.ops.entry import is_active, is_tile
from pto_wsp.pickling import PickledByName
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tunable import Tunable, tunables_of, usual_value
from pto_wsp.source import here, user_frame
from pto_wsp.trace.tensor.captured import CapturedNames
from pto_wsp.trace.tensor.host_arrays import is_on_arrays
from pto_wsp.trace.tensor.leaves import leaves_of
from pto_wsp.trace.tensor.signature import BoundArguments, signature_of
from pto_wsp.trace.tensor.trace import is_tracing
from pto_wsp.trace.tensor.traced import Traced, inline
from pto_wsp.trace.workload.trace import is_tracing as is_tracing_workload

Result = TypeVar("Result")      # what the body returns, as its annotation says: for type checkers
_MOST_READY = 512      # layouts of arguments that are kept ready


@user_calls(leave_out=("__call__", "card"))
class JitFunction(PickledByName, doors.Displayed, Generic[Result]):
    """A function on whole tensors: `f(x, w)` runs it, `f.plan(x, w)` shows how it is cut, `f.lower(plan)` is its workload."""

    def __init__(self, function: FunctionType, scope: Mapping[str, object], options: JitOptions) -> None:
        if not inspect.isfunction(function) or inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise TensorSignatureError("jit decorates a plain function", here(), expected="def name(...): ...", found=repr(function),
                                       help="yield, async and await have no meaning in it")
        functools.update_wrapper(self, function)
        self.__name__: str = function.__name__
        self._function, self._scope, self.options = function, scope, options
        self._signature = signature_of(function, scope)
        self._tunables: Mapping[str, Tunable] = tunables_of(function)
        self._scalars = self._signature.scalars
        self._scalar_places = tuple(k for k, dtype in enumerate(self._scalars) if dtype is not None)
        self._has_numbers_inside = self._signature.has_numbers_in_containers
        self._captured = CapturedNames(function)
        self._known = KnownFunctions(function, options, self._captured)
        self._ready: dict[object, ReadyCall | RankCall] = {}
        self._preparing = threading.Lock()

    # -- calls ---------------------------------------------------------------------------------------------------------
    def __call__(self, /, *args: Any, plan: TilePlan | None = None, out: Any = None, **kwargs: Any) -> Result:
        """Run the function on arrays; return its results as arrays of the kind of the first.

        `plan`: how it is cut, instead of by itself; `out`: the array, or a tuple of arrays, that the results are written to.
        Raises: T101, J101, J109, J201, R110, R113 and J122 for arguments that do not fit; the errors of all later steps.
        """
        if is_tracing():
            return cast(Result, self._inlined(args, plan, out, kwargs))
        if is_on_arrays():      # in a body that runs as a NumPy program
            return cast(Result, self._function(*args, **self._with_usual(args, kwargs)))
        if is_tracing_workload():
            raise TensorBodyError(f"`{self.__name__}` is called in a workload", here(), expected="a workload of its own",
                                  help=f"{self.__name__}.lower(plan, x=X, out=Y) is one, on these Tensors: a >> b runs both")
        if is_active() and any(map(is_tile, (*args, *kwargs.values()))):
            raise TensorBodyError(f"`{self.__name__}`, a function on tensors, is called in a kernel", here(), expected="arrays",
                                  found="a tile", help="a plain Python function that both call is traced in either")
        try:
            values = self._values(args, kwargs, plan)
            reader = ArgumentReader()
            parts: list[object] = [None if dtype is not None else reader.key(value)
                                   for dtype, value in zip(self._scalars, values, strict=True)]
            key = (*parts, None if plan is None else plan.digest if isinstance(plan, TilePlan) else plan, *self._captured.key())
            ready = self._ready.get(key)
            if ready is None:
                ready = self._prepare(key, values, plan)
            numbers = self._signature.numbers(values) if self._has_numbers_inside else [values[k] for k in self._scalar_places]
            return cast(Result, ready.run(reader, numbers, out))
        except PtoError as problem:
            for error in (problem, *problem.others):
                error.span = error.span or here()
            raise

    def _inlined(self, args: tuple[object, ...], plan: object, out: object, kwargs: Mapping[str, object]) -> object:
        if plan is not None or out is not None:
            raise TensorBodyError(f"`{self.__name__}` is called in the body of another function, and becomes part of it", here(),
                                  expected=f"{self.__name__}(...) without plan= and out=",
                                  help="the outer function has a plan, and results")
        return inline(self._function, self._signature, args, self._with_usual(args, kwargs))

    def _with_usual(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Return keyword arguments with the first value of each Tunable that is not passed."""
        if not self._tunables:
            return dict(kwargs)
        passed = {*kwargs, *[param.name for param in self._signature.params[:len(args)]]}
        return {**{name: tunable.default for name, tunable in self._tunables.items() if name not in passed},
                **{name: usual_value(value) for name, value in kwargs.items()}}

    def _values(self, args: tuple[object, ...], kwargs: Mapping[str, object], plan: object = None, *,
                abstract: bool = False) -> list[object]:
        """Return the argument of each parameter, with one value for each Tunable: that of the plan, else the first."""
        if len(args) == len(self._scalars) and not kwargs:
            values: list[object] = list(args)
        else:
            values = self._signature.values(args, kwargs, abstract=abstract)
        if not self._tunables:
            return values
        names = [param.name for param in self._signature.params]
        for place, name in enumerate(names):
            if isinstance(values[place], Tunable):
                said = plan.said("tunables", name) if isinstance(plan, TilePlan) else None
                values[place] = usual_value(values[place]) if said is None else said.value
        return values

    def _prepare(self, key: object, values: Sequence[object], plan: TilePlan | None) -> ReadyCall | RankCall:
        """Return what runs calls of a key that is new."""
        if plan is not None and not isinstance(plan, TilePlan):
            raise JitOptionError(f"`{self.__name__}`: plan= takes a TilePlan", here(), expected=f"{self.__name__}.plan(...), or "
                                    "TilePlan.load(path)", found=repr(plan)[:80])
        with self._preparing:      # one thread compiles, the others find what it made
            ready = self._ready.get(key)
            if ready is None:
                bound = self._signature.match(values)
                bound.sizes()      # two numbers of one symbol are an error before anything is compiled
                layouts = any(isinstance(given, Tensor) and given.layout is not None for given in bound.given)
                ready = self._known.over_ranks(bound, self._captured.key(), plan) if layouts or self.options.mesh is not None else \
                    self._known.function_of(bound, self._captured.key(), plan).call_of(bound)
                while len(self._ready) >= _MOST_READY:
                    del self._ready[next(iter(self._ready))]
                self._ready[key] = ready
        return ready

    # -- steps ---------------------------------------------------------------------------------------------------------
    def trace(self, /, *args: Any, **kwargs: Any) -> TensorFunction:
        """Return the function in the IR of tensors; `str` prints it.

        Arguments are arrays, or types, `Tensor["t", 64, DType.F32]`; an annotated parameter may be left out.
        Raises: T101, J101, J109 for arguments that do not fit; what the body does that has no meaning.
        """
        return self._traced(args, kwargs)[1].function

    def _traced(self, args: tuple[object, ...], kwargs: Mapping[str, object], plan: object = None) -> tuple[BoundArguments, Traced]:
        bound = self._signature.match(self._values(args, kwargs, plan, abstract=True), abstract=True)
        bound.sizes()
        return bound, self._known.traced(bound, self._captured.key())

    def _traces(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        lowering = doors.late_module("pto_wsp.api.tensors.lowering")

        def function(plan: TilePlan) -> Any:
            bound, traced = self._traced(args, kwargs, plan)
            return lowering.placed(traced.function, bound, self.options.mesh)[0]

        return lowering.Traces(tuple(self._tunables), function)

    def plan(self, /, *args: Any, arch: object = None, target: str | None = None, sizes: Mapping[str, int] | None = None,
             until: str | None = None, **kwargs: Any) -> Any:
        """Return the `TilePlan` of the function: every choice that was made, each with its reason; `print` shows it.

        Arguments are as for `trace`. `sizes`: the numbers that symbols are planned for; where nothing is said 1024, or a smaller bound that
        `tt.assume` promises. `until`: the name of a pass; then the function and its plan behind that pass are returned.
        Raises: J2xx and J3xx for a function that cannot be cut, C104, C114, C115 for a target, pass or arch that there is none of.
        """
        target = self.options.using(target=target).target
        bound, traced = self._traced(args, kwargs)
        lowering = doors.late_module("pto_wsp.api.tensors.lowering")
        machine = self._known.arch_of(None, target) if arch is None else arch_of(arch)
        known = lowering.planned_sizes(traced.function, _sizes(sizes, traced.function))
        function, ranks = lowering.placed(traced.function, bound, self.options.mesh)
        if until is not None:
            empty = lowering.empty_plan(function, machine, target, known)
            return lowering.planned_until(function, empty, lowering.context_of(machine, target, known, ranks), until)
        return lowering.plan_of(function, None, machine, target, known, self._traces(args, kwargs), ranks).plan

    def lower(self, plan: TilePlan | None = None, /, *, passes: Mapping[str, Callable[..., object]] | None = None, dump: bool = False,
              **tensors: Any) -> Any:
        """Return the function as a `Workload` on Tensors, for `>>`, `|`, `.dispatch` and every target; `.source()` prints it.

        `tensors`: a Tensor, an array, a type or a number for each parameter by name. What is annotated may be left out: it is then
        declared, and each run binds it. `out`: the Tensor of the result, a tuple for several. `passes`: functions in place of passes.
        `dump`: keep what each pass changed, for `steps`, `changes(before, after)` and `dump(folder)` of the workload.
        Raises: T101, J101, J109 for tensors that do not fit; J3xx for a plan that does not; C113, C114 for passes.
        """
        out = tensors.pop("out", None)
        bound, traced = self._traced((), tensors, plan)
        lowering = doors.late_module("pto_wsp.api.tensors.lowering")
        arch = self._known.arch_of(plan)
        target = self.options.target if plan is None else plan.target
        sizes = lowering.planned_sizes(traced.function, {} if plan is None else dict(plan.sizes))
        function, ranks = lowering.placed(traced.function, bound, self.options.mesh)
        context = lowering.context_of(arch, target, sizes, ranks)
        if passes is None:
            planned = lowering.plan_of(function, plan, arch, target, sizes, self._traces((), tensors), ranks)
        elif ranks is not None:
            raise JitOptionError("passes= takes the place of passes of one rank's function", here(), expected="a function without a mesh",
                                 found=repr(self.options.mesh))
        else:
            empty = lowering.empty_plan(function, arch, target, sizes)
            planned = lowering.with_passes(function, empty if plan is None else plan, context, passes)
        given = {**_given_tensors(tensors), **self._out_tensors(traced.function, out)}
        workload = lowering.workload_of(function, planned, context, given, numbers_of(traced.function, bound, tensors), dump)
        return workload if self.options.schedule is None else workload.under(self.options.schedule)

    def _out_tensors(self, function: TensorFunction, out: object) -> dict[str, Tensor]:
        if out is None:
            return {}
        given = list(out) if isinstance(out, tuple | list) else [out]
        if len(given) != len(function.results):
            raise JitOptionError(f"`{self.__name__}` has {len(function.results)} results, and out= gives {len(given)}", here(),
                             expected="a Tensor" if len(function.results) == 1 else f"a tuple of {len(function.results)} Tensors")
        return {"out" if k == 0 else f"out_{k}": one if isinstance(one, Tensor) else Tensor(one) for k, one in enumerate(given)}

    def using(self, *, target: str | None = None, arch: object = None, schedule: object = None, plans: object = None,
              **options: object) -> JitFunction[Result]:
        """Return the function with another target, arch or schedule, or further options of `compile`: threads=, check_finite=, …

        Raises: J121, C115 for values that are none.
        """
        return JitFunction(self._function, self._scope, self.options.using(target=target, arch=arch, schedule=schedule, plans=plans,
                                                                           **options))

    @property
    def card(self) -> Any:
        """The card of the traced function, where annotations say all that a trace needs; None otherwise."""
        try:
            return self.trace().card
        except PtoError:
            return None

    # -- other meanings ------------------------------------------------------------------------------------------------
    def python(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the body as the NumPy program that it is, on arrays: the function is its own reference.

        Raises: T101, J101, J109 for arguments that do not fit; what the body raises.
        """
        return doors.late_module("pto_wsp.api.tensors.meanings").run_python(self._function, self._signature, self._values(args, kwargs))

    def reference(self, /, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the traced function with the op table's NumPy meaning: halves round where they do in kernels, nothing is cut.

        Raises: T101, J101, J109, J201 for arguments that do not fit; what tracing raises.
        """
        bound = self._signature.match(self._values(args, kwargs))
        traced = self._known.traced(bound, self._captured.key())
        return doors.late_module("pto_wsp.api.tensors.meanings").run_reference(traced, bound)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(param.name for param in self._signature.params)

    @property
    def tunables(self) -> Mapping[str, Tunable]:
        """The Tunable parameters by name."""
        return self._tunables

    @property
    def compiled(self) -> tuple[CompiledCall, ...]:
        """What has been compiled: types of the arguments, plan, target, arch, program; `print` shows a line each."""
        return self._known.compiled

    def as_torch_op(self, name: str) -> Any:
        """Register the function as an operator of PyTorch, `namespace::name`, with shape inference, forward only; return the operator.

        Every parameter must be annotated: with a type of tensors, Scalar, int, float, bool or str.
        Raises: C120 without PyTorch, J101 for parameters that an operator does not have.
        """
        return doors.late_module("pto_wsp.api.tensors.torch_op").register(self, self._function, self._signature, name)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownNameError(f"a function of jit has no `{name}`", here(),
                               expected="trace, plan, lower, using, python, reference, compiled, as_torch_op",
                               help="f.lower() is the workload, which has schedules and compile()")

    def __repr__(self) -> str:
        return f"jit {self.__name__}{self._signature.plain}"


def _sizes(given: object, function: TensorFunction) -> Mapping[str, int]:
    """Return the numbers that symbols are planned for.

    Raises: J121 for what are no numbers of symbols of the function.
    """
    names = [symbol.name for symbol in function.symbols]
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(name in names and type(n) is int and n >= 0 for name, n in given.items()):
        raise JitOptionError("sizes= takes numbers by the names of symbols", here(), expected=f"numbers of {', '.join(names) or 'none'}",
                                found=repr(given)[:80])
    return given


def _given_tensors(tensors: Mapping[str, object]) -> dict[str, Tensor]:
    """Return the tensors by the paths of parameters; an array is wrapped, a type is left to be declared."""
    return {path: leaf if isinstance(leaf, Tensor) else Tensor(leaf) for name, value in tensors.items()
            for path, leaf in leaves_of(value, name) if isinstance(leaf, Tensor) or is_array(leaf)}


@overload
def jit(function: Callable[..., Result], /) -> JitFunction[Result]: ...


@overload
def jit(*, plans: str | Path | None = None, target: str | None = None, arch: object = None, schedule: object = None,
        **options: object) -> Callable[[Callable[..., Result]], JitFunction[Result]]: ...


@user_call()
def jit(function: Callable[..., Any] | None = None, /, *, plans: str | Path | None = None, target: str | None = None, arch: object = None,
        schedule: object = None, **options: object) -> JitFunction[Any] | Callable[[Callable[..., Any]], JitFunction[Any]]:
    """Decorate a function on whole tensors. A call compiles it, once for each class of arguments, and runs it.

    `plans`: a folder of plans that `TilePlan.save` wrote; a call finds the plan of its function, arch and dtypes. `target`: cpu_sim or
    interp, for calls; `arch`: the machine that is planned for, this one unless something is said; `options`: further ones of `compile`.

    Raises: J101 for a function, or parameters, that jit does not take; J121, C115 for values that are no option's.
    """
    frame = user_frame()
    chosen = JitOptions().using(target=target, arch=arch, schedule=schedule, plans=plans, **options)
    if function is None:
        return lambda inner: JitFunction(cast(FunctionType, inner), enclosing_names(frame, inner), chosen)
    return JitFunction(cast(FunctionType, function), enclosing_names(frame, function), chosen)

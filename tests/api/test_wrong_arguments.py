"""Every public callable refuses wrong arguments with a coded error at the line of the call: too few, too many, unknown, of a wrong type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import pto_wsp
from pto_wsp import (
    Channel,
    Dense,
    DenseDyn,
    DispatchPolicy,
    DType,
    Event,
    In,
    Out,
    P,
    PtoError,
    Ragged,
    Ring,
    Schedule,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    TimingPolicy,
    Tunable,
    builtin_arch,
    kernel,
    parallel_for,
    process,
    pto,
    ptoisa,
    ptoisa_kernel,
    workload,
)
from pto_wsp.ir.axes import DenseOf
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.keys import trace_key

F32 = DType.F32
X = Tensor(np.zeros((8, 4, 4), np.float32), name="X")
Y = Tensor(np.zeros((8, 4, 4), np.float32), name="Y")


@kernel
def double(x: In[Tile[4, 4, F32]], y: Out[Tile[4, 4, F32]]) -> None:
    pto.store(y, x * 2)


@workload
def doubled() -> None:
    for b in P(8):
        double[b](X[b], Y[b])


class Wrong:
    """A value that no parameter takes."""

    def __repr__(self) -> str:
        return "a wrong value"


WRONG = Wrong()


# -- the callables -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Public:
    """A public callable: how a user names it, and how to get it from a value of its own."""

    name: str
    get: Callable[[], Callable[..., object]]
    signature: inspect.Signature
    takes_anything: frozenset[str]      # parameters whose annotation is object or Any

    def __str__(self) -> str:
        return self.name


@cache
def instance_of(name: str) -> Any:
    """Return a value of a public class whose methods are called."""
    program = doubled().compile(target="interp")
    program.run()
    values: Mapping[str, Callable[[], Any]] = {
        "Arch": lambda: builtin_arch("unit"), "Calendar": lambda: Calendar.of([(0, k) for k in range(8)]), "Channel": lambda: Channel("c"),
        "DType": lambda: F32, "DenseDyn": lambda: DenseDyn(4), "Event": lambda: Event("e"), "Kernel": lambda: double,
        "KernelBuilder": lambda: pto_wsp.KernelBuilder("built", {"y": pto_wsp.InOut[pto_wsp.Tile[2, 2, F32]]}),
        "Process": lambda: process("p"), "Program": lambda: program, "Ragged": lambda: Ragged(2, np.array([1, 1])),
        "Ring": lambda: Ring((1, 4), F32),
        "Schedule": Schedule, "Sparse": lambda: Sparse(1, np.array([0, 1]), np.array([0])), "Symbol": lambda: Symbol("n"),
        "Tensor": lambda: X, "TensorView": lambda: X[0], "Tunable": lambda: Tunable(1, 2), "Workload": doubled,
        "WorkloadFunction": lambda: doubled,
        "DispatchPolicy": lambda: DispatchPolicy, "TimingPolicy": lambda: TimingPolicy, "Scalar": lambda: Symbol("n") + 1,
        "Deps": pto_wsp.Deps.explicit, "Pools": pto_wsp.Pools.single, "ReadyPolicy": pto_wsp.ReadyPolicy.fifo,
        "StartPolicy": lambda: pto_wsp.StartPolicy.threshold(2), "TracePolicy": pto_wsp.TracePolicy.none,
        "TaskWindow": lambda: pto_wsp.TaskWindow(4), "Stats": lambda: program.stats, "Trace": lambda: program.trace,
        "RunGraph": lambda: program.graph, "Explanation": lambda: program.explain(), "Simulation": lambda: program.simulate(),
        "KeyExpr": lambda: trace_key("b", "test"), "DenseOf": lambda: DenseOf(3), "Injective": lambda: pto_wsp.Injective(np.arange(3)),
        "Monotone": lambda: pto_wsp.Monotone(np.arange(3)), "Package": lambda: doubled().compile(target="ascend_npu").package,
        "Mesh": lambda: pto_wsp.Mesh(x=2), "TensorLayout": lambda: pto_wsp.TensorLayout.sharded(0, 2, "x"),
        "Replicate": pto_wsp.Replicate, "Shard": lambda: pto_wsp.Shard("x"), "Partial": lambda: pto_wsp.Partial("x"),
        "TilePlan": lambda: pto_wsp.TilePlan("f", "unit", "interp"),
    }
    return values[name]()


FOR_PASSES = frozenset({"TilePlan.said", "TilePlan.with_choice", "TilePlan.with_cost", "TilePlan.used_with",
                        "TilePlan.all_said"})     # no user calls these
METHODS = (FunctionType, staticmethod, classmethod)
NO_VALUES = {"Acc", "Constexpr", "Dense", "In", "InOut", "Out", "Scalar", "Tile", "PtoError", "WindowMode"}     # types and names


def publics() -> Iterator[Public]:
    for name in pto_wsp.__all__:
        value = getattr(pto_wsp, name)
        if name in ("pto", "ptoisa"):
            continue
        if name == "P":
            yield from of_value("P", lambda: P)
            yield from of_value("P.sel", lambda: P.sel)
        elif isinstance(value, type):
            yield from of_class(name, value)
        else:
            yield public(name, lambda value=value: value)
    for name in ("TensorView", "Stats", "Trace", "RunGraph", "Explanation", "Simulation"):
        yield from of_value(name, lambda name=name: instance_of(name))


def of_class(name: str, cls: type) -> Iterator[Public]:
    if not issubclass(cls, PtoError):
        yield public(name, lambda: cls)
    if name not in NO_VALUES:
        yield from of_value(name, lambda: instance_of(name))


def of_value(name: str, get: Callable[[], Any]) -> Iterator[Public]:
    value = get()
    for attribute in dir(value):
        static = inspect.getattr_static(value, attribute, None)
        if (attribute.startswith("_") and attribute != "__call__") or not isinstance(static, METHODS) or not is_ours(static):
            continue
        member = getattr(value, attribute)
        if callable(member) and not isinstance(member, type) and f"{name}.{attribute}" not in FOR_PASSES:
            yield public(name if attribute == "__call__" else f"{name}.{attribute}", lambda get=get, at=attribute: getattr(get(), at))


def is_ours(member: object) -> bool:
    function = getattr(member, "__func__", member)
    return str(getattr(function, "__module__", "pto_wsp")).startswith("pto_wsp")


def public(name: str, get: Callable[[], Callable[..., object]]) -> Public:
    value = get()
    try:
        signature = inspect.signature(value)
    except ValueError:      # an enum
        signature = inspect.Signature([inspect.Parameter("value", inspect.Parameter.POSITIONAL_ONLY)])
    return Public(name, get, signature, frozenset(p.name for p in signature.parameters.values() if str(p.annotation) in ("object", "Any")))


PUBLICS = tuple(publics())


# -- calls -------------------------------------------------------------------------------------------------------------
def call(function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    return function(*args, **kwargs)      # the line of the call


LINE = call.__code__.co_firstlineno + 1


def problem_of(function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> str | None:
    """Return what is wrong with the answer to a wrong call; None for a coded error at the line of the call."""
    try:
        result = call(function, args, kwargs)
        if inspect.isgenerator(result):
            next(result)
    except PtoError as error:
        span: Any = error.span
        if span is None or (span.file, span.line) != (__file__, LINE):
            return f"{error.code} at {span}: {error.message}"
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"no error: {type(result)!s}"


def positional(signature: inspect.Signature) -> list[inspect.Parameter]:
    return [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def kinds(signature: inspect.Signature) -> set[object]:
    return {p.kind for p in signature.parameters.values()}


def wrong_calls(which: Public) -> Iterator[tuple[str, tuple[object, ...], dict[str, object]]]:
    """Yield calls with too few, too many and unknown arguments, and with arguments of a wrong type."""
    signature = which.signature
    parameters = positional(signature)
    required = [p for p in parameters if p.default is p.empty]
    needed = {p.name: WRONG for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
    if required or needed:
        yield "too few", (), {}
    if inspect.Parameter.VAR_POSITIONAL not in kinds(signature):
        yield "too many", (WRONG,) * (len(parameters) + 1), dict(needed)
    if inspect.Parameter.VAR_KEYWORD not in kinds(signature):
        yield "unknown", (WRONG,) * len(required), {**needed, "no_such_argument": WRONG}
    typed = [p for p in signature.parameters.values() if p.name not in which.takes_anything]
    if typed:
        if any(p.kind is not p.KEYWORD_ONLY for p in typed):
            yield "wrong type", (WRONG,) * max(len(required), 1), dict(needed)
        for p in typed:
            if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY:
                yield f"wrong {p.name}", tuple(WRONG for r in required), {**needed, p.name: WRONG}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("which", PUBLICS, ids=str)
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "in a workload"])
def test_wrong_arguments_are_refused(which: Public, inside: bool) -> None:
    function = which.get()
    found: list[str] = []

    def try_all() -> None:
        for how, args, kwargs in wrong_calls(which):
            problem = problem_of(function, args, kwargs)
            if problem is not None:
                found.append(f"{which.name}, {how}: {problem}")

    if inside:
        @workload
        def around() -> None:
            try_all()
        with suppress(PtoError):      # for what the tried calls leave open
            around()
    else:
        try_all()
    assert not found, "\n".join(found)


# -- one wrong argument among right ones -------------------------------------------------------------------------------
def right_calls() -> Mapping[str, tuple[object, ...]]:
    """Return, for callables with several parameters, positional arguments that are right."""
    key = "b"
    window = pto_wsp.TaskWindow(4)
    return {
        "Channel": ("c", 2), "Dense": (3,), "DenseDyn": (4,), "Event": ("e",), "Injective": (np.arange(3),), "Monotone": (np.arange(3),),
        "Ragged": (2, [1, 1], None), "Sparse": (1, [0, 1], [0]), "Symbol": ("n", F32), "TaskWindow": (4, "tasks", window.mode),
        "Tensor": (np.zeros((2, 2), np.float32), (2, 2), F32, "name"), "Tensor.empty": ((2, 2), F32, "name"), "DType.from_numpy": ("f4",),
        "DispatchPolicy.round_robin": (2,), "DispatchPolicy.affinity": (key, 2), "DispatchPolicy.hash": (key, 2),
        "DispatchPolicy.dispatch_by": (key, 2), "DispatchPolicy.work_steal": (2,), "TimingPolicy.batched": (2,),
        "TimingPolicy.interleaved": (2,), "TimingPolicy.rate_limit": (2.0,), "Pools.custom": (key,), "ReadyPolicy.priority": (key,),
        "StartPolicy.threshold": (2,), "TracePolicy.cycles": (key,), "Workload.compile": ("interp", "unit", True, {}),
        "Workload.lower": ("interp", None, "unit", True, {}), "Workload.dispatch": (DispatchPolicy.round_robin(2),),
        "Workload.streams": (2,), "Workload.stream_by": (key,), "Workload.timing": (TimingPolicy.batched(2),), "Workload.named": ("n",),
        "Workload.calendar": ([(0, k) for k in range(8)],), "Workload.under": (Schedule(),), "Program.save": ("folder",),
        "Program.replay": (3,), "Program.set_axis_sizes": ({},), "Kernel.cost": ("unit",), "Kernel.check": ("ascend_910b",),
        "builtin_arch": ("unit",), "capabilities": ("cpu_sim",), "ceildiv": (3, 2), "load": ("folder",),
        "parallel_for": (4, lambda b: None), "for_each": (4, lambda b: None), "cond": (True, lambda: None, lambda: None),
        "task": (double, [0], [X[0], Y[0]]),
        "process": ("p",), "replicate": (process("p"), 2), "connect": ([process("p").body(doubled())], []), "slot_u64": (1,),
        "slot_set_u64": (1, 3), "slot_load_u64": (1, Tensor(np.arange(3), name="i"), 0, 1), "send": (Channel("c"), 1),
        "consume": (Channel("c"), lambda i: None), "receive": (Channel("c"),), "record": (Event("e"),), "synchronize": (Event("e"),),
        "query": (Event("e"),), "axis": ("b",), "Process.consumes": (Channel("c"),), "Process.produces": (Channel("c"),),
        "Process.body": (doubled(),), "Arch.with_memory": ("GM",), "Arch.with_unit": ("vector",), "Arch.with_clock": (1.0,),
        "Arch.memory": ("GM",), "Arch.unit": ("cube",), "TensorView.slice": (0, 2), "TensorView.clip": (2, 2),
        "TensorView.reshape": ((4, 4),), "TensorView.item": (0, 0), "Scalar.where": (1, 2), "Calendar.of": (key,),
        "auto_schedule": (doubled,), "timeline": (instance_of("Program"),),
    }


RIGHT = right_calls()


@pytest.mark.parametrize("which", [which for which in PUBLICS if which.name in RIGHT], ids=str)
def test_each_wrong_argument_among_right_ones_is_refused(which: Public) -> None:
    function, args = which.get(), RIGHT[which.name]
    parameters = positional(which.signature)
    found: list[str] = []

    def try_all() -> None:
        for place in range(len(args)):
            name = parameters[place].name if place < len(parameters) else "*"
            if name not in which.takes_anything or name in STILL_CHECKED:
                problem = problem_of(function, (*args[:place], WRONG, *args[place + 1:]), {})
                if problem is not None:
                    found.append(f"{which.name}, wrong {name}: {problem}")
        for parameter in which.signature.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in which.takes_anything:
                problem = problem_of(function, args, {parameter.name: WRONG})
                if problem is not None:
                    found.append(f"{which.name}, wrong {parameter.name}: {problem}")

    @workload
    def around() -> None:
        try_all()

    if which.name in IN_A_WORKLOAD:
        with suppress(PtoError):
            around()
    else:
        try_all()
    assert not found, "\n".join(found)


IN_A_WORKLOAD = {"cond", "send", "consume", "receive", "record", "synchronize", "slot_set_u64", "slot_load_u64", "axis"}
STILL_CHECKED = {"arch", "value", "axis", "condition", "indices", "row", "what"}      # object, because any scalar may stand there


# -- what is no call ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("code, what", [
    ("J101", lambda: Tensor[F32]), ("J101", lambda: Tensor[F32, 4, 4]), ("K101", lambda: In[WRONG]), ("K101", lambda: Out[3]),  # type: ignore[misc, type-arg]
    ("K101", lambda: pto_wsp.Scalar[3]), ("K101", lambda: pto_wsp.Constexpr[3]), ("K101", lambda: Tile[WRONG]),  # type: ignore[misc]
    ("W106", lambda: Dense[WRONG]), ("T101", lambda: In(F32)), ("T101", lambda: DispatchPolicy()), ("T101", lambda: TimingPolicy(3)),  # type: ignore[misc]
    ("T211", lambda: doubled.compile()), ("T101", lambda: double.run()), ("T101", lambda: doubled(3)), ("T101", lambda: doubled(x=3)),  # type: ignore[attr-defined]
    ("T211", lambda: X.sum(axis=1)), ("T211", lambda: X[0].mean), ("T205", lambda: DType("f33")), ("T101", lambda: DType()),  # type: ignore[attr-defined, call-arg]
    ("T205", lambda: pto_wsp.WindowMode("wait")), ("T101", lambda: pto_wsp.WindowMode()), ("T211", lambda: pto_wsp.pto.sums),  # type: ignore[call-arg]
    ("S102", lambda: Schedule.model_validate_json("{")), ("S102", lambda: Schedule.model_validate_json('{"streams": "x"}')),
    ("S102", lambda: Schedule.model_validate({"streams": "x"})), ("S102", lambda: Schedule.model_validate({"no": 1})),
    ("S102", lambda: pto_wsp.TaskWindow.model_validate_json("[]")), ("C110", lambda: pto_wsp.Arch.model_validate_json("{}")),
    ("C110", lambda: pto_wsp.Arch.model_validate({"name": 3})),
    ("C110", lambda: pto_wsp.Arch.model_validate_json('{"name": "a", "cores": 3}')),
    ("C110", lambda: builtin_arch("unit").model_copy(update={"no": 1})), ("S102", lambda: Schedule().model_copy(update={"streams": "x"})),
    ("W113", lambda: pto_wsp.Workload.from_json("{")), ("C110", lambda: pto_wsp.Arch.model_validate_json(3)),  # type: ignore[arg-type]
    ("T205", lambda: Schedule.model_validate(3)), ("S102", lambda: Schedule.model_validate_json(None)),  # type: ignore[arg-type]
])
def test_a_wrong_use_is_a_coded_error_at_the_line(code: str, what: Callable[[], object]) -> None:
    with pytest.raises(PtoError) as caught:
        what()
    span: Any = caught.value.span
    assert (caught.value.code, span.file, span.line) == (code, __file__, what.__code__.co_firstlineno)


# -- the operations of kernels -----------------------------------------------------------------------------------------
def operation_calls(namespace: object) -> Iterator[tuple[str, tuple[object, ...], dict[str, object]]]:
    for name in dir(namespace):
        member = getattr(namespace, name)
        if name == "CmpMode":
            continue
        parameters = positional(inspect.signature(member))
        required = sum(p.default is p.empty for p in parameters)
        takes_any = inspect.Parameter.VAR_POSITIONAL in kinds(inspect.signature(member))
        if required:
            yield name, (), {}
            yield name, (WRONG,) * required, {}
        if not takes_any:
            yield name, (WRONG,) * (len(parameters) + 1), {}
        yield name, (WRONG,) * required, {"no_such_argument": WRONG}


@pytest.mark.parametrize("namespace, decorate", [(pto, kernel), (ptoisa, ptoisa_kernel)], ids=["pto", "ptoisa"])
def test_operations_refuse_wrong_arguments(namespace: object, decorate: Any) -> None:
    found: list[str] = []

    def body(x: In[Tile[4, 4, F32]], y: Out[Tile[4, 4, F32]]) -> None:
        for name, args, kwargs in operation_calls(namespace):
            problem = problem_of(getattr(namespace, name), args, kwargs)
            if problem is not None:
                found.append(f"{name}{args}{kwargs}: {problem}")
    with suppress(PtoError):
        decorate(body).specialise()
    assert not found, "\n".join(found)


def test_the_walk_comes_to_every_public_name() -> None:
    roots = {which.name.split(".")[0] for which in PUBLICS}
    assert {name for name in pto_wsp.__all__ if name not in ("pto", "ptoisa", "PtoError")} <= roots and len(PUBLICS) > 250


def test_a_raw_error_is_seen() -> None:
    def careless(x: int) -> int:
        return x + 1

    assert "TypeError" in (problem_of(careless, (), {}) or "") and "no error" in (problem_of(careless, (1,), {}) or "")


# -- what is the user's own --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mistake", [TypeError, ValueError, AttributeError, KeyError])
def test_an_error_of_a_users_function_is_the_users(mistake: type[Exception]) -> None:
    def body(b: object) -> None:
        raise mistake("mine")

    for write in (lambda: parallel_for(4, body), lambda: process("p").body(lambda: body(3)), lambda: workload(lambda: body(3))()):
        with pytest.raises(mistake, match="mine") as caught:
            write()
        assert not isinstance(caught.value, PtoError)

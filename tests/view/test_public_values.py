"""Law: every value that a user can hold shows itself in a line, or as the text that it is, and its cell is small and never fails."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pto_wsp
from pto_wsp import (
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    Package,
    Pools,
    PtoError,
    Tensor,
    Tile,
    Workload,
    builtin_arch,
    kernel,
    pto,
    workload,
)
from pto_wsp.doors import Displayed

F32 = DType.F32
N = 64
X, Y, Z = (Tensor(np.ones((N, 16, 64), np.float32), name=name) for name in "XYZ")
MOST_REPR, MOST_CELL = 200, 100_000

# What is text of several lines by intent, as an answer to a question: `repr` is `str`.
TEXTS = frozenset({"DisplayedText", "FileText", "Explanation", "Chain", "EdgeList", "CriticalPath", "Stats", "Verification", "KernelCost",
                   "Comparison", "Advices", "KernelTable"})
# Values of the compiler behind what a user holds: they are compared and printed by their fields, and `str` is their text.
INNER = ("pto_wsp.ir.", "pto_wsp.run.", "pto_wsp.npu.", "pto_wsp.timing.timed_run")
# Calls that would do more than show, or take arguments.
NOT_CALLED = frozenset({"run", "execute", "synchronize", "verify", "replay", "save", "report", "card", "compile", "bind", "clear", "freeze",
                        "compiled", "plan"})


@kernel
def scale(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x * 2.0)


@workload
def layer() -> None:
    for b in P(N):
        scale[b](X[b], Y[b])
        scale[b](Y[b], Z[b])


@workload
def overlapping() -> None:
    for b in P(3):
        scale[b](X[b], Y[0])


def scheduled() -> Workload:
    return layer().dispatch(DispatchPolicy.affinity(lambda t: t.b % 3, 4)).task_graph(pools=Pools.by_exec_unit())


def roots() -> Iterator[object]:
    """Yield the values from which all others are reached: they are compiled, run and lowered for the purpose."""
    yield from (scale, layer, layer(), scheduled(), scheduled().schedule, scheduled().schedule.diff(layer()), X, X[0])
    yield from (builtin_arch(name) for name in ("unit", "ascend_910b", "ascend_950"))
    program = scheduled().compile(target="interp", arch="ascend_910b", overheads=True).run()
    yield from (program, program.explain(), program.explain(3).chain(), program.graph.why(0, 1), program.graph.edges[0],
                program.graph.edges_into(1), program.simulate(), program.freeze())
    device = layer().compile(target="ascend_npu")
    yield from (device, device.package, device.files, device.files["README.md"], device.package.kernels["scale"],
                device.package.diff(Package(device.package.root)))
    lowered = layer().lower("ascend_npu")
    yield from (lowered, *lowered.steps[-3:])
    with pytest.raises(PtoError) as caught:
        overlapping().compile()
    yield caught.value


def parts_of(value: object) -> Iterator[object]:
    """Yield what the public properties and the methods without parameters of a value give, and the first items of what it holds."""
    if isinstance(value, tuple | list):
        yield from value[:2]
    if not type(value).__module__.startswith("pto_wsp"):
        return
    for name, found in inspect.getmembers_static(type(value)):
        if name.startswith("_") or name in NOT_CALLED or isinstance(found, staticmethod | classmethod):
            continue
        try:
            if isinstance(found, property) or not callable(found):
                yield getattr(value, name)
            elif all(one.default is not one.empty for one in list(inspect.signature(found).parameters.values())[1:]):
                yield found(value)
        except (PtoError, AttributeError, TypeError, ValueError):    # what this value does not give, as the package of an interp program
            continue


def public_values() -> list[object]:
    """Return values by kind, one of each, two steps from the roots."""
    found: dict[type, object] = {}
    layers: list[list[object]] = [list(roots())]
    for _ in range(2):
        layers.append([part for value in layers[-1] for part in parts_of(value)])
    for value in (value for layer in layers for value in layer):
        if type(value).__module__.startswith("pto_wsp") and not type(value).__module__.startswith(INNER):
            found.setdefault(type(value), value)
    return list(found.values())


@pytest.fixture(scope="module")
def values() -> list[object]:
    return public_values()


@pytest.mark.slow
def test_the_walk_comes_to_every_shown_kind(values: list[object]) -> None:
    kinds = {type(value).__name__ for value in values}
    assert {"Arch", "Chain", "CheckList", "CriticalPath", "EdgeList", "Edge", "Explanation", "FileText", "Kernel", "Lowered", "Package",
            "PackageDifference", "PackageFiles", "PackagedKernel", "PassRun", "Program", "RaceError", "RunGraph", "Schedule",
            "ScheduleDifference", "Simulation", "Stats", "Trace", "Workload"} <= kinds


def test_a_repr_is_a_line_or_the_text_that_the_value_is(values: list[object]) -> None:
    long = {type(value).__name__: len(repr(value)) for value in values if type(value).__name__ not in TEXTS and
            (len(repr(value)) > MOST_REPR or "\n" in repr(value))}
    assert not long, f"reprs that are dumps: {long}"


def test_a_cell_never_fails_and_is_small(values: list[object]) -> None:
    shown = [value for value in values if isinstance(value, Displayed)]
    assert len(shown) > 20
    for value in shown:
        bundle: Any = value._repr_mimebundle_()
        assert len(bundle.get("text/html", "")) <= MOST_CELL, type(value)
        card = value.card      # faults of cards are silent in a cell, and errors here
        assert card is None or "text/html" in bundle, type(value)


def test_names_of_the_package_show_themselves() -> None:
    for name in pto_wsp.__all__:
        assert len(repr(getattr(pto_wsp, name))) <= MOST_REPR, name

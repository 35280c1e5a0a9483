"""compile(passes=...): a function of the user's own in place of a pass runs, is held to the pass's rule, and has artifacts of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import DispatchPolicy, DType, In, Out, P, Program, Tensor, Tile, Workload, builtin_arch, kernel, load, pto, workload
from pto_wsp.errors import CompileOptionError, PassError, PipeHazardError, UnknownPassError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_walk import map_submits
from pto_wsp.ir.scalar import Const
from pto_wsp.npu.isa.tile_program import TileProgram
from pto_wsp.npu.tiles.plan_memory import plan_memory
from pto_wsp.passes.context import Context
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.simplify import simplify
from pto_wsp.passes.price import price_tasks
from tests.caches import with_runtime

F32 = DType.F32
BLOCK = Tile[8, 16, F32]


@kernel
def shifted(x: In[BLOCK], y: Out[BLOCK]) -> None:
    pto.store(y, x * 2.0 + 1)


def made() -> tuple[Workload, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return a workload, its input and its output."""
    x = np.arange(4 * 8 * 16, dtype=np.float32).reshape(4, 8, 16)
    y = np.zeros_like(x)
    source, target = Tensor(x), Tensor(y)

    @workload
    def shift_all() -> None:
        for b in P(4):
            shifted[b](source[b], target[b])

    return shift_all(), x, y


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a store of its own for each test: what is in it was put there by the test."""
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path / "cache")))


def twice_added(node: k.Kernel, context: KernelContext) -> k.Kernel:
    """Double by an addition: `%1 = mul %0, 2.0` → `%1 = add %0, %0`, the same numbers, bit for bit."""
    return replace(simplify(node, context), body=tuple(_added(stmt) for stmt in node.body))


def _added(stmt: k.Stmt) -> k.Stmt:
    match stmt:
        case k.Compute(op="mul", operands=(x, k.ScalarOperand(Const(2.0)))):
            return replace(stmt, op="add", operands=(x, x))
        case _:
            return stmt


def unchanged(ir: Any, context: object) -> Any:
    """Return what it is given: in place of a pass that establishes something, too little."""
    return ir


def sources(program: Program) -> str:
    """Return the C of the kernels of a program's artifact."""
    assert program.artifact_dir is not None
    return (program.artifact_dir / "src" / "kernels.c").read_text()


def was_found(program: Program) -> bool:
    """Tell whether the store had what a program runs."""
    return program.compiled.from_cache


# ---- it runs ----

@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", ["cpu_sim", "ascend_npu", "pto"])
def test_a_function_in_place_of_a_pass_makes_other_code(target: str) -> None:
    w, x, y = made()
    calls: list[str] = []

    def mine(node: k.Kernel, context: KernelContext) -> k.Kernel:
        calls.append(node.name)
        return twice_added(node, context)

    own, usual = w.compile(target, passes={"simplify": mine}), w.compile(target)
    assert calls == ["shifted"]
    assert own.artifact_dir != usual.artifact_dir
    if target == "cpu_sim":
        assert sources(own) != sources(usual)
        own.run()
        assert np.array_equal(y, x * 2 + 1)


@pytest.mark.slow
def test_what_it_makes_is_saved_and_loaded(tmp_path: Path) -> None:
    w, x, _ = made()
    own = w.compile(passes={"simplify": twice_added})
    y = np.zeros_like(x)
    loaded = load(own.save(tmp_path / "saved"))
    names = [slot.ref.shown for slot in loaded.plan.tensors]
    loaded.run(**dict(zip(names, (x, y), strict=True)))
    assert np.array_equal(y, x * 2 + 1) and sources(loaded) == sources(own)


def test_interp_runs_passes_of_plans_and_has_no_others() -> None:
    w, x, y = made()
    seen: list[TaskPlan] = []

    def price(plan: TaskPlan, context: Context) -> TaskPlan:
        seen.append(plan)
        return price_tasks(plan, context)

    w.compile("interp", passes={"price_tasks": price}).run()
    assert len(seen) == 1 and np.array_equal(y, x * 2 + 1)
    with pytest.raises(UnknownPassError, match="target interp has no pass 'simplify'"):
        w.compile("interp", passes={"simplify": unchanged})


def dear(plan: TaskPlan, context: Context) -> TaskPlan:
    """Price every task at a million cycles."""
    return map_submits(price_tasks(plan, context), lambda task: replace(task, cost=Const(1_000_000)))


def test_other_prices_are_those_of_every_simulation_of_the_program() -> None:
    w, _, _ = made()
    program = w.compile(passes={"price_tasks": dear}).run()
    assert program.stats.total_cycles == 4_000_000
    four = program.simulate(w.dispatch(DispatchPolicy.round_robin(4)), arch=builtin_arch("unit"))
    assert four.total_cycles == 1_000_000


# ---- the store ----

@pytest.mark.slow
def test_the_store_never_gives_one_for_the_other() -> None:
    w, _, _ = made()
    first = w.compile()
    own = w.compile(passes={"simplify": twice_added})
    assert not was_found(own) and sources(own) != sources(first)
    again, usual = w.compile(passes={"simplify": twice_added}), w.compile()
    assert was_found(again) and again.artifact_dir == own.artifact_dir
    assert was_found(usual) and usual.artifact_dir == first.artifact_dir


@pytest.mark.slow
def test_functions_of_the_same_name_are_told_apart_by_what_they_make() -> None:
    w, _, _ = made()

    def one(change: Callable[[k.Kernel, KernelContext], k.Kernel]) -> Program:
        def mine(node: k.Kernel, context: KernelContext) -> k.Kernel:
            return change(node, context)

        return w.compile(passes={"simplify": mine})

    assert sources(one(twice_added)) != sources(one(simplify))
    assert was_found(one(twice_added)) and was_found(one(simplify))


@pytest.mark.parametrize("target", ["ascend_npu", "pto"])
def test_the_store_keeps_packages_apart(target: str) -> None:
    w, _, _ = made()
    own, usual = w.compile(target, passes={"simplify": twice_added}), w.compile(target)
    assert not was_found(own) and not was_found(usual) and own.artifact_dir != usual.artifact_dir
    again = w.compile(target, passes={"simplify": twice_added})
    assert was_found(again) and again.artifact_dir == own.artifact_dir and was_found(w.compile(target))


# ---- it is held to the rule ----

def refused(target: str, name: str, function: Callable[..., object]) -> PassError:
    """Return the error of compiling with a function in place of a pass; it is at the line that compiles, in this file."""
    with pytest.raises(PassError) as found:
        made()[0].compile(target, passes={name: function})
    assert found.value.span is not None and found.value.span.file == __file__
    return found.value


def test_a_rule_that_is_broken_is_named() -> None:
    error = refused("cpu_sim", "form_columns", unchanged)
    assert error.message == "what stands for pass `form_columns` breaks what holds after that pass"
    assert error.expected == "What is wider than one column stands in `Columns` of its width."
    assert f"it ran on kernel `shifted`, and is `unchanged` at {__file__}:" in error.notes[0]


def test_a_rule_of_tile_programs_is_held_too() -> None:
    assert "breaks what holds" in refused("ascend_npu", "plan_memory", unchanged).message

    def all_at_zero(program: TileProgram, arch: Any) -> TileProgram:
        placed = plan_memory(program, arch)
        return replace(placed, buffers=tuple(replace(buffer, address=0) for buffer in placed.buffers))

    assert "breaks what holds" in refused("pto", "plan_memory", all_at_zero).message


def test_flags_that_are_missing_are_found_by_the_checks_of_programs() -> None:
    with pytest.raises(PipeHazardError):
        made()[0].compile("ascend_npu", passes={"insert_sync": unchanged})


def subtracting(node: k.Kernel, context: KernelContext) -> k.Kernel:
    """Break the numbers: `add` → `sub`."""
    return replace(node, body=tuple(replace(stmt, op="sub") if isinstance(stmt, k.Compute) and stmt.op == "add" else stmt
                                    for stmt in node.body))


@pytest.mark.parametrize("target", ["cpu_sim", "ascend_npu", "pto"])
def test_other_numbers_are_refused_where_no_rule_would_tell(target: str) -> None:
    error = refused(target, "simplify", subtracting)
    assert error.message == "what stands for pass `simplify` changes what the kernel computes" and "`y` differs in 128" in str(error.found)


def without_loads(node: k.Kernel, context: KernelContext) -> k.Kernel:
    """Leave values that nothing makes."""
    return replace(node, body=tuple(stmt for stmt in node.body if not isinstance(stmt, k.Load)))


def test_what_does_not_run_is_refused() -> None:
    assert "it does not run: " in str(refused("cpu_sim", "simplify", without_loads).found)


def test_a_plan_that_later_stages_fail_on_is_the_users() -> None:
    def no_kernels(plan: TaskPlan, context: Context) -> TaskPlan:
        return replace(plan, kernels=())

    assert refused("cpu_sim", "drop_repeated_checks", no_kernels).code == "C113"
    assert refused("ascend_npu", "order_tasks", no_kernels).code == "C113"


@pytest.mark.parametrize(("function", "message", "found"), [
    (lambda ir, context: None, "does not return a kernel", "None"),
    (lambda ir, context: 1 // 0, "raised an error", "ZeroDivisionError: integer division or modulo by zero"),
    (lambda ir: ir, "raised an error", "TypeError: "),
])
def test_a_function_that_gives_no_kernel(function: Callable[..., object], message: str, found: str) -> None:
    error = refused("cpu_sim", "simplify", function)
    assert error.message == f"what stands for pass `simplify` {message}" and str(error.found).startswith(found)


@pytest.mark.parametrize("passes", [3, {"simplify"}, {"simplify": 3}, {3: unchanged}])
def test_what_is_no_dict_of_functions(passes: object) -> None:
    with pytest.raises(CompileOptionError, match="`passes` does not take this value"):
        made()[0].compile(passes=passes)    # type: ignore[arg-type]


@pytest.mark.slow
def test_numbers_of_checks_are_of_the_packages_passes() -> None:
    with pytest.raises(CompileOptionError, match="check_finite=True goes with the package's own passes"):
        made()[0].compile(check_finite=True, passes={"simplify": twice_added})
    made()[0].compile(check_finite=True, passes={"price_tasks": price_tasks}).run()

"""Each example of a function on whole tensors gives NumPy's numbers: as NumPy, by the ops' meaning, and compiled, under both plans."""

from __future__ import annotations

import copy
import inspect
import subprocess
import sys

import numpy as np
import pytest

from pto_wsp import builtin_arch
from pto_wsp.api.tensors.lowering import plan_of
from pto_wsp.passes.tensor.passes import print_planned
from tests.examples.tensors import EXAMPLES, FOLDER, TensorExample, every_example

every_plan = pytest.mark.parametrize("which", ["default", "tuned"])


def test_every_file_has_an_example() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {example.file for example in EXAMPLES.values()} | {"compare"}


@every_example
def test_python_gives_the_numbers_of_an_independent_reference(example: TensorExample) -> None:
    for given in example.draws():
        data = copy.deepcopy(given)
        example.check(data, given, example.function.python(**data))


@pytest.mark.sampled(3)
@every_example
def test_reference_gives_the_numbers_of_an_independent_reference(example: TensorExample) -> None:
    for given in example.draws():
        data = copy.deepcopy(given)
        example.check(data, given, example.function.reference(**data))


@pytest.mark.sampled(49)
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@every_plan
@every_example
def test_plans_give_the_numbers_of_an_independent_reference(example: TensorExample, which: str, target: str) -> None:
    plan = example.function.plan(**example.module.draw())
    if which == "tuned":
        plan = plan.but(**example.tuned)
    function = example.function.using(target=target)
    for given in example.draws():
        data = copy.deepcopy(given)
        example.check(data, given, function(**data, plan=plan), f"{which} {target}")


@pytest.mark.sampled(4)
@every_plan
@every_example
def test_there_is_a_plan_for_a_machine_of_small_memories(example: TensorExample, which: str) -> None:
    plan = example.function.plan(**example.module.draw(), arch="ascend_910b")
    if which == "tuned":
        tuned = plan.but(**example.tuned)
        assert plan.diff(tuned).rows, "an entry by hand that changes nothing"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("arch", ["host_cpu", "ascend_910b"])
@every_example
def test_a_complete_plan_cuts_as_no_plan_does(example: TensorExample, arch: str) -> None:
    function, machine = example.function.trace(**example.module.draw()), builtin_arch(arch)
    planned = plan_of(function, None, machine, "cpu_sim", {})
    assert print_planned(plan_of(function, planned.plan, machine, "cpu_sim", {})) == print_planned(planned)


def arrays_in(value: object) -> list[np.ndarray]:
    """The arrays of a structure, in order."""
    if isinstance(value, np.ndarray):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [array for one in values for array in arrays_in(one)]


@pytest.mark.slow
@every_example
def test_the_printed_module_alone_gives_the_same_bits(example: TensorExample) -> None:
    """What `source()` prints is a program of its own: it knows nothing of the function."""
    given, again = example.module.draw(), example.module.draw()
    made = example.function(**given)
    source = example.function.lower().source()
    namespace: dict[str, object] = {"__name__": "module"}
    exec(source, namespace)
    parameters = [name for name in inspect.signature(example.function).parameters if name in again]
    ran = namespace["run"](*(array for name in parameters for array in arrays_in(again[name])))      # type: ignore[operator]
    for one, other in zip([*arrays_in((made,)), *arrays_in(given)], [*arrays_in((ran,)), *arrays_in(again)], strict=True):
        assert one.tobytes() == other.tobytes()
    assert "jit" not in source and "import tt" not in source


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted({example.file for example in EXAMPLES.values()}))
def test_the_file_runs_as_a_script(file: str) -> None:
    done = subprocess.run([sys.executable, str(FOLDER / f"{file}.py")], text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "default plan" in done.stdout and "tuned plan" in done.stdout and "FAILED" not in done.stdout

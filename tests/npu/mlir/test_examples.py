"""`.pto` files of every kernel of every example."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, jit
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.emit.mlir import emit_pto
from pto_wsp.npu.select.select import select
from tests.examples.tensors import EXAMPLES
from tests.npu.emit.golden.test_examples import CASES
from tests.npu.mlir.meaning import check_pto
from tests.npu.split.numpy_plan import npu_plan

REFUSED = "mixture routed by tasks"      # columns of its topk are parts of a tile


@pytest.mark.parametrize("name", [name for name in CASES if name != REFUSED])
@pytest.mark.sampled(3)
def test_every_kernel_of_an_example(name: str) -> None:
    arch = builtin_arch("ascend_910b")
    for use in npu_plan(CASES[name]()).kernels:
        assert check_pto(emit_pto(select(use, arch), arch)).kind == use.core.value


def test_a_kernel_that_the_text_has_no_form_for_is_refused() -> None:
    with pytest.raises(PtoError, match=r"(?s)N105.*sees a part of tile"):
        CASES[REFUSED]().compile(target="pto")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paged_attention", "mla_prolog", "indexer_prolog"])
def test_functions_on_tensors_whose_tables_name_rows(name: str) -> None:
    """Tasks bind the rows that a parameter names: kernels of the target read no number. The plan means what the function means."""
    example = EXAMPLES[name]
    given, data = example.module.draw(), example.module.draw()
    plan = example.function.plan(**given, arch="ascend_910b", target="pto")
    lowered = example.function.lower(plan, **given)
    program = lowered.compile(target="pto", arch="ascend_910b")
    assert program.artifact_dir is not None
    texts = [path.read_text() for path in program.artifact_dir.glob("*.pto")]
    assert texts and all(check_pto(text).kind in ("vector", "cube") for text in texts)
    scope: dict[str, Any] = {"__name__": "module"}
    exec(compile(lowered.source().replace(".compile()", ".compile('interp')"), "<module>", "exec"), scope)
    results = scope["run"](**{one: data[one] for one in inspect.signature(scope["run"]).parameters})
    example.check(data, given, results, "interp")


def test_the_contents_of_a_buffer_are_followed_through_branches() -> None:
    """A row that a run may leave short is filled, then loaded; its sum reads more rows, of a larger view of the same buffer."""
    @jit
    def total(x: Tensor[4, 16, DType.F32], n: Tensor[1, DType.I32]):
        return np.sum(x[:, :n[0]], axis=-1, keepdims=True)

    x = np.ones((4, 16), np.float32)
    given = {"x": x, "n": np.array([5], np.int32)}
    program = total.lower(total.plan(**given, target="pto"), **given).compile(target="pto")
    assert program.artifact_dir is not None
    assert [check_pto(path.read_text()).kind for path in program.artifact_dir.glob("*.pto")] == ["vector"]

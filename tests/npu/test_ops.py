"""Every op on every dtype that an arch takes, through the whole pipeline: packages of many kernels, run, against their golden.py."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, Workload, workload
from pto_wsp.ops.spec import Convert, Op
from pto_wsp.ops.table import ENTRIES, find
from tests.laws.test_kernels import Call, call_of
from tests.npu.harness import A2A3_FAST, A5_FAST, check_package

ARCHES = {"a2a3": "ascend_910b", "a5": "ascend_950"}
MOST = 40    # kernels of a package; the runtime takes 64 callables
DTYPES = (DType.F32, DType.F16, DType.BF16, DType.I32, DType.I16, DType.I8, DType.U8, DType.U16, DType.U32, DType.I64,
          DType.U64, DType.BOOL)
# Every dtype on one of the two; a2a3 takes the same kernels but for its own ways with bytes, halves and masks.
ALL_SHAPES = (DType.F32, DType.I32, DType.BF16)     # on a5; all else takes the first operands of each op, and every cast
TAKEN = {"a2a3": (DType.F32, DType.F16, DType.I32, DType.I8, DType.BOOL), "a5": DTYPES}


def tasks(calls: list[Call]) -> Workload:
    """Return a workload of one task for each call."""
    @workload
    def ops() -> None:
        for number, (made, args) in enumerate(calls):
            made[number](**{name: _tensor(value, f"{name}{number}") for name, value in args.items()})

    return ops()


def _tensor(value: Any, name: str) -> Tensor:
    return Tensor(np.ascontiguousarray(value), name=name)


def check(calls: list[Call], family: str) -> None:
    """Raise AssertionError unless a package of the calls gives what its golden.py says."""
    program = tasks(calls).compile(target="ascend_npu", arch=ARCHES[family])
    assert program.artifact_dir is not None
    check_package(program.artifact_dir, family)


def taken(op: Op, dtype: DType, family: str) -> Iterator[Call]:
    """Yield the calls of an op that an arch takes; the others are refused with an error of the device's."""
    for call in call_of(op, dtype) if dtype in op.dtypes else ():
        try:
            tasks([call]).compile(target="ascend_npu", arch=ARCHES[family])
        except PtoError as refusal:
            assert refusal.code.startswith("N") and refusal.span is not None and refusal.expected, str(refusal)
        else:
            yield call


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_a_package_of_several_ops_gives_what_its_golden_says(family: str) -> None:
    names = ("mul", "exp", "rowsum", "where", "transpose", "gather")
    check([call_of(find(name), DType.F32)[0] for name in names], family)


@pytest.mark.slow
@pytest.mark.parametrize("family", A5_FAST)
def test_rows_of_one_element_are_in_order(family: str) -> None:
    """Scratch of a reduction is stored as its operand is, also where that is one column of a wider tile."""
    calls = [call for name in ("argsort", "topk") for call in call_of(find(name), DType.F32) if call[1]["a"].shape == (2, 1)]
    assert len(calls) == 3
    check(calls, family)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "family"), [(dtype, family) for family, dtypes in TAKEN.items() for dtype in dtypes], ids=str)
def test_every_op_gives_what_its_golden_says(dtype: DType, family: str) -> None:
    every_shape = family == "a5" and dtype in ALL_SHAPES
    calls = [call for op in ENTRIES for call in islice(taken(op, dtype, family), None if every_shape or isinstance(op, Convert) else 1)]
    assert calls
    for first in range(0, len(calls), MOST):
        check(calls[first:first + MOST], family)

"""The tables of a saved program, as text."""

from __future__ import annotations

import re

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload
from pto_wsp.c.program import emit_program

F32 = DType.F32


@kernel
def add(a: In[Tile[1, 4, F32]], b: In[Tile[1, 4, F32]], out: Out[Tile[1, 4, F32]]) -> None:
    pto.store(out, a + b)


def test_a_name_that_two_tensors_have_becomes_one_that_no_other_has() -> None:
    first, second, third = (Tensor(np.zeros((1, 4), np.float32), name=name) for name in ("X", "X_2", "X"))

    @workload
    def w() -> None:
        add(a=first, b=second, out=third)

    text = emit_program(w().compile(target="interp").plan, (), portable=True, max_tasks=1)["src/program.c"]
    table = text[text.index("all_tensors[]"):text.index("all_slots[]")]
    assert sorted(re.findall(r'\.name = "(\w+)"', table)) == ["X", "X_2", "X_3"]

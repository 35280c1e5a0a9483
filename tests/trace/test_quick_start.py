"""The quick start as it stands: as a script, under text annotations, in a function, at a prompt."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

IMPORTS = """\
import numpy as np
from pto_wsp import (kernel, workload, P, pto, In, Out, Tile, Dense, DenseDyn, Tensor, DType,
                     DispatchPolicy, TaskWindow, WindowMode)
"""
BODY = """\
batch_size, num_tiles = 1, 2

@kernel
def rmsnorm_tile(x: In[Tile[16, 128, DType.F32]], out: Out[Tile[16, 128, DType.F32]]):
    sq = pto.mul(x, x)
    mean_sq = pto.rowmean(sq)
    inv = pto.rsqrt(mean_sq)
    pto.store(out, pto.mul(x, inv))

X_np = np.random.randn(batch_size, num_tiles, 16, 128).astype(np.float32)
Y_np = np.zeros_like(X_np)
X = Tensor(data=X_np, shape=X_np.shape, dtype=DType.F32)
Y = Tensor(data=Y_np, shape=Y_np.shape, dtype=DType.F32)
batch, tiles = Dense[batch_size](), Dense[num_tiles]()

@workload
def attention():
    for b in P(batch):
        for t in P(tiles):
            rmsnorm_tile[b, t](x=X[b][t], out=Y[b][t])

program = (attention()
    .dispatch(DispatchPolicy.round_robin(num_aicpus=4))
    .task_graph(window=TaskWindow(8192, "tasks", WindowMode.STALL))
    .compile(target="interp"))
program.execute()
program.synchronize()
print("total_cycles =", program.stats.total_cycles)
"""
INSIDE = IMPORTS + "def main():\n" + "".join(f"    {line}\n" if line else "\n" for line in BODY.splitlines()) + \
    "    return X_np, Y_np\nX_np, Y_np = main()\n"
SOURCES = {"script": IMPORTS + BODY, "text annotations": "from __future__ import annotations\n" + IMPORTS + BODY, "function": INSIDE,
           "function, text annotations": "from __future__ import annotations\n" + INSIDE}
# 2 loads-and-stores of 16·128, mul and mul of 16·128, rowmean over 16·128 giving 16, rsqrt of 16
ONE_TASK = 5 * 16 * 128 + 16


def check(scope: dict[str, object], printed: str) -> None:
    """Hold the results against NumPy, and the cycles against the hand: two tasks on executors of their own."""
    x, y = scope["X_np"], scope["Y_np"]
    assert isinstance(x, np.ndarray)
    np.testing.assert_allclose(y, x / np.sqrt((x * x).mean(-1, keepdims=True)), rtol=1e-5)  # type: ignore[arg-type]
    assert printed == f"total_cycles = {ONE_TASK}\n"


@pytest.mark.parametrize("how", SOURCES)
def test_it_runs_unchanged(how: str) -> None:
    scope: dict[str, object] = {"__name__": "model"}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(SOURCES[how], "<model>", "exec", dont_inherit=True), scope)
    check(scope, out.getvalue())


def test_it_runs_statement_by_statement_as_at_a_prompt() -> None:
    scope: dict[str, object] = {"__name__": "__main__"}
    statements: list[str] = []
    for line in (IMPORTS + BODY).splitlines():
        if statements and (line.startswith((" ", "def ", ")")) or line == "" or statements[-1].endswith("@")):
            statements[-1] += "\n" + line
        else:
            statements.append(line)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for number, statement in enumerate(statements):
            exec(compile(statement + "\n", f"<stdin-{number}>", "single", dont_inherit=True), scope)
    check(scope, out.getvalue())

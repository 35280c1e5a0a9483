"""Annotations of functions on tensors under type checkers: pyright takes them as they are, mypy with types of its own in front.

Mistakes of types are found all the same. Where a checker is not installed, its tests are skipped; tests/api/test_mypy_plugin.py has the
plugin of mypy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import PtoError, jit

PLAIN = '''
from typing import NamedTuple
import numpy as np
from pto_wsp import DType, In, Injective, InOut, Out, Scalar, Tensor, Tile, Tunable, jit, kernel, pto, tt
from pto_wsp.tt.library import softmax

F32, I32 = DType.F32, DType.I32

class Weights(NamedTuple):
    up: Tensor[64, "h", F32]
    down: Tensor["h", 64, F32]

@jit
def block(x: Tensor["t", 64, F32], w: Weights, slots: Injective[Tensor["t", I32]], cache: InOut[Tensor["r", 64, F32]],
          by: Scalar[F32], eps: float = 1e-6, rows: int = Tunable(64, 128)):
    y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    cache[slots] = softmax(y @ w.up) @ w.down
    for i in tt.each(x.shape[0]):
        cache[i] += -x[i] * by
    return y.reshape(-1, rows)

@kernel
def doubled(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]):
    pto.store(y, x * 2.0)

table: Tensor = Injective(np.arange(3))
'''
IN_FRONT = '''
from typing import Annotated
import numpy as np
import numpy.typing as npt
from pto_wsp import DType, InOut, Scalar, Tensor, jit

Array = npt.NDArray[np.float32]

@jit
def added(x: Annotated[Array, Tensor["t", 64, DType.F32]], c: Annotated[Array, InOut[Tensor["t", DType.F32]]],
          by: Annotated[float, Scalar[DType.F32]], n: int = 3) -> Array:
    c += np.sum(x, axis=1)
    return x * by * n

found = added(np.ones((3, 64), np.float32), np.zeros(3, np.float32), 2.0)
'''
MISTAKES = [("", ""), ("text: str = found\n", "str"), ("Tensor.emty((3, 4), DType.F32)\n", "emty")]


def _pyright(program: Path) -> list[str]:
    pytest.importorskip("pyright")
    settings = {"pythonVersion": "3.11", "extraPaths": [str(Path(__file__).resolve().parents[2])], "typeCheckingMode": "standard"}
    (program.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    run = subprocess.run([sys.executable, "-m", "pyright", "--outputjson", str(program)], capture_output=True, text=True, check=False,
                         cwd=program.parent)
    return [f"{one['range']['start']['line']}: {one['message']}" for one in json.loads(run.stdout)["generalDiagnostics"]
            if one["severity"] == "error"]


def _mypy(program: Path) -> list[str]:
    mypy = pytest.importorskip("mypy.api")
    config = program.parent / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n")
    report, _, _ = mypy.run(["--config-file", str(config), "--cache-dir", str(program.parent / "cache"), str(program)])
    return [line for line in report.splitlines() if f"{os.sep}program.py" in line or line.startswith("program.py")]


@pytest.mark.slow
@pytest.mark.parametrize(("check", "text"), [(_pyright, PLAIN), (_pyright, IN_FRONT), (_mypy, IN_FRONT)])
def test_a_checker_takes_the_annotations_and_finds_mistakes(tmp_path: Path, check: Any, text: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(text)
    assert check(program) == []
    if text is IN_FRONT:
        program.write_text(text + "".join(mistake for mistake, _ in MISTAKES))
        found = check(program)
        assert all(any(word in line for line in found) for _, word in MISTAKES), found


def test_what_stands_behind_a_type_is_what_jit_reads() -> None:
    scope: dict[str, Any] = {}
    exec(IN_FRONT, scope)
    np.testing.assert_array_equal(scope["found"], np.full((3, 64), 6, np.float32))
    assert str(scope["added"].trace()).startswith("function added(x: [t, 64] f32, c: inout [t] f32, by: scalar f32)")


def test_annotations_of_kernels_behind_a_type_are_refused() -> None:
    from typing import Annotated

    from pto_wsp import DType, In, Tile

    def f(x: Any) -> Any:
        return x

    f.__annotations__["x"] = Annotated[Any, In[Tile[4, 4, DType.F32]]]
    with pytest.raises(PtoError) as caught:
        jit(f)
    assert caught.value.code == "J101"

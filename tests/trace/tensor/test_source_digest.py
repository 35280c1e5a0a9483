"""Digests of functions that have not been traced: what changes a trace changes the digest, or leaves none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pto_wsp.trace.tensor.captured import CapturedNames
from pto_wsp.trace.tensor.source_digest import source_digest
from tests.caches import with_runtime

SOURCE = '''
import math
import random
import time
from typing import NamedTuple
import numpy as np
from pto_wsp import DType, jit, tt
from pto_wsp.tt.library import silu

FACTOR, TABLE, DTYPE = 2.0, np.arange(4.0), DType.F32
SIZES = {"a": (1, 2)}

def helper(x, by=3):
    return x * by + FACTOR

def made(number):
    def inner(x):
        return x * number
    return inner

first, second = made(1), made(2)

@jit
def nested(x):
    return x + TABLE[1]

def body(x):
    y = first(helper(x)) + second(x) + SIZES["a"][0]
    return silu(nested(y)).astype(DTYPE) * math.pi
'''
CHANGES = {
    "a captured number": ("2.0", "2.5"), "the sign of zero": ("2.0", "-0.0"), "its type": ("DTYPE = 2.0", "DTYPE = 2"),
    "a captured array": ("np.arange(4.0)", "np.arange(4.0) + 1"), "its dtype": ("np.arange(4.0)", "np.arange(4, dtype=np.float32)"),
    "an enum": ("DType.F32", "DType.F16"), "a part of a container": ('"a": (1, 2)', '"a": (3, 2)'),
    "a helper": ("x * by + FACTOR", "x * by - FACTOR"), "a default": ("by=3", "by=4"), "the first closure": ("made(1)", "made(5)"),
    "the second closure of the same code": ("made(2)", "made(5)"), "code of closures": ("x * number", "x / number"),
    "a nested function": ("x + TABLE[1]", "x + TABLE[2]"), "the body": ("+ second(x)", "- second(x)"), "a method": (".astype(", ".view("),
}
UNKNOWN = {
    "a clock": "return x * time.time()", "random numbers": "return x * random.random()", "NumPy's": "return x * np.random.rand()",
    "a file": "return x * np.load('w.npy')", "another": "return x * float(open('n').read())", "an import": "import os; return x",
    "an object": "return x * thing.value", "a class": "return x * Thing.value", "a method": "return thing.apply(x)",
    "a function of a module": "return x * shutil.disk_usage('/').free", "a wrapped function": "return wrapped(x)",
    "a large array": "return x * large[0]",
}
MORE = '''
import functools, shutil
class Thing:
    value = 1
    def apply(self, x):
        return x
thing = Thing()
large = np.zeros(100_000)
@functools.wraps(helper)
def wrapped(x):
    return helper(x) * 2

def body(x):
    '''


def digest(source: str, *more: object) -> str | None:
    names: dict[str, object] = {"__name__": "a_module"}
    exec(compile(source, "a_module.py", "exec"), names)
    captured = CapturedNames(names["body"])  # type: ignore[arg-type]
    captured.key()
    return source_digest(captured, *more)


def test_a_source_executed_again_has_the_digest_of_before() -> None:
    assert digest(SOURCE) is not None and digest(SOURCE) == digest(SOURCE)
    assert digest(SOURCE, ("x", DTYPES[0])) != digest(SOURCE, ("x", DTYPES[1]))


DTYPES = (1, 1.0)


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_a_trace_changes_the_digest(change: str) -> None:
    old, new = CHANGES[change]
    changed = SOURCE.replace(old, new, 1)
    assert changed != SOURCE and digest(changed) not in (None, digest(SOURCE))


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_another_process_may_see_otherwise_has_no_digest(what: str) -> None:
    assert digest(SOURCE + MORE + UNKNOWN[what]) is None
    assert digest(SOURCE + MORE + "return x * FACTOR") is not None


SCRIPT = '''
import sys
import numpy as np
from pto_wsp import DType, Tensor, jit
import pto_wsp.api.tensors.known as known
FACTOR = float(sys.argv[1])

@jit
def scaled(x: Tensor["t", 8, DType.F32]):
    return x * FACTOR, {"twice": x + x}

traced = []
trace = known.trace_function
known.trace_function = lambda *given: (traced.append(1), trace(*given))[1]
x = np.ones((5, 8), np.float32)
one, more = scaled(x)
assert np.array_equal(one, x * FACTOR) and np.array_equal(more["twice"], x + x)
assert np.array_equal(scaled(np.ones((7, 8), np.float32))[0], np.full((7, 8), FACTOR, np.float32))
print(len(traced), len(scaled.trace().body.items), scaled.compiled[0].program.compiled.workload is not None,
      len(scaled.compiled[0].program.compiled.unscheduled.kernels) > 0)
'''


@pytest.mark.slow
def test_a_new_process_runs_a_function_that_it_does_not_trace(tmp_path: Path) -> None:
    environment = {**os.environ, "PTO_WSP_CACHE_DIR": str(with_runtime(tmp_path / "cache"))}
    script = f"{tmp_path}/a_script.py"
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPT)

    def run(*arguments: str, seed: str = "0") -> list[str]:
        done = subprocess.run([sys.executable, script, *arguments], text=True, capture_output=True, check=False,
                              env={**environment, "PYTHONHASHSEED": seed})
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run("2.0")[0] == "1"
    assert run("2.0", seed="1") == ["0", "2", "True", "True"]      # what a run does not need is read when it is asked for
    assert run("3.0")[0] == "1"                     # captured numbers count
    assert run("3.0", seed="2")[0] == "0"

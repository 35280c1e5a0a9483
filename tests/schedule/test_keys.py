"""Keys are the same in every process and at every call, and each task needs only the names that its side of a key asks for."""

from __future__ import annotations

import functools
import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DispatchPolicy, DType, In, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.errors import KeyTraceError
from pto_wsp.schedule.keys import process_number
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import Span

F32 = DType.F32
X, Y, Z = (Tensor(np.ones((8, 4), np.float32), name=name) for name in "XYZ")


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


@kernel
def head(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x * 2)


@workload
def two_loops() -> None:
    for i in P(8):
        copy[i](X[i:i + 1], Y[i:i + 1])
    for b in P(8):
        head[b](Y[b:b + 1], Z[b:b + 1])


# ---- what answers otherwise in each process, or at each call ----

counter = itertools.count()
named_hash = hash


def hashed(text: str) -> int:
    return hash(text) % 7


class Counting:
    """A key that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, t: object) -> int:
        self.calls += 1
        return self.calls


HASH = "answers otherwise in each process"
AGAIN = "gives other numbers each time"
REFUSED: dict[str, tuple[Callable[..., object], str]] = {
    "hash of the task": (lambda t: named_hash(t), HASH),
    "hash of its text": (lambda t: hash(str(t)) % 97, HASH),
    "hash of a constant": (lambda t: t.b + hash("matmul"), HASH),
    "hash in a function": (lambda t: t.b + hashed("matmul"), HASH),
    "hash inside": (lambda t: sum(hash(c) for c in "ab"), HASH),
    "hash of a partial": (functools.partial(lambda t, n: t.b + hash(n), n="x"), HASH),
    "id of the task": (lambda t: id(t) % 2, HASH),
    "str of the task": (lambda t: len(str(t)), "a key asks for str() of the task"),
    "repr of the task": (lambda t: len(repr(t)), "a key asks for repr() of the task"),
    "repr in a text": (lambda t: len(f"{t!r}"), "a key asks for repr() of the task"),
    "repr in a list": (lambda t: len(str([t])), "a key asks for repr() of the task"),
    "repr of the brackets": (lambda t: len(repr(t.params)), "a key asks for repr() of t.params"),
    "format of the task": (lambda t: len(f"{t}"), "a key asks for format() of the task"),
    "the task as a dict's key": (lambda t: {t: 1}[t], "a key asks for hash() of the task"),
    "truth of the task": (lambda t: 1 if t else 0, "a key asks for bool() of the task"),
    "a comparison of the task": (lambda t: 1 if t == 3 else 0, "a key asks for a comparison of the task"),
    "str of the brackets": (lambda t: len(str(t.params)), "a key asks for str() of t.params"),
    "sum of the brackets": (lambda t: sum(t.params), "a key asks for iter() of t.params"),
    "len of the brackets": (lambda t: len(t.params), "a key asks for len() of t.params"),
    "order of the brackets": (lambda t: t.params < (1, 2), "a key asks for a comparison of t.params"),
    "an address from a method": (lambda t: object.__hash__(t) % 1009, HASH),
    "an address of a part": (lambda t: object.__hash__(t.params), HASH),
    "a hash from a method": (lambda t: "matmul".__hash__() % 7, HASH),
    "a small random number": (lambda t: random.randrange(40), AGAIN),
    "a random number": (lambda t: random.random() < 2 and random.getrandbits(64) >> 1, AGAIN),
    "a counter": (lambda t: next(counter), AGAIN),
    "a counter of its own": (Counting(), AGAIN),
    "a default that is text": (lambda t: t.get("b", "none"), "the default of t.get gives no whole number"),
    "a default that is real": (lambda t: t.get("b", 0.5), "the default of t.get gives no whole number"),
    "a default that reads": (lambda t: t.get("b", Tensor(np.arange(3))[0]), "depends on more than the task"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_key_that_is_no_constant_of_the_task_is_refused_at_its_line(what: str) -> None:
    key, message = REFUSED[what]
    with pytest.raises(KeyTraceError) as caught:
        DispatchPolicy.affinity(key, 2)
    span = caught.value.span
    assert message in str(caught.value) and isinstance(span, Span) and Path(span.file).name == "test_keys.py"


def test_a_task_shows_outside_of_a_running_key() -> None:
    seen: list[object] = []
    DispatchPolicy.affinity(lambda t: seen.append(t) or t.b, 2)
    assert repr(seen[0]) == "<the task, as a key sees it>"


def test_both_numbers_of_a_calendar_are_held_to_it() -> None:
    with pytest.raises(KeyTraceError, match=AGAIN):
        two_loops().calendar(lambda t: (0, next(counter)))


@pytest.mark.parametrize("key", [lambda t: t.hash + t.id, lambda t: t.get("hash"), lambda t: t.params[0] % len("hash")])
def test_loops_may_be_called_hash_and_id(key: Callable[..., object]) -> None:
    assert process_number(key) == ""
    DispatchPolicy.affinity(key, 2)


def test_a_hash_of_ones_own_is_no_builtin() -> None:
    def hash(value: int) -> int:
        return value * 7
    assert repr(DispatchPolicy.affinity(lambda t: t.b + hash(1), 2).key) == "b + 7"


PROGRAM = """
from tests.schedule.test_keys import two_loops
from pto_wsp import DispatchPolicy, ReadyPolicy
keys = [lambda t: (t.kernel == "head").where(t.get("b", 0), t.get("i", 5) + t.params[0]), "b", lambda t: t.get("x", 3)]
print([repr(DispatchPolicy.affinity(key, 4)) for key in keys])
print(two_loops().dispatch(DispatchPolicy.hash(keys[0], 4)).compile().artifact_dir.name)
"""


@pytest.mark.slow
def test_a_schedule_is_one_artifact_in_every_process() -> None:
    root = Path(__file__).resolve().parents[2]
    said = {subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
                           text=True, check=True).stdout for seed in ("0", "1", "random")}
    assert len(said) == 1


# ---- names that only some tasks have ----

def homes(w: Workload) -> list[int]:
    """Return the executor that each task ran on, in the order of submission."""
    return [int(worker) for worker in w.compile(target="interp").run().trace.executor]


KEYS: dict[str, tuple[Callable[..., object], list[int]]] = {
    "a default": (lambda t: t.get("i", 2), [0, 1, 2, 3] * 2 + [2] * 8),
    "a default of another name": (lambda t: t.get("i", t.get("b", 0) + 1), [0, 1, 2, 3] * 2 + [1, 2, 3, 0] * 2),
    "a default in both": (lambda t: t.get("i", 0) + t.get("b", 0), [0, 1, 2, 3] * 4),
    "a default that no task needs": (lambda t: t.get("z", 3), [3] * 16),
    "the kernel's side": (lambda t: (t.kernel == head).where(3, t.i), [0, 1, 2, 3] * 2 + [3] * 8),
    "both sides": (lambda t: (t.kernel == head).where(t.b + 1, t.i), [0, 1, 2, 3] * 2 + [1, 2, 3, 0] * 2),
    "not the kernel": (lambda t: (t.kernel != head).where(t.i, 1), [0, 1, 2, 3] * 2 + [1] * 8),
    "and": (lambda t: ((t.kernel == "copy") & (t.i > 5)).where(1, 0), [0] * 6 + [1] * 2 + [0] * 8),
    "and, turned": (lambda t: ((t.i > 5) & (t.kernel == "copy")).where(1, 0), [0] * 6 + [1] * 2 + [0] * 8),
    "and, of three": (lambda t: ((t.i > 5) & ((t.i < 7) & (t.kernel == "copy"))).where(1, 0), [0] * 6 + [1, 0] + [0] * 8),
    "or": (lambda t: ((t.kernel == "copy") | (t.b > 5)).where(1, 0), [1] * 8 + [0] * 6 + [1] * 2),
    "or, turned": (lambda t: ((t.b > 5) | (t.kernel == "copy")).where(1, 0), [1] * 8 + [0] * 6 + [1] * 2),
    "and, the other kernel": (lambda t: ((t.kernel == "copy") & (t.kernel == "head")).where(t.z, 2), [2] * 16),
    "a condition of a side": (lambda t: (t.kernel == "copy").where(t.i > 3, t.b < 2), [0] * 4 + [1] * 4 + [1] * 2 + [0] * 6),
}


@pytest.mark.parametrize("what", KEYS)
def test_a_task_needs_only_the_names_that_its_side_of_a_key_asks_for(what: str) -> None:
    key, expected = KEYS[what]
    scheduled = two_loops().dispatch(DispatchPolicy.dispatch_by(key, 4))
    assert homes(scheduled) == expected
    assert Schedule.model_validate_json(scheduled.schedule.model_dump_json()) == scheduled.schedule


@pytest.mark.parametrize("key, lacking", [(lambda t: t.i, "i"), (lambda t: (t.kernel == head).where(t.i, t.i), "i"),
                                          (lambda t: t.get("i", t.z), "z"), (lambda t: (t.b > 3).where(1, 0), "b"),
                                          (lambda t: ((t.kernel == head) & (t.i > 3)).where(1, 0), "i")])
def test_a_name_that_a_task_needs_and_lacks_is_refused_still(key: Callable[..., object], lacking: str) -> None:
    with pytest.raises(KeyTraceError, match=f"names `{lacking}`, which this task does not have"):
        two_loops().dispatch(DispatchPolicy.dispatch_by(key, 4)).compile(target="interp")


def test_a_default_stands_for_the_place_in_a_sparse_row_as_well() -> None:
    key = DispatchPolicy.dispatch_by(lambda t: t.get("e", 3).position, 4)  # type: ignore[attr-defined]
    assert homes(two_loops().dispatch(key)) == [3] * 16

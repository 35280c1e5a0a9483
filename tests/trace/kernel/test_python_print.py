"""Python's print in a kernel's body: of a tile or scalar it is pto.print, of all else it prints while the body is traced."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, PtoError, Scalar, Tile, kernel, pto

F32, I32 = DType.F32, DType.I32
X = np.array([[1, 2]], np.float32)


def kernel_of(body: Callable[[Any, Any], None]) -> Any:
    @kernel
    def k(x: In[Tile[1, 2, F32]], n: Scalar[I32], y: Out[Tile[1, 2, F32]]) -> None:
        body(x, n)
        pto.store(y, x)
    return k


def prints_of(body: Callable[[Any, Any], None]) -> list[str]:
    """Return the lines of the kernel's text that print."""
    return [line.strip() for line in str(kernel_of(body).ir).splitlines() if "print" in line]


def test_print_is_pto_print(capsys: pytest.CaptureFixture[str]) -> None:
    kernel_of(lambda x, n: print("doubled", x * 2)).run(X, 3)
    found = capsys.readouterr().out
    kernel_of(lambda x, n: pto.print("doubled", x * 2)).run(X, 3)
    assert found == capsys.readouterr().out and "doubled" in found and "[2. 4.]" in found


@pytest.mark.parametrize(("body", "same"), [
    (lambda x, n: print(x), lambda x, n: pto.print("", x)), (lambda x, n: print("n is", n), lambda x, n: pto.print("n is", n)),
    (lambda x, n: print("a", 1, x, "b", n), lambda x, n: (pto.print("a 1", x), pto.print("b", n))),
    (lambda x, n: print(x, "of", 2), lambda x, n: pto.print("of 2", x)),
    (lambda x, n: print("n + 1 =", n + 1), lambda x, n: pto.print("n + 1 =", n + 1)),
])
def test_text_before_a_value_is_its_label(body: Callable[[Any, Any], None], same: Callable[[Any, Any], None]) -> None:
    assert prints_of(body) == prints_of(same) != []


def test_what_is_known_prints_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert prints_of(lambda x, n: print("traced", 3, sep="-", end="!")) == []
    assert capsys.readouterr().out == "traced-3!"


def test_a_print_in_a_loop_runs_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    def body(x: Any, n: Any) -> None:
        for i in pto.range(n):
            print("turn", i)
    kernel_of(body).run(X, 3)
    assert capsys.readouterr().out.count("turn") == 3


def test_python_has_its_own_print_back_after_a_trace_and_after_an_error() -> None:
    own = builtins.print
    assert prints_of(lambda x, n: print(x)) and builtins.print is own
    with pytest.raises(PtoError):
        prints_of(lambda x, n: print(x, file=None))
    assert builtins.print is own


def test_another_thread_prints_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    def body(x: Any, n: Any) -> None:
        thread = threading.Thread(target=lambda: print("elsewhere"))
        thread.start()
        thread.join()
        inner = kernel_of(lambda x, n: print("inner", x))     # a kernel traced in the body of another
        assert "inner" in str(inner.ir)
        print("outer", x)
    assert len(prints_of(body)) == 1
    assert capsys.readouterr().out == "elsewhere\n"


def test_a_print_replaced_meanwhile_stays(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []

    def body(x: Any, n: Any) -> None:
        before = builtins.print

        def listening(*values: object, **options: Any) -> None:
            heard.append(values[0])
            before(*values, **options)
        monkeypatch.setattr(builtins, "print", listening)
        print("label", x)
    assert len(prints_of(body)) == 1
    assert len(prints_of(lambda x, n: print("later", x))) == 1
    print("after")
    assert heard == ["label", "after"] and capsys.readouterr().out == "after\n"

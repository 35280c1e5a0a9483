"""pto.print: the same text from both executors and from `k.run`, in program order, within a bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, P, Program, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import ArgumentKindError, ArityError, BufferMisuseError, OutsideTraceError, TaskFailedError
from pto_wsp.ir.codec import dumps, loads
from pto_wsp.ir.digest import kernel_digest
from pto_wsp.run import prints

F32, I32 = DType.F32, DType.I32
TARGETS = ("interp", "cpu_sim")


@kernel
def running(x: In[Tile[2, 3, F32]], n: Scalar[I32], y: InOut[Tile[2, 3, F32]]) -> None:
    """Print a buffer in each iteration, a parameter before and after it is stored, a mask and a scalar."""
    acc = pto.alloc((2, 3), F32, init=0)
    for j in pto.range(n):
        acc += x
        pto.print("acc", acc)
        pto.print("j", j)
    pto.print("old y", y)
    pto.store(y, acc + 1)
    pto.print("new y", y)
    pto.print(acc > 4)
    pto.print("half", n * 0.5)


@kernel
def wide(x: In[Tile[64, 64, F32]], y: Out[Tile[64, 1, F32]]) -> None:
    """Print a tile that NumPy shortens and one that it does not."""
    double = x * 2.0
    pto.print("double", double)
    total = pto.rowsum(double)
    pto.print("total", total)
    pto.store(y, total)


@kernel
def row_of(x: In[Tensor], row: Scalar[I32], y: Out[Tile[1, 4, F32]]) -> None:
    """Print on either side of a guarded load."""
    pto.print("row", row)
    piece = pto.load(x, (row, 0), shape=(1, 4))
    pto.print("piece", piece)
    pto.store(y, piece)


@kernel
def much(x: In[Tile[8, 64, F32]], y: Out[Tile[8, 64, F32]]) -> None:
    """Print 2 KiB a task."""
    pto.print("x", x)
    pto.store(y, x)


@kernel
def part(x: In[Tile[4, 6, F32]], n: Scalar[I32], y: Out[Tile[4, 6, F32]]) -> None:
    """Print the rows and columns that there are."""
    pto.print("rows", x, valid=(n, None))
    pto.print("both", x + 1.0, valid=(n - 2, n + 3))
    pto.store(y, x)


@pytest.mark.parametrize("target", TARGETS)
def test_only_the_valid_part_of_a_tile_is_shown(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)

    @workload
    def main() -> None:
        for n in (1, 3, 9):
            part[n](Tensor(x), n, Tensor(np.zeros((4, 6), np.float32)))
    main().compile(target=target).run()
    shown = [f"part[{n}] {label}: Tile[{rows}, {cols}, f32]\n{value[:rows, :cols]}\n"
             for n in (1, 3, 9) for label, value, rows, cols in (("rows", x, min(n, 4), 6),
                                                                 ("both", x + 1, max(0, min(n - 2, 4)), min(n + 3, 6)))]
    assert capsys.readouterr().out == "".join(shown)


def running_program(target: str, n: int = 3, **options: Any) -> Program:
    """Return a program whose task b runs b iterations."""
    X = Tensor(np.arange(n * 6, dtype=np.float32).reshape(n, 2, 3))
    Y = Tensor(np.full((n, 2, 3), -1, np.float32))

    @workload
    def main() -> None:
        for b in P(n):
            running[b](x=X[b], n=b, y=Y[b])
    return main().compile(target=target, **options)


EXPECTED_FIRST = """\
running[b=0] old y: Tile[2, 3, f32]
[[-1. -1. -1.]
 [-1. -1. -1.]]
running[b=0] new y: Tile[2, 3, f32]
[[1. 1. 1.]
 [1. 1. 1.]]
running[b=0] line 32: Tile[2, 3, bool]
[[False False False]
 [False False False]]
running[b=0] half = 0.0
running[b=1] acc: Tile[2, 3, f32]
[[ 6.  7.  8.]
 [ 9. 10. 11.]]
running[b=1] j = 0
"""


@pytest.mark.parametrize("target", TARGETS)
def test_values_are_printed_as_they_are_at_that_point(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = running_program(target)
    program.execute()
    program.synchronize()
    shown = capsys.readouterr().out
    assert shown.startswith(EXPECTED_FIRST.replace("line 32", f"line {_line_of('pto.print(acc > 4)')}"))
    assert shown.count("running[b=2] acc") == 2 and shown.endswith("running[b=2] half = 1.0\n")
    program.synchronize()
    assert capsys.readouterr().out == ""          # once


def _line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.strip() == text)


@pytest.mark.parametrize("threads", [1, 4])
def test_both_executors_print_the_same_text(threads: int, capsys: pytest.CaptureFixture[str]) -> None:
    running_program("interp", 40).run()
    expected = capsys.readouterr().out
    running_program("cpu_sim", 40, threads=threads).run()
    assert capsys.readouterr().out == expected


def test_a_kernel_run_at_once_prints_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    running.run(x, n=1, y=np.zeros((2, 3), np.float32))
    assert capsys.readouterr().out.startswith("running acc: Tile[2, 3, f32]\n[[0. 1. 2.]\n [3. 4. 5.]]\nrunning j = 0\nrunning old y")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_large_tiles_are_shortened_as_numpy_shortens_them(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(3).integers(-50, 50, (64, 64)).astype(np.float32)
    X, Y = Tensor(x), Tensor(np.zeros((64, 1), np.float32))

    @workload
    def main() -> None:
        wide(x=X, y=Y)
    program = main().compile(target=target)
    for options in ({}, {"threshold": 5, "edgeitems": 1}, {"threshold": 10**9, "linewidth": 10**6}):
        with np.printoptions(**options):
            program.run()
            total = (x * 2).sum(1, keepdims=True)
            assert capsys.readouterr().out == (f"wide double: Tile[64, 64, f32]\n{x * 2}\n"
                                               f"wide total: Tile[64, 1, f32]\n{total}\n")


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_printed_before_a_failure_is_shown(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = Tensor(np.zeros((8, 4), np.float32)), Tensor(np.zeros((400, 1, 4), np.float32))

    @workload
    def main() -> None:
        for i in P(400):
            row_of[i](x=X, row=i // 10, y=Y[i])
    program = main().compile(target=target, **({"threads": 4} if target == "cpu_sim" else {}))
    with pytest.raises(TaskFailedError, match=r"row_of\[i=80\]"):
        program.run()
    shown = capsys.readouterr().out
    assert shown.count("row = ") == 81 and shown.count(" piece: ") == 80
    assert shown.endswith("row_of[i=80] row = 8\n")


@pytest.mark.slow
def test_memory_is_bounded_and_both_drop_the_same(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prints, "MAX_BYTES", 1 << 20)
    n = 1000
    X, Y = Tensor(np.arange(n * 512, dtype=np.float32).reshape(n, 8, 64)), Tensor(np.zeros((n, 8, 64), np.float32))

    @workload
    def main() -> None:
        for i in P(n):
            much[i](x=X[i], y=Y[i])
    main().compile(target="interp").run()
    expected = capsys.readouterr().out
    kept = (1 << 20) // (2048 + 128)
    assert expected.count("much[i=") == kept
    assert expected.endswith(f"pto.print: {n - kept} more values were dropped, a run keeps 1 MiB of them: print less, or smaller tiles\n")
    for threads in (1, 4):
        main().compile(target="cpu_sim", threads=threads).run()
        assert capsys.readouterr().out == expected


@pytest.mark.slow
def test_printing_changes_no_result_and_no_cost() -> None:
    @kernel
    def silent(x: In[Tile[64, 64, F32]], y: Out[Tile[64, 1, F32]]) -> None:
        pto.store(y, pto.rowsum(x * 2.0))
    x = np.random.default_rng(4).standard_normal((64, 64)).astype(np.float32)
    X, Y, Z = Tensor(x), Tensor(np.zeros((64, 1), np.float32)), Tensor(np.zeros((64, 1), np.float32))

    @workload
    def loud_main() -> None:
        wide(x=X, y=Y)

    @workload
    def silent_main() -> None:
        silent(x=X, y=Z)
    loud, quiet = loud_main().compile().run(), silent_main().compile().run()
    assert Y.data is not None and Z.data is not None and Y.data.tobytes() == Z.data.tobytes()
    assert loud.stats.total_cycles == quiet.stats.total_cycles


def test_a_print_is_a_statement_of_the_kernel() -> None:
    ir = running.specialise()
    text = str(running.ir)
    assert "print 'acc', %" in text and "print n * 0.5" not in text and "print 'half', n * 0.5" in text
    assert loads(dumps(ir)) == ir

    @kernel
    def one(x: In[Tile[2, 3, F32]], y: Out[Tile[2, 3, F32]]) -> None:
        pto.print("a", x)
        pto.store(y, x)

    @kernel
    def other(x: In[Tile[2, 3, F32]], y: Out[Tile[2, 3, F32]]) -> None:
        pto.print("b", x)
        pto.store(y, x)
    assert kernel_digest(one.specialise()) != kernel_digest(other.specialise())


def test_wrong_prints_are_refused() -> None:
    def none(x: In[Tile[2, 3, F32]]) -> None:
        pto.print()

    def three(x: In[Tile[2, 3, F32]]) -> None:
        pto.print("a", "b", x)

    def swapped(x: In[Tile[2, 3, F32]]) -> None:
        pto.print(x, "a")

    def only_label(x: In[Tile[2, 3, F32]]) -> None:
        pto.print("a")

    def unwritten(x: In[Tile[2, 3, F32]]) -> None:
        pto.print(pto.alloc((2, 3), F32))

    for mistake, error in ((none, ArityError), (three, ArityError), (swapped, ArgumentKindError), (only_label, ArgumentKindError),
                           (unwritten, BufferMisuseError)):
        with pytest.raises(error):
            kernel(mistake).specialise()
    with pytest.raises(OutsideTraceError):
        pto.print(1)

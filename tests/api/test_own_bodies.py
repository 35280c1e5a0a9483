"""Kernels with C bodies of their own, run as programs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import Constexpr, DType, In, InOut, Out, P, Program, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import CompilerFailedError, MissingBodyError, PtoError, TaskFailedError

F32, I32 = DType.F32, DType.I32
TILE = Tile[8, 16, F32]


def program(call: Any, **options: Any) -> Program:
    """Return a program of one workload, which is the call."""
    @workload
    def own() -> None:
        call()
    return own().compile(**options)


def noise(*shape: int) -> np.ndarray[Any, Any]:
    """Return f32 noise."""
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@kernel(c_src="""
    /* y = x * scale + N, both valid parts */
    for (int64_t r = 0; r < y_rows; ++r)
        for (int64_t c = 0; c < y_cols; ++c)
            y[r * y_row_step + c * y_col_step] = x[r * x_row_step + c * x_col_step] * scale + N;
""")
def scaled(x: In[TILE], scale: Scalar[F32], N: Constexpr[int], y: Out[TILE]) -> None:
    pto.store(y, x * scale + N)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
@pytest.mark.parametrize("layout", ["plain", "strided", "transposed"])
def test_a_body_is_given_valid_extents_and_steps(target: str, layout: str) -> None:
    x_np = {"plain": noise(5, 13), "strided": noise(10, 26)[::2, ::2], "transposed": noise(13, 5).T}[layout]
    y_np = np.zeros((5, 13), np.float32)
    X, Y = Tensor(x_np), Tensor(y_np)
    program(lambda: scaled(x=X[:].clip(8, 16), scale=2.5, N=3, y=Y[:].clip(8, 16)), target=target).run()
    np.testing.assert_array_equal(y_np, x_np * np.float32(2.5) + np.float32(3))


def test_every_kind_of_scalar_and_constant() -> None:
    @kernel(c_src="""
        out[0] = a; out[1] = b; out[2] = flag; out[3] = half * 2; out[4] = sizeof(char[SIZE]); out[5] = LONG; out[6] = RATE * 4;
        out[7] = ON;
    """)
    def pass_all(a: Scalar[DType.I64], b: Scalar[F32], flag: Scalar[DType.BOOL], half: Scalar[DType.F64], SIZE: Constexpr[int],
                 LONG: Constexpr[int], RATE: Constexpr[float], ON: Constexpr[bool], out: Out[Tile[1, 8, DType.F64]]) -> None: ...
    out = np.zeros((1, 8))
    OUT = Tensor(out)
    program(lambda: pass_all(-(1 << 40), 1.5, True, 0.25, 5, 1 << 40, 0.75, True, OUT)).run()
    np.testing.assert_array_equal(out[0], [-(1 << 40), 1.5, 1, 0.5, 5, 1 << 40, 3, 1])


def test_macros_end_with_their_body_and_system_headers_come_before_it() -> None:
    @kernel(c_src="""
        #include <math.h>
        #define LIMIT 2
        y[0] = (float)pow(2.0, LIMIT);
    """)
    def two(y: Out[Tile[1, 1, F32]]) -> None: ...

    @kernel(c_src="""
        #ifdef LIMIT
        y[0] = -1;
        #else
        #define LIMIT 5
        y[0] = LIMIT;
        #endif
    """)
    def five(y: Out[Tile[1, 1, F32]]) -> None: ...
    Y, Z = Tensor(np.zeros((1, 1), np.float32)), Tensor(np.zeros((1, 1), np.float32))
    program(lambda: (two(Y), five(Z))).run()
    assert (Y.data[0, 0], Z.data[0, 0]) == (4, 5)


def test_scratch_is_private_and_aligned() -> None:
    @kernel(c_src="""
        float *row = (float *)scratch;
        if ((uintptr_t)scratch % 64) return 9;
        for (int64_t c = 0; c < x_cols; ++c) row[c] = x[c];
        for (int64_t c = 0; c < x_cols; ++c) x[c] = row[x_cols - 1 - c];
    """, scratch_bytes=64)
    def reverse(x: InOut[Tile[1, 16, F32]]) -> None: ...
    x_np = noise(1, 16)
    expected, X = x_np[:, ::-1].copy(), Tensor(x_np)
    program(lambda: reverse(X)).run()
    np.testing.assert_array_equal(x_np, expected)


def test_an_in_tile_that_overlaps_what_is_written_is_read_as_it_was() -> None:
    @kernel(c_src="for (int64_t c = 0; c < y_cols; ++c) y[c * y_col_step] = x[c * x_col_step] + 1;")
    def shift(x: In[Tile[1, 8, F32]], y: Out[Tile[1, 8, F32]]) -> None:
        pto.store(y, x + 1)
    found = {}
    for target in ("cpu_sim", "interp"):
        a = np.arange(10, dtype=np.float32).reshape(1, 10)
        A = Tensor(a)
        program(lambda A=A: shift(x=A[:, 0:8], y=A[:, 1:9]), target=target).run()
        found[target] = a
    np.testing.assert_array_equal(found["cpu_sim"], found["interp"])
    np.testing.assert_array_equal(found["interp"][0], [0, *range(1, 9), 9])


@pytest.mark.slow
def test_a_body_may_multiply_with_our_headers() -> None:
    @kernel(c_src="pto_matmul_i32(y, y_row_step, a, a_row_step, b, b_row_step, 8, 8, 8, 0, scratch);", scratch_bytes=1 << 20)
    def product(a: In[Tile[8, 8, I32]], b: In[Tile[8, 8, I32]], y: Out[Tile[8, 8, I32]]) -> None: ...
    a, b = (np.random.default_rng(k).integers(-9, 9, (8, 8)).astype(np.int32) for k in (1, 2))
    A, B, Y = Tensor(a), Tensor(b), Tensor(np.zeros((8, 8), np.int32))
    program(lambda: product(A, B, Y)).run()
    np.testing.assert_array_equal(Y.data, a @ b)


def test_a_failure_code_ends_the_run_with_the_task() -> None:
    @kernel(c_src="if (n == 2) return 40 + n;")
    def check(n: Scalar[I32], y: InOut[Tile[1, 1, F32]]) -> None: ...
    Y = Tensor(np.zeros((4, 1, 1), np.float32))

    @workload
    def own() -> None:
        for b in P(4):
            check[b](b, Y[b])
    with pytest.raises(TaskFailedError, match=r"task check\[b=2\] failed: its own C body returned 42") as caught:
        own().compile().run()
    assert Path(caught.value.span.file).name == "test_own_bodies.py"  # type: ignore[union-attr]


def test_a_guard_of_the_python_meaning_is_not_taken_for_a_code() -> None:
    @kernel(c_src="return 1;")
    def part(x: In[Tensor], y: Out[Tile[2, 2, F32]]) -> None:
        pto.store(y, pto.load(x, (9, 9), shape=(2, 2)))
    X, Y = Tensor(noise(4, 4)), Tensor(noise(2, 2))
    with pytest.raises(TaskFailedError, match="returned 1"):
        program(lambda: part(X, Y)).run()
    with pytest.raises(TaskFailedError, match=r"load x\[9, 9\]"):
        program(lambda: part(X, Y), target="interp").run()


def broken(text: str, **options: Any) -> PtoError:
    """Return the error of a kernel whose C body the compiler refuses."""
    @kernel(c_src=text, **options)
    def body(x: In[TILE], y: Out[TILE]) -> None: ...
    X, Y = Tensor(noise(8, 16)), Tensor(noise(8, 16))
    with pytest.raises(PtoError) as caught:
        program(lambda: body(X, Y))
    return caught.value


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text, what", [
    ("y[0] = missing;", "missing"), ("y[0] = unknown_function(x[0]);", "unknown_function"), ("x[0] = 1;", "read-only"),
    ("y[0] = scratch[0];", "scratch"), ("int *p = y;", "incompatible"), ("y[0] = ;", "expected expression"),
])
def test_a_compilers_error_points_at_the_users_line(text: str, what: str) -> None:
    error = broken("\n    /* first */\n    " + text + "\n")
    assert isinstance(error, CompilerFailedError)
    assert what in error.message
    assert getattr(error.span, "line", 0) == 3 and str(error.span).startswith("<c_src of body>:3:")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_compilers_error_in_a_file_points_at_the_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "body.c"
    path.parent.mkdir()
    path.write_text("/* one */\n#include <stdint.h>\nint k = 0;\ny[k] = nothing;\n")

    @kernel(c_path=path)
    def body(x: In[TILE], y: Out[TILE]) -> None: ...
    X, Y = Tensor(noise(8, 16)), Tensor(noise(8, 16))
    with pytest.raises(CompilerFailedError) as caught:
        program(lambda: body(X, Y))
    assert f"{path}:4:8" in str(caught.value) and "4 | y[k] = nothing;" in str(caught.value)


def test_a_function_that_no_library_has_is_named_at_its_line() -> None:
    error = broken("\n    extern float nowhere_to_be_found(float);\n    y[0] = nowhere_to_be_found(x[0]);\n")
    assert isinstance(error, CompilerFailedError)
    assert "uses `nowhere_to_be_found`, which no library has" in error.message
    assert str(error.span).startswith("<c_src of body>:2")


def test_the_artifact_names_no_folder_and_follows_the_text(tmp_path: Path) -> None:
    path = tmp_path / "body.c"
    Y = Tensor(np.zeros((1, 1), np.float32))
    digests, results = [], []
    for value in (1, 1, 2):
        path.write_text(f"y[0] = {value};\n")

        @kernel(c_path=path)
        def body(y: Out[Tile[1, 1, F32]]) -> None: ...
        made = program(lambda body=body: body(Y))
        made.run()
        digests.append(made.artifact_dir.name)  # type: ignore[union-attr]
        results.append(Y.data[0, 0])
        assert str(tmp_path) not in (made.artifact_dir / "src" / "kernels.c").read_text()  # type: ignore[operator]
        assert '#line 1 "body.c"' in (made.artifact_dir / "src" / "kernels.c").read_text()  # type: ignore[operator]
    assert digests[0] == digests[1] != digests[2] and results == [1, 1, 2]


def test_a_kernel_without_a_meaning_costs_what_it_is_bound_to() -> None:
    @kernel(c_src="y[0] = x[0];")
    def body(x: In[TILE], y: Out[TILE]) -> None: ...
    X, Y = Tensor(noise(8, 16)), Tensor(noise(8, 16))
    made = program(lambda: body(X, Y))
    made.run()
    assert made.stats.total_cycles == 2 * 8 * 16


def test_a_body_for_another_target_is_none_for_this_one() -> None:
    @kernel(cpp_src="TADD(y, x, x);")
    def body(x: In[TILE], y: Out[TILE]) -> None: ...
    X, Y = Tensor(noise(8, 16)), Tensor(noise(8, 16))
    with pytest.raises(MissingBodyError, match="no body for target cpu_sim") as caught:
        program(lambda: body(X, Y))
    assert "c_src" in str(caught.value.help)
    with pytest.raises(MissingBodyError, match="no Python body to run"):
        body.run(noise(8, 16))


def test_a_body_for_another_target_leaves_the_python_body_to_this_one() -> None:
    @kernel(cpp_src="TADD(y, x, x);")
    def body(x: In[TILE], y: Out[TILE]) -> None:
        pto.store(y, x + x)
    x_np = noise(8, 16)
    X, Y = Tensor(x_np), Tensor(np.zeros((8, 16), np.float32))
    program(lambda: body(X, Y)).run()
    np.testing.assert_array_equal(Y.data, x_np * 2)
    np.testing.assert_array_equal(body.run(x_np), x_np * 2)

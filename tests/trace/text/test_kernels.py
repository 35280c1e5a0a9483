"""The text of kernels reads back: `parse(str(k.ir)) == k.ir`, edited by hand too, and what does not read is an error at its place."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import Constexpr, DType, In, InOut, Kernel, Out, PtoError, Scalar, Tensor, Tile, kernel, minimum, parse, pto, workload
from pto_wsp.errors import IrTextError, OwnBodyError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import workload as wl
from pto_wsp.ir.digest import kernel_digest
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.scalar import evaluate
from pto_wsp.trace.kernel.accumulate import accumulator
from tests.laws.generated_kernels import Recipe, recipes
from tests.laws.mutated_json import SEEDS
from tests.trace.text.mutated_text import mutated

F32, I32 = DType.F32, DType.I32


@kernel
def everything(x: In[Tile[4, 8, F32]], index: In[Tile[4, 1, I32]], region: InOut[Tensor], n: Scalar[I32], a: Scalar[F32],
               m: InOut[Tile[4, 8, DType.BOOL]], y: Out[Tile[4, 8, F32]]) -> None:
    acc = pto.alloc((4, 8), F32, init=-0.0)
    mask = pto.alloc((4, 8), DType.BOOL)
    mask[:] = m
    for i in pto.range(1, n * 2 - 1, 3):
        for j in pto.range(minimum(n, i)):
            with pto.when((i > j) & ~(n == 4) | (region.shape[0] <= 2)):
                acc += pto.load(region, (i * 4, (j + 1) * 8), shape=(4, 8), valid=(n, None), fill=-1)
            with pto.otherwise():
                acc[:] = pto.load(region, (-(-i // 2), 0), shape=(8, 4), transpose=True, fill=-0.0) * a
    rows = pto.gather(region, index, cols=(8, 8), valid=n, fill=2.5)
    pto.scatter_add(region, index, rows, cols=(0, 8))
    order = pto.argsort(x, descending=True)
    acc[:] = pto.where(mask, pto.cast(pto.cast(acc, DType.F16, mode="floor"), F32), pto.gather(x, order))
    print("a sum", acc)
    pto.print("a part", acc, valid=(n * 2, None))
    print(n * 3)
    pto.store(y, pto.rowmax(acc) + pto.iota((4, 8), F32, axis=0) @ pto.full((8, 8), np.inf, F32))
    pto.store(m, x > 0)
    pto.store(region, x, (n, 0), valid=(2, n))


@kernel
def shadowing(n: Scalar[I32], y: Out[Tensor]) -> None:
    for i in pto.range(n):
        for inner in [i]:
            for i in pto.range(4):
                pto.store(y, pto.full((1, 1), 1, F32), (inner, i))


@kernel
def items_and_parts(x: In[Tile[8, 16, F32]], index: In[Tile[1, 8, I32]], rows: In[Tensor], y: Out[Tile[8, 16, F32]]) -> None:
    b = pto.alloc((8, 16), F32, init=0)
    for j in pto.range(8):
        n = pto.item(index, 0, j)
        b[j:j + 1, :] = pto.load(rows, (n.min(7).max(0), 0), shape=(1, 16))
    for at in range(3):
        n = pto.item(index, 0, at)
        with pto.when(n > 3):
            b += 1.0
    b[2:4, 8:16] = x[2:4, 8:16]
    pto.store(y, b)


def ir() -> k.Kernel:
    return everything.ir_of(region=F32)


def reads_back(kernel_ir: k.Kernel) -> None:
    text = str(kernel_ir)
    read = parse(text, bodies=True)
    assert read == kernel_ir
    assert kernel_digest(read.ir) == kernel_digest(kernel_ir), "0, 0.0 and False are equal, and not the same"
    assert str(read.ir) == text


def test_every_statement_reads_back() -> None:
    reads_back(ir())
    reads_back(shadowing.ir_of(y=F32))


def test_items_of_one_name_and_parts_of_buffers_read_back() -> None:
    made = items_and_parts.specialise(rows=F32)
    reads_back(made)
    assert "n.2 = item" in str(made) and "when n.2 > 3:" in str(made) and "b[j : j + 1, 0 : 16] = %" in str(made)


@pytest.mark.parametrize("how", k.COMBINES)
def test_parameters_that_accumulate_read_back(how: str) -> None:
    reads_back(accumulator("total", (k.TileParam("y", k.Role.OUT, Tile[4, 8, F32], combine=how),)))


@pytest.mark.parametrize(("old", "new", "said"), [
    ("n.2 = item", "n = item", "two scalars are called `n`"),
    ("b[j : j + 1, 0 : 16]", "b[j : j + 2, 0 : 16]", "another extent than its value"),
    ("b[j : j + 1, 0 : 16]", "b[j : j + 1]", "`,` is missing"),
    ("when n.2 > 3", "when m > 3", "nothing is called `m`"),
], ids=range(4))
def test_items_and_parts_that_do_not_read(old: str, new: str, said: str) -> None:
    text = str(items_and_parts.specialise(rows=F32))
    assert old in text
    with pytest.raises(PtoError) as caught:
        parse(text.replace(old, new))
    assert caught.value.code == "W116" and said in str(caught.value)


def test_the_text_has_a_number_where_names_hide_each_other() -> None:
    text = str(shadowing.ir_of(y=F32))
    assert "for i.1 in range(0, 4, 1):" in text and "store y[i, i.1]" in text


@pytest.mark.parametrize("name", SEEDS)
def test_kernels_of_workloads_read_back(name: str) -> None:
    for task in {task.kernel for task in _tasks(name)}:
        reads_back(task)


def _tasks(name: str) -> list[wl.Task]:
    return list(wl.tasks(SEEDS[name]().node.body))


@given(recipes())
@settings(max_examples=30, deadline=None)
def test_drawn_kernels_read_back(recipe: Recipe) -> None:
    reads_back(recipe.build(0).ir_of(region=recipe.dtype, piece=recipe.dtype))


@pytest.mark.parametrize("text", ["y[0] = 1;", "\n  for (;;) {\n\n  }  \n", "a\tb;\n", "a;\x0cb;"])
def test_bodies_in_c_read_back_to_the_byte_and_only_where_they_are_trusted(text: str) -> None:
    @kernel(c_src=text, scratch_bytes=64)
    def own(N: Constexpr[int], y: Out[Tile[1, 1, F32]]) -> None:
        pto.store(y, 1)

    reads_back(own.ir_of(N=-3))
    with pytest.raises(OwnBodyError, match="parse"):
        parse(str(own.ir_of(N=-3)))


def test_text_is_edited_by_hand() -> None:
    text = """
    # twice as much
    kernel twice( x : In[Tile[4,8,f32]],y:Out[Tile[4, 8, f32]] ) :

      %7=load x    # a comment
      # another one
      %3 = mul %7 , 2      # Tile[4, 8, f32] # and one more
      store y,
      """.replace("y,\n      ", "y, %3\n")
    read = parse(text)
    assert str(read.ir) == """\
kernel twice(x: In[Tile[4, 8, f32]], y: Out[Tile[4, 8, f32]]):
    %7 = load x                                        # Tile[4, 8, f32]
    %3 = mul %7, 2.0                                   # Tile[4, 8, f32]
    store y, %3"""
    assert np.array_equal(read.run(np.full((4, 8), 3, np.float32)), np.full((4, 8), 6, np.float32))


def test_expressions_bind_as_they_are_printed() -> None:
    head = "kernel f(n: Scalar[i32], y: Out[Tensor f32]):\n    %0 = expand 0.0, shape=(1, 1), dtype=f32\n    store y["
    for text, value in (("n - 2 - 1", 4), ("n - (2 - 1)", 6), ("-n * 2", -14), ("-(n * 2) % 5", 1), ("n // 2 * 2", 6), ("~n & 3 | 8", 8),
                        ("min(n, 3) + max(-(2), n)", 10), ("where(n < 3, 1, n % 4)", 3), ("2 * (n + 1)", 16)):
        store = parse(f"{head}{text}, 0], %0\n").ir.body[-1]
        assert isinstance(store, k.Store)
        assert evaluate(store.row, lambda leaf: 7) == value, text


REFUSED = {
    "an op that there is not": ("mul", "mull", "there is no op `mull`", "did you mean `mul`?"),
    "a value that is not made": ("rowmax %", "rowmax %88", "%8818 is not made before this line", None),
    "a name": ("(n == 4)", "(nn == 4)", "nothing is called `nn` here", "did you mean `n`?"),
    "an option": ("transpose", "transposed", "`transposed` is no option here", "did you mean `transpose`?"),
    "a dtype": ("Tile[4, 1, i32]", "Tile[4, 1, i33]", "there is no dtype `i33`", "did you mean `i32`?"),
    "a role": ("index: In[", "index: Inn[", "no parameter is `Inn`", "did you mean `In`?"),
    "a statement": ("print n", "pront n", "there is no statement `pront`, and no buffer of that name", "did you mean `print`?"),
    "a buffer": ("read mask", "read mast", "there is no buffer `mast` here", "did you mean `mask`?"),
    "too many operands": ("rowmax %", "rowmax %15, %", "kernel `everything`: `pto.rowmax`: too many positional arguments", None),
    "a number too large": ("fill=2.5", "fill=1" + "0" * 400, "a number is too large", None),
    "a tile too large": ("x: In[Tile[4, 8, f32]]", "x: In[Tile[99999, 99999, f32]]", "a tile is too large", None),
    "a store to In": ("store y, ", "store x, ", "kernel `everything`: parameter `x` is In: it cannot be stored to",
                      "declare it InOut, if the kernel may change it"),
    "a step that never ends": (", 3):", ", 0):", "kernel `everything`: `pto.range`: the step is not a number >= 1", None),
    "a condition that is none": ("when (i > j) & ~(n == 4) | (region.shape[0] <= 2):", "when i + j:",
                                 "kernel `everything`: `pto.when` takes a condition, not a number",
                                 "compare it: i + j != 0"),
    "an unclosed bracket": ("range(0, ", "range((0, ", "`(` is not closed", None),
    "a line too far in": ("    acc = alloc", "     acc = alloc", "a line stands further in than the line before", None),
    "what passes make": ("load x ", "load x, copy", "`copy` is what compiling makes of a kernel", None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_read_is_an_error_at_its_place(name: str) -> None:
    old, new, message, help = REFUSED[name]
    text = str(ir())
    if name == "a line too far in":
        text = text.replace("    mask = alloc", "     mask = alloc")
    else:
        assert old in text, old
        text = text.replace(old, new, 1)
    with pytest.raises(IrTextError) as caught:
        parse(text)
    error = caught.value
    assert error.message == message and error.help == help
    report = str(error)
    assert re.search(r"--> <ir [0-9a-f]{8}>:\d+:\d+", report) and "^" in report


@pytest.mark.parametrize("text", [
    "", " ", "kernel", "kernel f", "kernel f(", "kernel f()", "kernel f():", "kernel f():\n", "kernel f():\n    (nothing",
    "plan", "{}", "\x00",
    "kernel f():\n    rows 4:\n        (nothing)", "kernel f(x: In[Tile[4, 8, f32]]):\n    %0 = load x\n    %0 = load x",
    "kernel f(n: Scalar[i32]):\n    when n > " + "(" * 5000 + "1" + ")" * 5000 + ":\n        (nothing)",
    "kernel f(n: Scalar[i32]):\n    when n > " + "-" * 50000 + "1:\n        (nothing)",
    "kernel f(n: Scalar[i32]):\n    print n" + " + n" * 50000,
    "kernel f(n: Scalar[i32]):\n" + "".join("  " * at + "  for i in range(n):\n" for at in range(200)) + "  " * 202 + "(nothing)",
    "kernel f(x: In[Tile[4, 8, f32]]):\n    %0 = load x\nkernel g():\n    (nothing)",
    "kernel f(y: Out[Tile[4, 8, f32]]):\n    (nothing)", "kernel for(y: Out[Tile[4, 8, f32]]):\n    (nothing)",
    "kernel f(x: In[Tile[4, 8, f32]], x: In[Tile[4, 8, f32]]):\n    (nothing)",
])
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(IrTextError):
        parse(text)


def test_text_that_is_none_is_refused() -> None:
    with pytest.raises(PtoError):
        parse(3)  # type: ignore[arg-type]


def _mutate(number: int) -> None:
    rng = random.Random(number)
    text = mutated(str(rng.choice((ir(), shadowing.ir_of(y=F32)))), rng)
    try:
        read = parse(text)
    except PtoError:
        return
    reads_back(read.ir)


@pytest.mark.slow
def test_mutated_text_is_refused_or_reads_back() -> None:
    for number in range(150):
        _mutate(number)


@pytest.mark.slow
@given(st.integers(0, 1 << 30))
@settings(max_examples=500, deadline=None)
def test_much_mutated_text_is_refused_or_reads_back(number: int) -> None:
    _mutate(number)


def test_what_was_read_runs_on_every_target_like_what_was_traced() -> None:
    @kernel
    def shifted(t: In[Tensor], n: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
        pto.store(y, pto.load(t, (n, 0), shape=(4, 8)) * 2)

    T = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8))

    def result(of: Kernel, target: str) -> np.ndarray:
        Y = Tensor(np.zeros((4, 8), np.float32))

        @workload
        def w() -> None:
            of(t=T, n=2, y=Y)

        w().compile(target).run()
        return Y.data

    read = parse(str(shifted.ir_of(t=F32)))
    for target in ("interp", "cpu_sim"):
        assert np.array_equal(result(read, target), T.data[2:6] * 2)

    def package(of: Kernel) -> dict[str, str]:
        Y = Tensor(np.zeros((4, 8), np.float32))

        @workload
        def w() -> None:
            of(t=T, n=2, y=Y)

        folder = w().compile("ascend_npu").artifact_dir
        # without the comments, which say the line that an instruction is from: here of this file, there of the text
        return {path.name: "\n".join(line.partition("#")[0] for line in path.read_text().splitlines()) for path in folder.rglob("*.wsp")}

    assert package(read) == package(shifted)
    with pytest.raises(PtoError, match="wrong dtype"):
        read.run(np.zeros((8, 8)), 2)


def test_kernels_that_were_read_are_values() -> None:
    text = print_kernel(ir())
    assert parse(text) == parse(text) and hash(parse(text)) == hash(parse(text)) == hash(ir())
    assert parse(text) != everything and everything == everything
    assert parse(text).ir_of(region=F32) == ir()

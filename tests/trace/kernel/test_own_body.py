"""What @kernel reads of its options."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from pto_wsp import Constexpr, DType, In, Out, Tile, kernel, pto
from pto_wsp.api.kernel import Kernel
from pto_wsp.errors import OutNeverStoredError, OwnBodyError
from pto_wsp.ir import codec
from pto_wsp.ir.digest import kernel_digest
from pto_wsp.ir.kernel import BodyForm, OwnBody

SMALL = Tile[4, 8, DType.F32]
DEDENTED = textwrap.dedent("""\
    for (int64_t r = 0; r < y_rows; ++r)
        y[r] = 1;
    """)


def with_options(**options: object) -> Kernel:
    """Return a kernel without a Python body."""
    @kernel(**options)
    def fill(x: In[SMALL], y: Out[SMALL]) -> None:
        """Say nothing."""
    return fill  # type: ignore[no-any-return]


def body_of(made: Kernel) -> OwnBody:
    """Return a kernel's only own body."""
    only, = made.specialise().bodies
    return only


def test_a_text_keeps_its_place_in_the_file() -> None:
    own = body_of(with_options(c_src="""
        y[0] = 1;
        y[1] = 2;
    """))
    assert own.form is BodyForm.C
    assert Path(own.span.file).name == "test_own_body.py"
    assert Path(__file__).read_text().splitlines()[own.span.line] == "        y[0] = 1;"


def test_a_dedented_text_and_a_text_on_one_line_too() -> None:
    lines = Path(__file__).read_text().splitlines()
    assert lines[body_of(with_options(c_src=DEDENTED)).span.line - 1] == "    for (int64_t r = 0; r < y_rows; ++r)"
    one = body_of(with_options(c_src="y[0] = 123456;"))
    assert lines[one.span.line - 1][one.span.column - 1:].startswith("y[0] = 123456;")


def test_a_text_that_stands_nowhere_has_a_place_of_its_own() -> None:
    own = body_of(with_options(c_src="\n".join(["y[0] = 3;", "y[1] = 4;"])))
    assert own.span.file == "<c_src of fill>"


def test_a_path_is_relative_to_the_file_of_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "body.c").write_bytes(b"y[0] = 1;\r\ny[1] = 2;\r\n")
    model = tmp_path / "model.py"
    model.write_text("from pto_wsp import *\n@kernel(c_path='body.c', scratch_bytes=128, cpp_src='x')\n"
                     "def fill(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]): ...\n")
    scope: dict[str, object] = {}
    exec(compile(model.read_text(), str(model), "exec"), scope)
    made = scope["fill"]
    assert isinstance(made, Kernel)
    c_body, cpp = made.specialise().bodies
    assert c_body == OwnBody(BodyForm.C, "y[0] = 1;\ny[1] = 2;\n", 128)
    assert (c_body.span.file, c_body.span.line) == (str(tmp_path / "body.c"), 1)
    assert cpp == OwnBody(BodyForm.CPP, "x")


def test_files_for_the_npu_are_kept(tmp_path: Path) -> None:
    (tmp_path / "tu.cpp").write_text("// }} anything\n")
    assert body_of(with_options(cpp_tu_path=tmp_path / "tu.cpp")) == OwnBody(BodyForm.CPP_TU, "// }} anything\n")
    assert body_of(with_options(cpp_body_path=str(tmp_path / "tu.cpp"))) == OwnBody(BodyForm.CPP_BODY, "// }} anything\n")


def test_the_text_is_part_of_the_kernel_and_its_place_is_not() -> None:
    one, same, other = (with_options(c_src=text).specialise() for text in ("y[0] = 1;", "y[0] = " + "1;", "y[0] = 2;"))
    assert kernel_digest(one) == kernel_digest(same) != kernel_digest(other)
    assert one == same


def test_json_repr_and_text_know_own_bodies() -> None:
    made = with_options(c_src="y[0] = 1;", scratch_bytes=64).specialise()
    assert codec.loads(codec.dumps(made)) == made
    assert eval(repr(made), dict(codec.NAMES)) == made
    assert str(with_options(c_src="y[0] = 1;", scratch_bytes=64).ir).splitlines()[1:] == [
        "    c_src with scratch_bytes=64:", "        | y[0] = 1;"]


def test_a_constexpr_is_a_constant_of_the_c_body() -> None:
    @kernel(c_src="y[0] = N;")
    def fill(N: Constexpr[int], y: Out[SMALL]) -> None: ...
    assert fill.specialise(N=7).bodies[0].constants == (("N", 7),)

    @kernel(c_src="y[0] = 1;")
    def named(mode: Constexpr[str], y: Out[SMALL]) -> None: ...
    with pytest.raises(OwnBodyError, match="`mode` is no number"):
        named.specialise(mode="fast")


def test_a_python_body_that_does_something_stays_the_meaning() -> None:
    @kernel(c_src="y[0] = 1;")
    def fill(x: In[SMALL], y: Out[SMALL]) -> None:
        pto.store(y, x + 1)
    assert fill.specialise().has_meaning
    assert not with_options(c_src="y[0] = 1;").specialise().has_meaning

    @kernel(c_src="y[0] = 1;")
    def unfinished(x: In[SMALL], y: Out[SMALL]) -> None:
        x + 1
    with pytest.raises(OutNeverStoredError):
        unfinished.specialise()

"""The text of kernels, the order of their guards, and their digests."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.codec import NAMES, from_data, to_data
from pto_wsp.ir.digest import kernel_digest
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.kernel_walk import piece_of, valid_of, walk
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.guards import guards_of
from pto_wsp.source import Span

TILE = TileType(4, 8, DType.F32)
HERE = Span("a.py", 1)
ZERO = s.Const(0)


def example(first_id: int = 0, span: Span = HERE, constant: float = 2.0) -> k.Kernel:
    """Return a kernel with every kind of statement."""
    n = s.ParamScalar("n", DType.I32)
    j = s.Var("j", first_id)
    x, y, z, t = (k.Value(first_id + i, TILE) for i in range(4))
    acc = k.Buffer(first_id, "acc", TILE)
    body = (
        k.Load(x, "x", ZERO, ZERO, span=span),
        k.Alloc(acc, 0.0),
        k.For(j, ZERO, n, s.Const(1), (
            k.Load(t, "region", s.mul(j, s.Const(4)), ZERO, n, None, fill=-1.0),
            k.Compute(y, "mul", (x, k.ScalarOperand(s.Const(constant), DType.F32))),
            k.Read(z, acc),
            k.Write(acc, z),
        )),
        k.Store("y", x, ZERO, ZERO, n, n),
    )
    params = (k.TileParam("x", k.Role.IN, TILE), k.TensorParam("region", k.Role.INOUT, DType.F32),
              k.ScalarParamDecl("n", DType.I32), k.TileParam("y", k.Role.OUT, TILE, span))
    return k.Kernel("demo", params, body, span)


def test_every_statement_has_a_line() -> None:
    assert print_kernel(example()) == """\
kernel demo(x: In[Tile[4, 8, f32]], region: InOut[Tensor f32], n: Scalar[i32], y: Out[Tile[4, 8, f32]]):
    %0 = load x                                        # Tile[4, 8, f32]
    acc = alloc Tile[4, 8, f32], init=0.0
    for j in range(0, n, 1):
        %3 = load region[j * 4, 0], valid=(n, :), fill=-1.0 # Tile[4, 8, f32]
        %1 = mul %0, 2.0                               # Tile[4, 8, f32]
        %2 = read acc                                  # Tile[4, 8, f32]
        acc[:] = %2
    store y, %0, valid=(n, n)"""


def test_buffers_that_share_a_name_are_told_apart() -> None:
    body = tuple(k.Alloc(k.Buffer(i, "acc", TILE), None) for i in range(2))
    assert print_kernel(k.Kernel("two", (), body)).splitlines()[1:] == [
        "    acc.0 = alloc Tile[4, 8, f32]", "    acc.1 = alloc Tile[4, 8, f32]"]


def test_an_empty_body_says_so() -> None:
    assert print_kernel(k.Kernel("nothing", (), ())) == "kernel nothing():\n    (nothing)"


def test_walk_is_in_preorder() -> None:
    kinds = [type(stmt).__name__ for stmt in walk(example().body)]
    assert kinds == ["Load", "Alloc", "For", "Load", "Compute", "Read", "Write", "Store"]


def test_only_pieces_of_regions_are_guarded() -> None:
    guards = guards_of(example())
    assert [guard.what for guard in guards] == ["load region[j * 4, 0]"]


def test_a_transposed_load_moves_the_transposed_piece() -> None:
    load = k.Load(k.Value(0, TILE), "x", ZERO, ZERO, s.ParamExtent("x", 0), None, transpose=True)
    assert piece_of(load) == (8, 4)
    assert [print_scalar(extent) for extent in valid_of(load)] == ["min(max(x.shape[0], 0), 8)", "4"]


def test_the_digest_is_of_the_content() -> None:
    digest = kernel_digest(example())
    assert digest == kernel_digest(example(first_id=40)), "ids do not count"
    assert digest == kernel_digest(example(span=Span("b.py", 99))), "places do not count"
    assert digest != kernel_digest(example(constant=2.5))
    assert digest != kernel_digest(replace(example(), name="other"))
    assert digest != kernel_digest(replace(example(), body=example().body[:-1]))


def test_the_digest_tells_equal_numbers_of_other_kinds_apart() -> None:
    def filled(fill: float | int | bool) -> k.Kernel:
        return k.Kernel("f", (), (k.Load(k.Value(0, TILE), "x", ZERO, ZERO, fill=fill),))
    assert len({kernel_digest(filled(fill)) for fill in (1, 1.0, True)}) == 3


def test_rows_picked_by_an_index() -> None:
    index, rows = k.Value(0, TileType(4, 1, DType.I32)), k.Value(1, TILE)
    n = s.ParamScalar("n", DType.I32)
    body = (k.Load(index, "index", ZERO, ZERO), k.Gather(rows, "table", index, ZERO, n, fill=1.0),
            k.Scatter("table", index, rows, s.Const(8)), k.Scatter("table", index, rows, ZERO, n, add=True))
    params = (k.TileParam("index", k.Role.IN, index.type), k.TensorParam("table", k.Role.INOUT, DType.F32),
              k.ScalarParamDecl("n", DType.I32))
    kernel = k.Kernel("picks", params, body)
    assert [line.split("#")[0].strip() for line in print_kernel(kernel).splitlines()[2:]] == [
        "%1 = gather table[%0, 0], valid=n, fill=1.0", "scatter table[%0, 8], %1", "scatter_add table[%0, 0], %1, valid=n"]
    assert [guard.what for guard in guards_of(kernel)] == [
        "gather of rows of table", "scatter of rows of table", "scatter_add of rows of table"]
    assert from_data(to_data(kernel)) == kernel and eval(repr(kernel), dict(NAMES)) == kernel
    assert kernel_digest(kernel) != kernel_digest(replace(kernel, body=(*body[:-1], replace(body[-1], add=False))))

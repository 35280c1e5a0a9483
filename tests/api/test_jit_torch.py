"""jit functions with PyTorch: tensors in and out without a copy, what is refused, operators. Without PyTorch these tests are skipped."""

from __future__ import annotations

from typing import Any

import pytest

from pto_wsp import DType, InOut, PtoError, Tensor, jit

torch = pytest.importorskip("torch")
F32, BF16 = DType.F32, DType.BF16


@jit(target="interp")
def shifted(x: Tensor["t", 8, F32], by: float = 1.0):
    return x + by, x * 2.0


@jit(target="interp")
def added(state: InOut[Tensor["t", 8, F32]], x: Tensor["t", 8, F32]):
    state[:] = state + x


@jit(target="interp")
def halves(x: Tensor["t", 8, BF16]):
    return x + x


def refused(call: Any, *args: Any, **kwargs: Any) -> PtoError:
    with pytest.raises(PtoError) as caught:
        call(*args, **kwargs)
    return caught.value


def test_tensors_go_in_and_come_out() -> None:
    x = torch.rand(5, 8)
    more, twice = shifted(x)
    assert torch.equal(more, x + 1) and torch.equal(twice, x * 2)
    assert torch.equal(shifted(x.T.contiguous().T)[0], x + 1)
    assert torch.equal(shifted(torch.rand(8, 16).T[::2, :])[1].new_tensor(0), torch.tensor(0.0))


def test_bfloat16_keeps_its_dtype() -> None:
    x = torch.rand(5, 8).to(torch.bfloat16)
    result = halves(x)
    assert result.dtype is torch.bfloat16 and torch.equal(result, x + x)


def test_tensors_are_written_in_place() -> None:
    state, x, out = torch.zeros(5, 8), torch.rand(5, 8), (torch.zeros(5, 8), torch.zeros(5, 8))
    added(state, x)
    assert torch.equal(state, x)
    assert shifted(x, out=out)[1] is out[1] and torch.equal(out[1], x * 2)
    assert "shares memory" in str(refused(added, state, state))


@pytest.mark.parametrize(("make", "text", "help"), [
    (lambda: torch.rand(5, 8).requires_grad_(), "requires gradients", "x.detach(), or torch.no_grad() around the call"),
    (lambda: torch.nn.Parameter(torch.rand(5, 8)), "requires gradients", "x.detach(), or torch.no_grad() around the call"),
    (lambda: torch.rand(5, 8, device="meta"), "another device", "copy it to the host first: x.cpu()"),
    (lambda: torch.rand(5, 8).to_sparse(), "without strides", "x.to_dense()"),
    (lambda: torch.rand(5, 8, dtype=torch.complex64).conj().imag.expand(5, 8), "other numbers", "x.resolve_neg()"),
])
def test_tensors_that_cannot_be_read_in_place_are_refused(make: Any, text: str, help: str) -> None:
    error = refused(shifted, make())
    assert error.code == "J101" and text in error.message and error.help == help


def test_an_operator_passes_the_checks_of_pytorch() -> None:
    op = shifted.as_torch_op("pto_wsp_tests::shifted")
    x = torch.rand(5, 8)
    assert torch.equal(op(x, 2.0)[0], x + 2)
    assert set(torch.library.opcheck(op, (x, 2.0)).values()) == {"SUCCESS"}
    more, twice = torch.ops.pto_wsp_tests.shifted(torch.rand(7, 8, device="meta"))
    assert more.shape == twice.shape == (7, 8)


def test_an_operator_may_write_in_place() -> None:
    op = added.as_torch_op("pto_wsp_tests::added")
    state, x = torch.zeros(5, 8), torch.rand(5, 8)
    assert op(state, x) is None and torch.equal(state, x)


def test_an_operator_is_defined_anew_as_when_a_cell_runs_again() -> None:
    @jit(target="interp")
    def negated(x: Tensor["t", 8, F32]):
        return -x

    x, first = torch.rand(5, 8), shifted.as_torch_op("pto_wsp_tests::again")
    again = negated.as_torch_op("pto_wsp_tests::again")
    assert torch.equal(again(x), -x) and torch.equal(torch.ops.pto_wsp_tests.again(x), -x) and first is not again


def test_what_is_no_operator_is_refused() -> None:
    @jit
    def bare(x):
        return x + 1.0

    assert refused(bare.as_torch_op, "pto_wsp_tests::bare").code == "J101"
    assert refused(shifted.as_torch_op, "shifted").code == "J101"


@pytest.mark.slow
def test_a_compiled_function_calls_an_operator_with_any_number_of_rows() -> None:
    op = shifted.as_torch_op("pto_wsp_tests::in_compiled")

    @torch.compile(fullgraph=True, backend="aot_eager", dynamic=True)
    def model(x: Any) -> Any:
        more, twice = op(x * 2.0, 3.0)
        return torch.relu(more).sum(0) + twice[0]

    for rows in (3, 5, 9):
        x = torch.randn(rows, 8)
        assert torch.allclose(model(x), torch.relu(x * 2 + 3).sum(0) + x[0] * 4, atol=1e-5)
    exported = torch.export.export(_Model(op), (torch.randn(4, 8),), dynamic_shapes=({0: torch.export.Dim("t", min=2)},))
    assert any("in_compiled" in str(node.target) for node in exported.graph.nodes)
    assert torch.equal(exported.module()(x), x * 2)


class _Model(torch.nn.Module):      # type: ignore[name-defined, misc]
    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op

    def forward(self, x: Any) -> Any:
        return self.op(x, 1.0)[1]


def test_an_operator_whose_extents_are_computed_infers_shapes() -> None:
    @jit(target="interp")
    def blocks(x: Tensor["t", 8, F32], y: Tensor["s", 8, F32]):
        return torch.cat([x, y]), (x @ y.T).reshape(-1), x[2:]

    op = blocks.as_torch_op("pto_wsp_tests::blocks")
    shapes = [tuple(one.shape) for one in op(torch.rand(7, 8, device="meta"), torch.rand(3, 8, device="meta"))]
    assert shapes == [(10, 8), (21,), (5, 8)] == [tuple(one.shape) for one in op(torch.rand(7, 8), torch.rand(3, 8))]


@pytest.mark.parametrize("of", [lambda x: x.requires_grad_(), torch.nn.Parameter])
def test_gradients_are_refused_by_the_call_and_none_flow_where_torch_records_none(of: Any) -> None:
    x = of(torch.rand(5, 8))
    op = shifted.as_torch_op(f"pto_wsp_tests::no_gradient_of_{type(x).__name__}")
    assert "detach" in str(refused(shifted, x)) and "no_grad" in str(refused(op, x, 1.0))
    assert "detach" in str(refused(halves, of(x.detach().to(torch.bfloat16))))
    with torch.no_grad():
        assert torch.equal(op(x, 1.0)[1], x * 2) and torch.equal(shifted(x)[1], x * 2)
        assert torch.equal(halves(of(x.detach().to(torch.bfloat16))), x.to(torch.bfloat16) * 2)


@pytest.mark.slow
def test_no_gradient_is_lost_where_a_model_is_compiled() -> None:
    op = shifted.as_torch_op("pto_wsp_tests::trained")

    @torch.compile(backend="aot_eager")
    def model(x: Any) -> Any:
        return op(x, 1.0)[1].sum()

    with pytest.raises(Exception, match=r"trained` has no gradient"):
        model(torch.rand(5, 8, requires_grad=True)).backward()
    with torch.no_grad():
        assert model(torch.ones(5, 8, requires_grad=True)) == 80

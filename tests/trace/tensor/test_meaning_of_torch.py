# ruff: noqa: F821
"""What torch's functions mean in a traced body: what torch gives on the tensors themselves. Without PyTorch these tests are skipped."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, jit, tt

torch = pytest.importorskip("torch")
functional = torch.nn.functional
F32, I32 = DType.F32, DType.I32
RNG = np.random.default_rng(7)
X, M, P = RNG.standard_normal((5, 4, 6), np.float32), RNG.standard_normal((5, 6), np.float32), np.array([[2, 0, 5], [1, 1, 3]], np.int32)

OF_X: list[tuple[str, Callable[[Any], Any]]] = [
    *((f"{name} {dim} {keep}", lambda x, name=name, dim=dim, keep=keep: getattr(torch, name)(x, dim=dim, keepdim=keep))
      for name in ("sum", "mean", "amax", "amin", "logsumexp", "var", "std") for dim in (0, 1, -1, (0, 2)) for keep in (False, True)),
    *((f"{name} of all", lambda x, name=name: getattr(torch, name)(x)) for name in ("sum", "mean", "max", "min", "var", "std", "argmax")),
    *((f"{name} pair {dim}", lambda x, name=name, dim=dim: tuple(getattr(torch, name)(x, dim)))
      for name in ("max", "min") for dim in (0, 1, -1)),
    ("max values", lambda x: torch.max(x, 1, keepdim=True).values), ("max indices", lambda x: torch.max(x, dim=-1).indices),
    ("max of two", lambda x: torch.max(x, x[:1])), ("std of numpy", lambda x: torch.std(x, dim=1, unbiased=False)),
    ("var correction", lambda x: torch.var(x, dim=2, correction=2)), ("prod", lambda x: torch.prod(x, 1)),
    ("any", lambda x: torch.any(x > 1, dim=1)), ("all", lambda x: torch.all(x > -1, dim=-1)), ("argmax", lambda x: torch.argmax(x, dim=1)),
    ("softmax", lambda x: torch.softmax(x, dim=1)), ("log_softmax", lambda x: torch.log_softmax(x, -1)),
    ("F.softmax", lambda x: functional.softmax(x, dim=-1)), ("F.silu", lambda x: functional.silu(x)),
    ("F.relu", lambda x: functional.relu(x)), ("F.gelu tanh", lambda x: functional.gelu(x, approximate="tanh")),
    ("F.gelu", lambda x: functional.gelu(x)), ("F.linear", lambda x: functional.linear(x, x[0, :3], x[0, 0, :3])),
    ("F.layer_norm", lambda x: functional.layer_norm(x, (6,), x[0, 0], x[1, 0])), ("F.rms_norm", lambda x: functional.rms_norm(x, (6,))),
    ("F.sigmoid", lambda x: torch.sigmoid(x)),
    ("F.leaky_relu", lambda x: functional.leaky_relu(x, 0.1)), ("F.pad", lambda x: functional.pad(x, (1, 2), value=3.0)),
    ("cumsum", lambda x: torch.cumsum(x, 1)), ("reshape", lambda x: torch.reshape(x, (-1, 24))), ("flatten", lambda x: torch.flatten(x, 1)),
    ("flatten middle", lambda x: torch.flatten(x, 0, 1)), ("transpose", lambda x: torch.transpose(x, 0, 2)),
    ("permute", lambda x: torch.permute(x, (2, 0, 1))), ("movedim", lambda x: torch.movedim(x, 0, 2)),
    ("unsqueeze", lambda x: torch.unsqueeze(x, 1)), ("squeeze", lambda x: torch.squeeze(x[:, :1], 1)),
    ("F.sdpa", lambda x: functional.scaled_dot_product_attention(x, x, x)), ("addmm", lambda x: torch.addmm(x[0, :, 0], x[0], x[1].T)),
    ("F.sdpa causal", lambda x: functional.scaled_dot_product_attention(x, x[:, :3], x[:, :3], is_causal=True, scale=0.5)),
    ("F.sdpa mask", lambda x: functional.scaled_dot_product_attention(x, x, x, x[..., :4])),
    ("broadcast_to", lambda x: torch.broadcast_to(x[0, :1], (4, 6))), ("mv", lambda x: torch.mv(x[0], x[1, 0])),
    ("flip", lambda x: torch.flip(x, (1,))),
    ("split by size", lambda x: tuple(torch.split(x, 4, dim=2))), ("split by sizes", lambda x: tuple(torch.split(x, [1, 3, 2], dim=-1))),
    ("chunk", lambda x: tuple(torch.chunk(x, 4, dim=2))), ("cat", lambda x: torch.cat([x, x[:2]])),
    ("cat 1", lambda x: torch.cat((x, -x), 1)),
    ("stack", lambda x: torch.stack([x, x * 2], dim=1)), ("hstack", lambda x: torch.hstack([x, x])),
    ("vstack", lambda x: torch.vstack((x, x))),
    ("roll", lambda x: torch.roll(x, 2, 1)), ("where", lambda x: torch.where(x > 0, x, -x)),
    ("where number", lambda x: torch.where(x > 0, x, 0.0)),
    ("masked_fill", lambda x: torch.masked_fill(x, x > 0, -1.0)), ("clamp", lambda x: torch.clamp(x, -0.5, 0.5)),
    ("clamp max", lambda x: torch.clamp(x, max=0.5)), ("matmul", lambda x: torch.matmul(x, torch.transpose(x, 1, 2))),
    ("bmm", lambda x: torch.bmm(x, torch.transpose(x, 1, 2))), ("mm", lambda x: torch.mm(x[0], x[1].T)),
    ("einsum", lambda x: torch.einsum("tij,tkj->tik", x, x)), ("sort", lambda x: tuple(torch.sort(x, dim=1))),
    ("sort falling", lambda x: torch.sort(x, descending=True).values), ("topk", lambda x: tuple(torch.topk(x, 2))),
    ("topk 1", lambda x: torch.topk(x, 3, dim=1)[0]), ("topk least", lambda x: torch.topk(x, 2, largest=False).values),
    ("argsort", lambda x: torch.argsort(x, dim=1)), ("tril", lambda x: torch.tril(x, 1)), ("triu", lambda x: torch.triu(x, -1)),
    ("clone", lambda x: torch.clone(x)), ("zeros_like", lambda x: torch.zeros_like(x)), ("full_like", lambda x: torch.full_like(x, 3.0)),
    ("repeat_interleave", lambda x: torch.repeat_interleave(x, 3, dim=1)), ("diff", lambda x: torch.diff(x, dim=1)),
    *((name, lambda x, name=name: getattr(torch, name)(x))
      for name in ("exp", "tanh", "sin", "cos", "abs", "neg", "square", "floor", "ceil", "round", "sign", "erf", "relu", "exp2",
                   "isnan", "isinf", "isfinite")),
    ("sqrt", lambda x: torch.sqrt(torch.abs(x))), ("rsqrt", lambda x: torch.rsqrt(torch.square(x) + 1.0)),
    ("log", lambda x: torch.log(torch.abs(x))), ("reciprocal", lambda x: torch.reciprocal(x)),
    ("pow", lambda x: torch.pow(torch.abs(x), 1.5)),
    ("maximum", lambda x: torch.maximum(x, x[:1])), ("add", lambda x: torch.add(x, 1.0)), ("sub", lambda x: torch.sub(x, x[:1])),
    ("mul", lambda x: torch.mul(x, 2.0)), ("div", lambda x: torch.div(x, 2.0)), ("logical_and", lambda x: torch.logical_and(x > 0, x < 1)),
    ("eq", lambda x: torch.eq(x, x[:1])), ("gt", lambda x: torch.gt(x, 0.0)), ("log1p by hand", lambda x: torch.log(1.0 + torch.square(x))),
    ("norm", lambda x: torch.norm(x, dim=-1)), ("linalg.norm", lambda x: torch.linalg.norm(x, dim=-1)),
    ("outer", lambda x: torch.outer(x[0, 0], x[1, 1])), ("dot", lambda x: torch.dot(x[0, 0], x[1, 1])),
    ("index_select", lambda x: torch.index_select(x, 2, torch.tensor([2, 0]))),
]


def results(found: Any) -> list[np.ndarray]:
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("function", [pytest.param(f, id=name) for name, f in OF_X])
def test_a_function_means_what_it_means_on_tensors_of_torch(function: Callable[[Any], Any]) -> None:
    @jit
    def traced(x: Tensor["t", 4, 6, F32]):
        tt.assume(x.shape[0] <= 64)
        tt.assume(x.shape[0] >= 3)
        return function(x)

    for found, wanted in zip(results(traced.reference(X)), results(function(torch.from_numpy(X))), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=3e-6)


def test_places_of_torch_gather() -> None:
    @jit
    def f(x: Tensor["t", 6, F32], places: Tensor["t", 3, I32]):
        return torch.gather(x, 1, places), torch.take_along_dim(x, places, 1)

    wanted = torch.gather(torch.from_numpy(M[:2]), 1, torch.from_numpy(P).long()).numpy()
    for found in f.reference(M[:2], P):
        np.testing.assert_array_equal(found, wanted)


def test_methods_mean_numpys_and_what_differs_is_refused() -> None:
    @jit
    def methods(x: Tensor["t", 6, F32]):
        return x.std(1), x.max(1), x.view(-1, 2, 3).permute(1, 0, 2), x.unsqueeze(0), x.softmax(-1)

    std, peak, _, _, share = methods.reference(M)
    np.testing.assert_allclose(std, M.std(1), rtol=1e-5)
    np.testing.assert_array_equal(peak, M.max(1))
    np.testing.assert_allclose(share, torch.softmax(torch.from_numpy(M), -1), rtol=1e-5)
    for wrong in (lambda x: x.max(dim=1), lambda x: x.std(dim=1), lambda x: x.split(2, dim=1)):
        @jit
        def refused(x: Tensor["t", 6, F32], wrong: Any = wrong):
            return wrong(x)

        with pytest.raises(PtoError) as caught:
            refused.trace()
        assert "dim" in str(caught.value)


@pytest.mark.parametrize("wrong", [lambda x: torch.median(x), lambda x: torch.linalg.inv(x), lambda x: torch.unique(x),
                                   lambda x: torch.split(x, 2), lambda x: torch.sum(x, axes=1)])
def test_what_torch_has_and_tensors_have_not_is_refused_at_the_line(wrong: Callable[[Any], Any]) -> None:
    @jit
    def f(x: Tensor["t", 6, F32]):
        return wrong(x)

    with pytest.raises((PtoError, TypeError)) as caught:
        f.trace()
    assert isinstance(caught.value, TypeError) or "test_meaning_of_torch.py" in str(caught.value)

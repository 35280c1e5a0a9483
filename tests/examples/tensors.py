"""The examples of functions on whole tensors: their files as modules, and the sizes to try beside their own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "tensors"
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TensorExample:
    """One function of a file. `sizes`: arguments of `draw` beside its own; `tolerance`: of the largest result, in f32."""

    file: str
    function_name: str
    sizes: tuple[Mapping[str, Any], ...] = ()
    tolerance: float = field(default=1e-5)

    @property
    def module(self) -> ModuleType:
        return _module(self.file)

    @property
    def function(self) -> Any:
        return getattr(self.module, self.function_name)

    @property
    def tuned(self) -> Mapping[str, Any]:
        """Return the entries of the tuned plan."""
        entries: Mapping[str, Any] = self.module.FUNCTIONS[self.function]
        return entries

    def draws(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of each size, the file's own first."""
        yield self.module.draw()
        for number, sizes in enumerate(self.sizes):
            yield self.module.draw(**sizes, seed=number + 7)

    def check(self, data: dict[str, Any], given: dict[str, Any], results: Any, where: str = "") -> None:
        """Raise AssertionError unless results, and what was written to `data`, are NumPy's; `given`: the arguments as they were before."""
        wanted = self.module.expected(**given)
        compare = _module("compare")
        for name, found, want in compare.outcomes(self.function, data, results, wanted):
            assert np.asarray(found).shape == want.shape, f"{where} {name}"
            error = compare.relative_error(np.asarray(found), want)
            assert error <= self.tolerance, f"{where} {name}: {error}"


EXAMPLES = {example.function_name: example for example in (
    TensorExample("rmsnorm_linear", "rmsnorm_linear", ({"t": 1}, {"t": 64}, {"t": 0})),
    TensorExample("softmax", "softmax", ({"b": 1, "s": 1}, {"b": 2, "s": 33})),
    TensorExample("layernorm", "layernorm", ({"t": 1}, {"t": 129})),
    TensorExample("swiglu", "swiglu_block", ({"t": 1}, {"t": 64})),
    TensorExample("flash_attention", "attention", ({"h": 1, "n": 1}, {"h": 2, "n": 64}, {"h": 1, "n": 130})),
    TensorExample("flash_attention", "causal_attention", ({"h": 1, "n": 1}, {"h": 2, "n": 64}, {"h": 1, "n": 130})),
    TensorExample("paged_attention", "paged_attention", ({"lengths": (1,)}, {"lengths": (16, 17, 15, 48, 2)})),
    TensorExample("mla_prolog", "mla_prolog", ({"t": 1}, {"t": 33, "rows": 33}), tolerance=2e-2),      # a code may be one step off
    TensorExample("indexer_prolog", "indexer_prolog", ({"t": 1}, {"t": 33, "rows": 33})),
    TensorExample("lightning_indexer", "lightning_indexer", ({"t": 1, "n": 60}, {"t": 17, "n": 300})),
    TensorExample("moe", "moe", ({"t": 1}, {"t": 64}, {"t": 130})),
    TensorExample("decode_layer", "decode_layer", ({"lengths": (1,)}, {"lengths": (8, 9, 7, 40)})),
)}
every_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


@cache
def _module(file: str) -> ModuleType:
    """Return a file of the folder as a module; the files import each other by their plain names."""
    spec = importlib.util.spec_from_file_location(f"examples_tensors_{file}", FOLDER / f"{file}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        spec.loader.exec_module(module)
    sys.modules.pop("compare", None)
    return module

"""A plugin of mypy that knows the annotations of kernels and of functions on whole tensors: `x: Tensor["t", 4096, F32]`.

    [tool.mypy]
    plugins = ["pto_wsp.mypy_plugin"]

What stands in the brackets are extents and dtypes, not types; without the plugin mypy reports them. In a body such a parameter is Any.
A quoted extent is a name that mypy looks up all the same: `T = "t"` above the function, and `Tensor[T, 4096, F32]`, give it one.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import AnalyzeTypeContext, Plugin
from mypy.types import AnyType, Type, TypeOfAny, UnboundType

_ANNOTATIONS = "pto_wsp.trace.kernel.annotations."
_IN_BRACKETS = frozenset({
    "pto_wsp.ir.tensor.Tensor", "pto_wsp.ir.tensor.Injective", "pto_wsp.ir.tensor.Monotone", "pto_wsp.ir.tile.Tile",
    *(f"pto_wsp.api.checked_types.{name}" for name in ("CheckedTensor", "Injective", "Monotone")),
    *(f"{_ANNOTATIONS}{name}" for name in ("In", "Out", "InOut", "Acc", "Scalar", "Constexpr"))})


class AnnotationsPlugin(Plugin):
    """Takes what stands in the brackets of this package's annotations as it is."""

    _bare = ""      # the name that is being analyzed without brackets: mypy knows it itself

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        """Return what gives the type of an annotation by its full name."""
        if fullname not in _IN_BRACKETS or fullname == self._bare:
            return None

        def analyzed(context: AnalyzeTypeContext) -> Type:
            if isinstance(context.type, UnboundType) and context.type.args:
                return AnyType(TypeOfAny.explicit)
            self._bare = fullname
            try:
                return context.api.analyze_type(context.type)
            finally:
                self._bare = ""
        return analyzed


def plugin(version: str) -> type[Plugin]:
    """Return the plugin, as mypy asks for it."""
    return AnnotationsPlugin

"""Say where calls of functions on tensors must not compile: `with tt.no_compile(): f(x)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pto_wsp.errors import CompileForbiddenError
from pto_wsp.source import here

_forbidden: ContextVar[bool] = ContextVar("pto_wsp_no_compile", default=False)


@contextmanager
def no_compile() -> Iterator[None]:
    """Forbid calls of jit functions in the block to compile: a call that would have to raises instead.

    Raises (a call in the block): C118.
    """
    token = _forbidden.set(True)
    try:
        yield
    finally:
        _forbidden.reset(token)


def refuse_compiling(function: str, types: str) -> None:
    """Check that compiling is allowed here.

    Raises: C118 in a block of `tt.no_compile()`.
    """
    if _forbidden.get():
        raise CompileForbiddenError(f"`{function}` would be compiled, in a block of tt.no_compile()", here(), found=types,
                                    help=f"call it once with such arguments before; {function}.compiled lists what is there")

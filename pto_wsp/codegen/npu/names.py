"""C++ names in a generated file: readable, each given once, none that the headers own."""

from __future__ import annotations

import re

from pto_wsp.codegen.c.syntax import c_ident

_CPP_WORDS = frozenset((
    "and", "and_eq", "asm", "bitand", "bitor", "bool", "catch", "char8_t", "char16_t", "char32_t", "class", "compl", "concept", "consteval",
    "constexpr", "constinit", "const_cast", "co_await", "co_return", "co_yield", "decltype", "delete", "dynamic_cast", "explicit", "export",
    "false", "friend", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private",
    "protected", "public", "reinterpret_cast", "requires", "static_assert", "static_cast", "template", "this", "thread_local", "throw",
    "true", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq"))
# What a user's name must not hide: the headers' types, instructions and constants, and what this generator numbers itself.
_THEIRS = re.compile(r"[A-Z][A-Z0-9_]{2,}|T[A-Z]\w*|\w+_t|half|pto\w*|args|main|Tile\w*|GlobalTensor|Shape|Stride|Layout|BLayout|SLayout|"
                     r"kernel_entry|set_flag|wait_flag|pipe_barrier|get_block_\w+|k[A-Z]\w*|(?:Gm|Vec|Mat|Left|Right|Acc)[A-Z0-9]\w*|g_\w+|"
                     r"rt_\w+|aicpu_\w+|std")


class Names:
    """Gives out identifiers, each once."""

    def __init__(self, *taken: str, theirs: re.Pattern[str] = _THEIRS) -> None:
        self._taken = set(taken)
        self._theirs = theirs

    def fresh(self, wanted: str) -> str:
        """Return an identifier that reads like `wanted`, and take it."""
        stem = c_ident(wanted)
        if stem in _CPP_WORDS or self._theirs.fullmatch(stem) or stem.startswith("_"):
            stem = f"user_{stem.lstrip('_')}"
        return self.take(stem)

    def take(self, wanted: str) -> str:
        """Return `wanted`, numbered where it is taken already, and take it: for names of the generator's own."""
        found, count = wanted, 2
        while found in self._taken:
            found, count = f"{wanted}_{count}", count + 1
        self._taken.add(found)
        return found

    def inner(self) -> Names:
        """Return names for a block: those taken so far are, and those taken in it are free again behind it."""
        return Names(*self._taken, theirs=self._theirs)

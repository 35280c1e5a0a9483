"""How generated C is compiled. The flags belong to the meaning of the code: see the comment at each."""

from __future__ import annotations

COMMON = (
    "-std=gnu11", "-O3",
    "-fno-math-errno",        # sqrt and floor become instructions
    "-fno-trapping-math",     # both sides of a ?: may be computed, so loops vectorise
    "-ffp-contract=off",      # a * b + c rounds twice, as NumPy does; math and matmul ask for FMA themselves
    "-fwrapv",                # integers wrap
    "-fPIC", "-shared",
)
NATIVE = ("-march=native", "-mprefer-vector-width=512")


def compile_flags(portable: bool = False) -> tuple[str, ...]:
    """Return the compiler flags of an artifact: for this machine, or for the baseline of its architecture.

    >>> "-march=native" in compile_flags(portable=True)
    False
    """
    return COMMON if portable else (*COMMON, *NATIVE)

"""What a run with sanitize=True ends with."""

from __future__ import annotations

from pto_wsp.errors.pto_error import PtoError


class RunRaceError(PtoError):
    code = "R201"
    cause = "With sanitize=True: two tasks use the same elements, one of them writes, and nothing in the workload orders them."
    example = "for b in P(4):\n    k[b](x=X[b], y=Y[table[b]])  # table holds 2 twice"
    fix = "Order them (P.seq, >>, after=, a channel or event), or let each write elements of its own."


class UnwrittenError(PtoError):
    code = "R202"
    cause = "With sanitize=True: what a task gives depends on an element that nobody has written."
    example = "T = Tensor.empty((8, 64), DType.F32)\nfirst(out=T[0:4])\nsecond(x=T[0:8])"
    fix = "Write the element before it is read, or make the tensor of an array that has contents."


class StrayAccessError(PtoError):
    code = "R203"
    cause = "With sanitize=True: a task uses memory outside the regions that its arguments are bound to."
    example = '@kernel(c_src="for (int64_t c = 0; c <= x_cols; ++c) y[c] = x[c];")'
    fix = "Stay within x_rows and x_cols, and step by x_row_step and x_col_step."

"""Conversion between dtypes."""

from __future__ import annotations

from pto_wsp.ops.entry import CFunction
from pto_wsp.ops.rounding import ALL, convert
from pto_wsp.ops.spec import Convert

cast = Convert(name="cast", synonyms=("float", "half", "double", "long", "bfloat16", "asarray", "array", "convert"), ref=convert,
               c=CFunction("pto_cast_{from}_{t}"), npu="TCVT", dtypes=ALL, scales=ALL,
            numpy="{0}.astype({dtype})", numpy_to_mask="{0} != 0", numpy_to_integer="_to_integer({0}, {dtype}, {mode}, {saturate})",
            numpy_between="_between({0}, {dtype})", numpy_to_float="_to_float({0}, {dtype}, {format}, {mode}, {saturate})",
            doc="""Return x in another dtype.

A float becomes an integer by `mode`, "trunc" unless given, and saturates; with saturate=False it wraps. NaN becomes 0.
An integer becomes another by wrapping; with saturate=True the nearest that fits. An integer becomes a float rounded half to even.
A float becomes a narrower one by `mode`, "rint" unless given; beyond the largest finite number lies infinity (NaN for fp8e4m3, which
has none); with saturate=True the largest finite number, for infinities too.
A number becomes a mask by being unequal to 0; a mask becomes 0 and 1. Every conversion rounds once.
Modes: "rint" to the nearest, half to even; "round" to the nearest, half away from zero; "floor" down; "ceil" up; "trunc" towards zero;
"odd" to the neighbour whose last digit is odd, after which rounding to fewer digits is as good as rounding once.""")

ENTRIES = (cast,)

"""Trace a function on whole arrays: `trace_function`, and what a caller needs beside the IR.

    signature = signature_of(function)            # once, at the decorator: annotations, defaults; J101 … for parameters that none may be
    bound = signature.bind(args, kwargs)          # each call: flat arrays, numbers, constants; `bound.key` is the part of a cache's key
    traced = trace_function(signature, bound)     # a new key alone
    sizes = traced.sizes([array.shape for array in bound.arrays])     # each call: symbol -> number; J201 naming both arguments
    result = traced.rebuild(arrays)               # arrays in the order of traced.function.results
"""

from __future__ import annotations

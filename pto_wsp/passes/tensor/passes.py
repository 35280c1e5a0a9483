"""List the passes of a function on whole tensors, in order, and run them: from the trace to the tiled form that is emitted.

Each pass keeps the meaning: `run.tensor_evaluate.evaluate` gives the same before and after. A pass that chooses writes its choice into the
plan where the plan says nothing, and then does what the plan says.
"""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.ir.tensor_function_text import print_function
from pto_wsp.ops.entry import Operator
from pto_wsp.ops.spec import Elementwise, Matmul
from pto_wsp.ops.table import ENTRIES
from pto_wsp.passes.pipeline import Level, Observer, Pass, run_passes
from pto_wsp.passes.tensor.allowed_rewrites import allowed_rewrites
from pto_wsp.passes.tensor.choose_tiles import choose_tiles
from pto_wsp.passes.tensor.cut_tiles import cut_tiles
from pto_wsp.passes.tensor.own_results import own_results
from pto_wsp.passes.tensor.partition import partition
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.passes.tensor.rows_in_order import rows_in_order
from pto_wsp.passes.tensor.share_loops import share_loops
from pto_wsp.passes.tensor.simplify import simplify, verify_after_simplify
from pto_wsp.passes.tensor.split_sums import split_sums

INFIX: Mapping[str, str] = {
    **{entry.name: entry.c.text for entry in ENTRIES
       if isinstance(entry, Elementwise) and len(entry.params) == 2 and isinstance(entry.c, Operator)},
    **{entry.name: "@" for entry in ENTRIES if isinstance(entry, Matmul)}}


def function_text(function: TensorFunction) -> str:
    """Return a function as text, close to NumPy."""
    return print_function(function, INFIX)


def print_planned(planned: PlannedFunction) -> str:
    """Return the function as text, as dumps show it."""
    return function_text(planned.function)


TENSOR = Level("tensor", PlannedFunction, print_planned)
TensorPass = Pass[PlannedFunction, TensorContext]
TensorObserver = Observer[PlannedFunction]

TENSOR_PASSES: tuple[TensorPass, ...] = (
    # what the plan allows is rewritten
    Pass("allowed_rewrites", TENSOR, allowed_rewrites),
    # no value is computed twice or unread, views are short
    Pass("simplify", TENSOR, simplify, verify_after_simplify),
    # rows that `rows_of` gives to tasks lie one behind the other while they are written
    Pass("rows_in_order", TENSOR, rows_in_order),
    # each result is an array of the body's own
    Pass("own_results", TENSOR, own_results, required="results are fresh arrays that share no memory"),
    # sums that the plan splits are sums of pieces
    Pass("split_sums", TENSOR, split_sums),
    # every statement is in a group, and the statements of a group stand side by side
    Pass("partition", TENSOR, partition, required="kernels are made of groups"),
    # the plan has a tile for each axis of each group
    Pass("choose_tiles", TENSOR, choose_tiles, required="tasks are made of tiles"),
    # statements work on tiles, inside loops of tasks
    Pass("cut_tiles", TENSOR, cut_tiles, required="kernels compute on tiles"),
    # what lies between kernels is scratch of the loop that they share, where that can be
    Pass("share_loops", TENSOR, share_loops),
)


def run_tensor_passes(planned: PlannedFunction, context: TensorContext, passes: tuple[TensorPass, ...] = TENSOR_PASSES,
                      observe: TensorObserver | None = None) -> PlannedFunction:
    """Return the function in tiled form, and its plan with every choice.

    Raises: as `run_passes`.
    """
    return run_passes(planned, context, passes, observe)

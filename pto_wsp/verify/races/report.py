"""The error of a race: both accesses with their lines, the two iterations, the elements that they share, and what to write instead."""

from __future__ import annotations

from pto_wsp.errors import RaceError
from pto_wsp.plan.model import Loop, Pipeline, Process, Sides
from pto_wsp.verify.races.witness import Witness


def race_error(witness: Witness, node: Loop | Sides | Pipeline | Process) -> RaceError:
    """Return the error of a witness; `node`: what leaves the two without an order."""
    first, second = witness.pair.accesses
    name = first.view.tensor.shown
    both_write = first.role.writes and second.role.writes
    what = f"tasks without an order between them write {'' if both_write else 'and read '}the same elements of `{name}`"
    if first.by_workload or second.by_workload:
        what = f"the workload reads elements of `{name}` without an order to the tasks that write them"
    notes = (f"for example with {', '.join(f'{key} = {value}' for key, value in witness.given.items())}",) if witness.given else ()
    also = () if first.span == second.span else ((f"{second.verb} here", second.span),)
    return RaceError(what, first.span, also=also,
                     expected=f"{_free(node)} touch different elements, or only read",
                     found=f"{witness.elements} is {_both(witness)}", help=_help(witness, node), notes=notes)


def _both(witness: Witness) -> str:
    first, second = witness.pair.accesses
    if not witness.iteration(0) and not witness.iteration(1):
        return "written by both" if first.verb == second.verb else "written by one and read by the other"
    again = "again" if first.verb == second.verb else second.verb
    return f"{first.verb}{_where(witness, 0)}, and {again}{_where(witness, 1)}"


def _where(witness: Witness, side: int) -> str:
    iteration = witness.iteration(side)
    return f" where {iteration}" if iteration else ""


def _free(node: Loop | Sides | Pipeline | Process) -> str:
    match node:
        case Loop():
            return f"iterations of `{node.known_var.name}`"
        case Sides():
            return "sides without an order"
        case Process():
            return f"replicas of process `{node.name}`"
        case Pipeline():
            return "processes"


def _help(witness: Witness, node: Loop | Sides | Pipeline | Process) -> str:
    name = witness.pair.first.view.tensor.shown
    match node:
        case Loop():
            var = node.known_var.name
            return f"P.seq(...) runs the iterations of `{var}` in order; or give `{name}` one more dimension, a place for each `{var}`"
        case Sides():
            return "sequential(...) or >> puts the sides in order"
        case Process():
            return f"give `{name}` a place for each token, or run the process once"
        case Pipeline():
            return "send a token after the first task, and receive it before the second"

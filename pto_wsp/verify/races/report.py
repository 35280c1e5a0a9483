"""The error of a race: both accesses with their lines, the two iterations, the elements that they share, and what to write instead."""

from __future__ import annotations

from pto_wsp.errors import RaceError
from pto_wsp.plan.model import Loop, Pipeline, Process, Sides, TaskPlan
from pto_wsp.verify.races.running import Unordered
from pto_wsp.verify.races.witness import Witness


def pipeline_error(found: Unordered, node: Loop | Sides | Pipeline | Process, plan: TaskPlan) -> RaceError:
    """Return the error of two instances in processes, with the order of tokens that leaves them free."""
    pair = found.witness.pair
    homes = [level for access in pair.accesses for level in access.levels[pair.depth:pair.depth + 1] if isinstance(level, Process)]
    notes: list[str] = []
    for channel in dict.fromkeys((*found.tokens[0], *found.tokens[1])):
        moved = [_moved(channel, home, tokens.get(channel, 0)) for home, tokens in zip(homes, found.tokens, strict=True)]
        if all(moved):
            notes.append(f"`{plan.channels[channel].name}`, depth {plan.channels[channel].depth}: the first comes after {moved[0]}, "
                         f"the second after {moved[1]}; no chain of tokens leads from one to the other")
    return race_error(found.witness, node, tuple(notes) or (
        "no chain of program order, tokens, credits and events leads from one to the other",))


def _moved(channel: int, home: Process, n: int) -> str:
    """Say how many tokens of a channel a process has moved; empty where it does not use the channel."""
    if channel in home.produces:
        return f"{n} sent"
    return f"{n} taken" if channel in home.consumes else ""


def race_error(witness: Witness, node: Loop | Sides | Pipeline | Process, order: tuple[str, ...] = ()) -> RaceError:
    """Return the error of a witness; `node`: what leaves the two without an order; `order`: how tokens leave them so."""
    first, second = witness.pair.accesses
    name = first.view.tensor.shown
    both_write = first.role.writes and second.role.writes
    what = f"tasks without an order between them write {'' if both_write else 'and read '}the same elements of `{name}`"
    if first.by_workload or second.by_workload:
        what = f"the workload reads elements of `{name}` without an order to the tasks that write them"
    notes = order
    notes += (f"for example with {', '.join(f'{key} = {value}' for key, value in witness.given.items())}",) if witness.given else ()
    also = () if first.span == second.span else ((f"{second.verb} here", second.span),)
    return RaceError(what, first.span, also=also,
                     expected=f"{_free(node)} touch different elements, or only read",
                     found=f"{witness.elements} is {_both(witness)}", help=_help(witness, node, overwritten=bool(order)), notes=notes)


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


def _help(witness: Witness, node: Loop | Sides | Pipeline | Process, *, overwritten: bool) -> str:
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
            if any(access.role.reads and not access.role.writes for access in witness.pair.accesses) and overwritten:
                return f"give `{name}` more places (depth + 2 between neighbours), or take a token back before one is written again"
            return "send a token after the first task, and receive it before the second"

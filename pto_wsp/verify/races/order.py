"""What may order two accesses in processes: routes of tokens that say which iteration is over, and chains of counted tokens.

`tokens.py` and `chains.py` find them in a plan; the question of a pair says that none of them orders the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pto_wsp.plan.model import Loop
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass
from pto_wsp.verify.races.accesses import Level


@dataclass(frozen=True, slots=True, eq=False)
class Hop:
    """A token on its way: what is around the one statement that sends it in its process, and which variables its payload becomes: none
    where who takes it drops its numbers."""

    levels: tuple[Level, ...]
    payload: tuple[s.Scalar, ...]
    vars: tuple[s.Var, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A way from the access on `side` to the other one, through tokens (or an event, then all else is empty).

    `replicas`: there is none, the two are in replicas of one process and so in different turns.

    `hops`: the tokens, from the last one taken back to the first one sent. The access is before the first send in each turn of what is
    around both: `loops`, and consumers, of which `turns` has for each the hops back to loops that tell its turns apart.
    """

    side: int
    hops: tuple[Hop, ...] = ()
    loops: tuple[Loop, ...] = ()
    turns: tuple[tuple[Hop, ...], ...] = ()
    replicas: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A process between two others on a chain: the token at `position` at one end comes before token `then` at another end, `shift`
    later in its channel. `levels`: around the first, of which the outermost is taken to go on without an end."""

    levels: tuple[Level, ...]
    position: s.Scalar
    then: s.Scalar
    shift: int


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A way from the access on `side` to the other one by numbers of tokens: token `first` comes after the access, token `last` before
    the other one, and what reaches a process of the chain leaves it by its link.

    `shift`: of the first hop, the depth of a channel that is gone back along by its credits. `stretch`: it is enough that the chain
    comes to a token no later than `last`, else it must be that one.
    """

    side: int
    first: s.Scalar
    shift: int
    links: tuple[Link, ...]
    last: s.Scalar
    stretch: bool


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where a token comes from: what is around the one statement that sends it, its payload, and its position in the channel, None
    where it cannot be counted; of who takes it the same."""

    levels: tuple[Level, ...]
    payload: tuple[s.Scalar, ...]
    sent: s.Scalar | None
    taken: s.Scalar | None


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """All that may order two accesses in processes: routes, chains, and for each channel where its tokens come from.

    `replicas`: of one process, of which the two are in different ones; 0: they are in different processes.
    """

    routes: tuple[Route, ...] = ()
    chains: tuple[Chain, ...] = ()
    origins: Mapping[int, Origin] = field(default_factory=dict)
    replicas: int = 0

"""The peers by name: what each needs installed, and which file runs it. A peer's file is imported where the peer runs, nowhere else."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.benchmarks.works.catalogue import WORKS
from tests.benchmarks.works.work import Array, Arrays

OURS, TENSORS = "pto_wsp", "tensors"      # kernels and a workload by hand; functions on whole tensors with default plans


@dataclass(frozen=True)
class Peer:
    """A peer: the package that it needs, the file that uses it, the function there."""

    package: str
    file: str
    function: str = "prepare"

    @property
    def installed(self) -> bool:
        """Tell whether its package can be imported."""
        return importlib.util.find_spec(self.package) is not None


PEERS: Mapping[str, Peer] = {
    TENSORS: Peer("pto_wsp", "with_tensors"),
    "numpy": Peer("numpy", "with_numpy"),
    "numba": Peer("numba", "with_numba"),
    "torch": Peer("torch", "with_torch"),
    "torchc": Peer("torch", "with_torch", "prepare_compiled"),
    "jax": Peer("jax", "with_jax"),
}


def prepare(name: str, key: str, given: Arrays, threads: int) -> tuple[Callable[[], object], Callable[[], Array]] | None:
    """Return a run of a work by a peer, or by us, and what reads its result; None where a peer does not offer the work."""
    if name == OURS:
        run, out = WORKS[key].prepare(given, threads)
        return run, lambda: out
    peer = PEERS[name]
    module = importlib.import_module(f"tests.benchmarks.peers.{peer.file}")
    found: tuple[Callable[[], object], Callable[[], Array]] | None = getattr(module, peer.function)(key, given, threads)
    return found

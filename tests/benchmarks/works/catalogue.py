"""The works by their keys, in the order of the tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.benchmarks.works import attention, elements, experts, indexer, product, rows
from tests.benchmarks.works.work import Arrays, Work, aligned

_ORDER = ("rmsnorm", "softmax", "silu", "mm1024", "mm512", "attn", "attnc", "ragged", "moe", "chain3", "index", "indextopk")
_FOUND = {work.key: work for file in (rows, elements, product, attention, experts, indexer) for work in file.WORKS}
WORKS: Mapping[str, Work] = {key: _FOUND[key] for key in _ORDER}
SEED = 1


def draw(work: Work, *, small: bool = False) -> Arrays:
    """Return the inputs of a work: the same arrays in every process, each at the start of a cache line."""
    given = work.inputs(np.random.default_rng(SEED), work.small if small else work.full)
    return {name: aligned(array) for name, array in given.items()}

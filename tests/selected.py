"""Which cases of a file this run has: a fixture that compiles cases together leaves out those of no test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest


def selected(request: pytest.FixtureRequest) -> list[Mapping[str, Any]]:
    """Return the parameters of each test of this run in the file of the test that asks for a fixture."""
    return [item.callspec.params for item in request.session.items
            if item.path == request.path and isinstance(item, pytest.Function) and hasattr(item, "callspec")]

"""What stands before each place in its group."""

import numpy as np
import pytest

from pto_wsp.run.record import before_in_group


@pytest.mark.parametrize("group, order, none, before", [
    ([], None, -1, []), ([5], None, -1, [-1]),
    ([7, 4, 7, -1, 4, -1, 7], None, -1, [-1, -1, 0, -1, 1, -1, 2]),
    ([0, 1, 0, 1], None, 0, [-1, -1, -1, 1]),
    ([2, 2, 2, 3], [30, 10, 20, 0], -1, [2, -1, 1, -1]),
    ([2, 2, 2], [5, 5, 4], -1, [2, 0, -1]),
], ids=["nothing", "one", "no group", "another number for none", "an order of their own", "of equals the lower place"])
def test_by_hand(group: list[int], order: list[int] | None, none: int, before: list[int]) -> None:
    found = before_in_group(np.array(group, np.int64), None if order is None else np.array(order, np.int64), none=none)
    assert found.tolist() == before

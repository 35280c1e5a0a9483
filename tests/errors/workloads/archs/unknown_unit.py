"""A model of a machine with a unit that no core has."""

from pto_wsp import Arch


def mistake() -> None:
    Arch.model_validate_json('{"name": "mine", "units": [{"name": "warp", "bytes_per_cycle": 64}]}')


# error[C110]: arch `mine` has `warp` in units, and there is none of that name
#   --> unknown_unit.py:7:5
#     |
#   7 |     Arch.model_validate_json('{"name": "mine", "units": [{"name": "warp", "bytes_per_cycle": 64}]}')
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of scalar, MTE2, MTE1, cube, fixpipe, vector, MTE3

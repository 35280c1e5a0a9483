"""offsets= of a Ragged whose rows are those of a Dense axis."""

import numpy as np

from pto_wsp import Dense, Ragged


def mistake() -> None:
    Ragged(Dense[2](), np.array([1, 2]), offsets=np.array([0, 1]))


# error[W106]: offsets= is for the rows of a Ragged of a Ragged
#   --> offsets_of_one_level.py:9:5
#     |
#   9 |     Ragged(Dense[2](), np.array([1, 2]), offsets=np.array([0, 1]))
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    an outer Dense[2]
#    = help:     leave it out: lengths has one entry a position of the outer axis

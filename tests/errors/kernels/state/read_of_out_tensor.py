"""An Out Tensor is read."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.tensor import Tensor
from pto_wsp.trace.kernel.annotations import Out


def mistake(y: Out[Tensor]) -> None:
    pto.store(y, pto.load(y, (0, 0), shape=(4, 8)))


# error[K106]: Out parameter `y` cannot be read
#   --> read_of_out_tensor.py:9:18
#     |
#   9 |     pto.store(y, pto.load(y, (0, 0), shape=(4, 8)))
#     |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: In or InOut
#    = found:    declared at read_of_out_tensor.py:8:13
#    = help:     declare it InOut to read what it holds

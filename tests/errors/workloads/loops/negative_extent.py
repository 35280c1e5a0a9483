"""An axis has a negative extent."""

from pto_wsp import Dense


def mistake() -> None:
    Dense[-4]()


# error[W106]: Dense[N]() takes a whole number >= 0 that fits 64 bits
#   --> negative_extent.py:7:5
#     |
#   7 |     Dense[-4]()
#     |     ^^^^^^^^^
#    = found:    -4

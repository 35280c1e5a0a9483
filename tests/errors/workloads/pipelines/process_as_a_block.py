"""A process is opened as a block."""

from pto_wsp import P, process, workload


@workload
def program() -> None:
    with P.pipe():
        load = process("load")
        with load:
            pass


def mistake() -> None:
    program()


# error[W108]: process `load` opens no block: its body is a function
#   --> process_as_a_block.py:10:9
#      |
#   10 |         with load:
#      |         ^^^^^^^^^^
#    = expected: process("load").body(function)
#    = help:     define the function above, without parameters, and give it to .body(...)

"""How each op becomes tile instructions: one rule an op, one family a file.

A rule takes the builder and the statement and returns where the result lies, in any dtype that the result's own converts from.
"""

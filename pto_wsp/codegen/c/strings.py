"""Text as a C string literal."""

from __future__ import annotations


def c_string(text: str) -> str:
    r"""Return a literal of the text's UTF-8 bytes, in ASCII.

    >>> c_string('a "b"\n→')
    '"a \\"b\\"\\012\\342\\206\\222"'
    """
    return '"' + "".join(_spelled(byte) for byte in text.encode()) + '"'


def _spelled(byte: int) -> str:
    if byte in b'"\\':
        return f"\\{byte:c}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"     # three octal digits: what follows is no part of it

"""Text as a C string literal, and as what a comment of C or C++ says."""

from __future__ import annotations

import re


def c_string(text: str) -> str:
    r"""Return a literal of the text's UTF-8 bytes, in ASCII.

    >>> c_string('a "b"\n→')
    '"a \\"b\\"\\012\\342\\206\\222"'
    """
    inside = "".join(_spelled(byte) for byte in text.encode())
    return '"' + re.sub(r"(?<=\?)\?", r"\\?", inside) + '"'     # no trigraphs, which strict standards have


def comment_text(text: str) -> str:
    r"""Return text of one line that ends no comment and goes on in no next line, whichever comment it stands in.

    >>> comment_text("a */ b\n" + chr(92))
    'a * / b?/'
    """
    line = "".join(c if c.isprintable() else "?" for c in text).replace("\\", "/").replace("??/", "?? /")
    return line.replace("*/", "* /").replace("/*", "/ *")


def _spelled(byte: int) -> str:
    if byte in b'"\\':
        return f"\\{byte:c}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"     # three octal digits: what follows is no part of it

"""IR text with small mistakes: a token dropped, doubled, exchanged with another one of the same text, or replaced by a hostile one."""

from __future__ import annotations

import random
import re

_TOKEN = re.compile(r"%\d+|\w+|\n *|[^\w\s]| +")
_HOSTILE = ("%999", "%0", "9" * 30, "-1", "1e999", "nan", "((", "]", "'", "\n", "\n        ", "\t", "é", "\x00", "# Tile[1, 1, i8]", "~",
            "Tile[0, 0, f32]", "Tile[999999999, 999999999, f64]", "for i in range(0, 4, 0):", "otherwise:", "True", "x.shape[7]", "f16",
            ",", "(nothing)", "kernel", "-" * 300, "|", ", guard 3", "1 // 0", "None", "\ud800")


def mutated(text: str, rng: random.Random) -> str:
    """Return the text with one to three mistakes."""
    for _ in range(rng.randint(1, 3)):
        tokens = _TOKEN.findall(text)
        at = rng.randrange(len(tokens))
        match rng.randrange(6):
            case 0:
                tokens[at] = ""
            case 1:
                tokens.insert(at, tokens[at])
            case 2:
                tokens[at] = rng.choice(tokens)
            case 3:
                tokens[at] = rng.choice(_HOSTILE)
            case 4:
                tokens = tokens[:at]
            case _:
                lines = text.split("\n")
                one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
                lines[one], lines[other] = lines[other], lines[one]
                tokens = ["\n".join(lines)]
        text = "".join(tokens) or " "
    return text

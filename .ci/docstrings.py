"""Read the project's docstrings as Markdown for the site: examples become blocks of code, and `Raises:` begins a paragraph."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!$).*\n?)*)", re.M)

CODE = re.compile(r"\b[CDKNRSTW]\d{3}\b")


def as_markdown(text: str) -> str:
    """Return a docstring as Markdown."""
    text = EXAMPLE.sub(lambda found: f"\n```pycon\n{found[0].rstrip()}\n```\n", text)
    text = re.sub(r"(?m)^Raises: .*(?:\n(?!\s*$|[A-Z]\w+: ).*)*", lambda found: CODE.sub(link_of, found[0]), text)
    return re.sub(r"(?m)^(Raises|Shapes|Source|Units): ", r"\n**\1**: ", text)


def link_of(found: re.Match[str]) -> str:
    """Return the code of an error as a link to its place on the page of errors."""
    return f'<a href="errors.html#{found[0].lower()}">{found[0]}</a>'


class Docstrings(griffe.Extension):
    """Rewrites each docstring as it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute; `P = Loops()` has that of Loops."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
        elif isinstance(obj, griffe.Attribute) and isinstance(obj.parent, griffe.Module):
            named = obj.parent.members.get(str(obj.value).removesuffix("()"))
            if isinstance(named, griffe.Object) and named.docstring is not None:
                obj.docstring = griffe.Docstring(named.docstring.value.partition("\n\n")[0], parent=obj)

"""Templates of generated code loop over given tuples and print values; they decide nothing. Read from their syntax trees.

Templates of pages (`view/`) lay cards out, and decide how.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes

ROOT = Path(__file__).resolve().parents[2]


def faults_of(text: str) -> Iterator[str]:
    """Say what in a template is more than text, a printed value, or a loop over a given tuple."""
    yield from _faults(jinja2.Environment(autoescape=False).parse(text))


def _faults(node: nodes.Node) -> Iterator[str]:
    match node:
        case nodes.Name(name="loop"):
            yield f"{node.lineno}: uses `loop`; numbers and separators are given with the items"
        case nodes.Template() | nodes.Output() | nodes.TemplateData() | nodes.Name() | nodes.Getattr():
            pass
        case nodes.For() if node.test or node.else_ or node.recursive:
            yield f"{node.lineno}: a loop with if, else or recursive"
        case nodes.For() if not isinstance(node.target, nodes.Name):
            yield f"{node.lineno}: a loop that unpacks its items; give them names in the render model"
        case nodes.For():
            pass
        case _:
            yield f"{node.lineno}: {type(node).__name__}"
            return
    for child in node.iter_child_nodes():
        yield from _faults(child)


def test_templates_decide_nothing() -> None:
    faults = [f"{path.relative_to(ROOT)}:{fault}" for path in sorted((ROOT / "templates").rglob("*.j2"))
              if "view" not in path.parts for fault in faults_of(path.read_text())]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("text", [
    "{% if x %}a{% endif %}",
    "{{ x if y else z }}",
    "{{ x | join(', ') }}",
    "{{ x() }}",
    "{{ x + 1 }}",
    "{{ x ~ y }}",
    "{{ x == y }}",
    "{{ not x }}",
    "{{ x is defined }}",
    "{{ x[0] }}",
    "{{ 'constant' }}",
    "{% set a = x %}",
    "{% macro m() %}{% endmacro %}",
    "{% include 'other.j2' %}",
    "{% extends 'other.j2' %}",
    "{% block b %}{% endblock %}",
    "{% filter upper %}a{% endfilter %}",
    "{% for a in x if a.big %}{{ a }}{% endfor %}",
    "{% for a in x %}{% else %}none{% endfor %}",
    "{% for a, b in x %}{{ a }}{% endfor %}",
    "{% for a in x.items() %}{{ a }}{% endfor %}",
    "{% for a in x %}{{ loop.index }}{% endfor %}",
])
def test_a_deciding_template_is_found(text: str) -> None:
    assert list(faults_of(text))


def test_a_plain_template_passes() -> None:
    text = "{# why #}\n{% for f in unit.fields -%}\n  {{ f.ctype }} {{ f.name }};\n{% endfor %}{{ tail }}\n"
    assert list(faults_of(text)) == []

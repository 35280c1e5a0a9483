"""Place generated text in files: checked render models, printed by templates that decide nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pto_wsp.records import After, Record
from pto_wsp.resources import templates_dir

if TYPE_CHECKING:
    from jinja2 import Environment


def _identifier(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise ValueError(f"{text!r} is no C identifier")
    return text


def _comment(text: str) -> str:
    if "*/" in text or "\n" in text or not text.isprintable():
        raise ValueError(f"{text!r} cannot stand in a C comment")
    return text


def _hex(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]+", text):
        raise ValueError(f"{text!r} is no digest")
    return text


CIdent = Annotated[str, After(_identifier)]
CComment = Annotated[str, After(_comment)]
Hex = Annotated[str, After(_hex)]


class Unit(Record):
    """Base of the render models: one a file."""


class KernelUnit(Unit):
    """One kernel: its C function, spelled from the C tree."""

    symbol: CIdent
    scratch_bytes: int
    text: str


class CpuSimUnit(Unit):
    """What the cpu_sim templates print."""

    name: CComment
    kernels: tuple[KernelUnit, ...]
    n_kernels: int
    prelude: str
    orchestrator: CIdent
    definitions: str
    body: str
    plan_digest: Hex
    files: tuple[str, ...]
    declarations: tuple[str, ...]          # of what tables.c has beside the kernels, line by line
    tables: tuple[str, ...]


class TableField(Unit):
    """A field of a program and its value."""

    name: CIdent
    value: str


class ProgramUnit(Unit):
    """What the templates of a saved program print. `ident`: its name in C and in Python."""

    name: CComment
    ident: CIdent
    c_name: str
    tables: tuple[str, ...]
    fields: tuple[TableField, ...]
    record: str
    execute: str
    sim: str
    flags: str


def render(template: str, unit: Unit) -> str:
    """Return the template's text for a render model, whose fields are its variables."""
    fields = {name: getattr(unit, name) for name in type(unit).model_fields}
    return _environment().get_template(template).render(fields)


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # only a cache miss renders

    return Environment(loader=FileSystemLoader(templates_dir()), undefined=StrictUndefined, autoescape=False, trim_blocks=True,
                       lstrip_blocks=True, keep_trailing_newline=True, auto_reload=False)

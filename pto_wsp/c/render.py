"""Render generated text into files: validated render models, printed by templates without logic."""

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


class TemplateUnit(Record):
    """Base of the render models, one per file."""


class KernelUnit(TemplateUnit):
    """The C function of one kernel as text."""

    symbol: CIdent
    scratch_bytes: int
    text: str


class CpuSimUnit(TemplateUnit):
    """The values of the cpu_sim templates."""

    name: CComment
    kernels: tuple[KernelUnit, ...]
    n_kernels: int
    prelude: str
    orchestrator: CIdent
    definitions: str
    body: str
    plan_digest: Hex
    files: tuple[str, ...]
    declarations: tuple[str, ...]          # of the contents of tables.c other than kernels, line by line
    tables: tuple[str, ...]


class TableField(TemplateUnit):
    """A field of a program and its value."""

    name: CIdent
    value: str


class ProgramUnit(TemplateUnit):
    """The values of a saved program's templates. `ident`: its name in C and in Python."""

    name: CComment
    ident: CIdent
    c_name: str
    tables: tuple[str, ...]
    fields: tuple[TableField, ...]
    record: str
    execute: str
    sim: str
    flags: str


def render(template: str, unit: TemplateUnit) -> str:
    """Return a template's text; the fields of the render model are its variables."""
    fields = {name: getattr(unit, name) for name in type(unit).model_fields}
    return _environment().get_template(template).render(fields)


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # imported here because only a cache miss renders

    return Environment(loader=FileSystemLoader(templates_dir()), undefined=StrictUndefined, autoescape=False, trim_blocks=True,
                       lstrip_blocks=True, keep_trailing_newline=True, auto_reload=False)

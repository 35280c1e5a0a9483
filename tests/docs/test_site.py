"""The documentation site: its navigation, its reference, links that hold on code hosting as well, and the check of the built pages."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import pto_wsp

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SITE: dict[str, Any] = runpy.run_path(str(ROOT / ".ci" / "docs_site.py"))
CHECK: dict[str, Any] = runpy.run_path(str(ROOT / ".ci" / "check_site.py"))
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(DOCS.rglob("*.md"))]


def headings_of(text: str) -> set[str]:
    """Return the anchors that code hosting gives to a page's headings; of headings of one name, the second has -1 behind it."""
    found: dict[str, int] = {}
    anchors = set()
    for heading in re.findall(r"^#{1,6} (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        anchor = SITE["slug"](re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading), "-")
        anchors.add(f"{anchor}-{found[anchor]}" if anchor in found else anchor)
        found[anchor] = found.get(anchor, 0) + 1
    return anchors


def test_the_navigation_names_pages_that_are_there() -> None:
    listed = re.findall(r": (\S+\.md)$", (ROOT / ".ci" / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    assert len(set(listed)) == len(listed) and set(listed) <= {path.name for path in DOCS.glob("*.md")} | set(SITE["TOP_PAGES"].values())


def test_a_page_that_the_navigation_does_not_name_is_found() -> None:
    named = str([{"x": path.name} for path in DOCS.glob("*.md") if path.name not in ("npu.md", "ops.md")])
    assert SITE["unlisted_pages"](named) == ["npu.md", "ops.md"]


def test_the_reference_has_every_public_name_once() -> None:
    listed = re.findall(r"^::: (\S+)$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.M)
    assert len(set(listed)) == len(listed)
    assert sorted(name.removeprefix("pto_wsp.") for name in listed if name.count(".") == 1) == sorted(pto_wsp.__all__)


def lost_links(path: Path) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of it."""
    lost = []
    for found in SITE["LINK"].finditer(path.read_text(encoding="utf-8")):
        target = found["target"]
        if target is None or re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        wanted = (path.parent / file).resolve() if file else path
        if not wanted.exists() or (anchor and wanted.suffix == ".md" and anchor not in headings_of(wanted.read_text(encoding="utf-8"))):
            lost.append(f"{path.relative_to(ROOT).as_posix()} links to {target}")
    return lost


def test_every_link_leads_to_a_heading_in_the_repository() -> None:
    assert [link for path in PAGES for link in lost_links(path)] == []


def test_every_link_leads_to_a_page_of_the_site() -> None:
    addresses = SITE["site_addresses"]([file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*") if file.is_file()])
    paths = [path.relative_to(ROOT).as_posix() for path in PAGES]
    lost = {path: SITE["mapped_links"]((ROOT / path).read_text(encoding="utf-8"), path, "x.md", addresses)[1] for path in paths}
    assert {path: links for path, links in lost.items() if links} == {}


def test_a_lost_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "a.md"
    page.write_text("# A top\n\n[x](#a-top) [y](a.md#a-top) [z](b.md) [v](a.md#no) `[w](c.md)`\n\n```text\n[u](d.md)\n```\n")
    assert lost_links(page) == ["a.md links to b.md", "a.md links to a.md#no"]


@pytest.mark.parametrize("heading, anchor", [("W201 RaceError", "w201-raceerror"), ("Rows & columns", "rows--columns"),
                                             ("`P.seq`: in order", "pseq-in-order"), ("Größe [0, n)", "größe-0-n")])
def test_anchors_are_those_of_code_hosting(heading: str, anchor: str) -> None:
    assert SITE["slug"](heading, "-") == anchor


ADDRESSES = {"README.md": "index.md", "docs/a.md": "a.md", "docs/design/b.md": "design/b.md", "examples/x/x.py": "examples/x.md"}


@pytest.mark.parametrize("markdown, path, uri, expected", [
    ("[a](docs/a.md#top)", "README.md", "index.md", "[a](a.md#top)"),
    ("[x](../../examples/x/x.py)", "docs/design/b.md", "design/b.md", "[x](../examples/x.md)"),
    ('<img src="docs/a.md">', "README.md", "index.md", '<img src="a.md">'),
    ("[t](https://a.b/c) [h](#here)", "README.md", "index.md", "[t](https://a.b/c) [h](#here)"),
    ("```text\n[a](docs/a.md)\n```\n`f[i](x)` [a](docs/a.md)", "README.md", "index.md",
     "```text\n[a](docs/a.md)\n```\n`f[i](x)` [a](a.md)"),
])
def test_links_are_mapped_to_the_site_and_code_is_not(markdown: str, path: str, uri: str, expected: str) -> None:
    assert SITE["mapped_links"](markdown, path, uri, ADDRESSES) == (expected, [])


def test_a_link_without_a_page_is_told() -> None:
    assert SITE["mapped_links"]("[z](z.md)", "docs/a.md", "a.md", ADDRESSES) == ("[z](z.md)", ["z.md"])


@pytest.mark.parametrize("html, problem", [
    ('<a href="b.html#x">', ""),
    ('<a href="b.html#y">', "links to b.html#y, and there is no such anchor"),
    ('<a href="c.html">', "links to c.html, which is not there"),
    ('<a href="https://example.org/">', ""),
    ('<script src="https://cdn.example.org/x.js"></script>', "loads https://cdn.example.org/x.js"),
    ('<link href="//fonts.example.org/css" rel="stylesheet">', "loads //fonts.example.org/css"),
    ('<img src="p.svg">', ""),
])
def test_the_check_of_the_site_finds_lost_links_and_requests(html: str, problem: str) -> None:
    pages = {"a.html": html, "b.html": '<h2 id="x">'}
    assert CHECK["problems_of"](pages, {*pages, "p.svg"}) == ([f"a.html {problem}"] if problem else [])


def test_a_cell_gives_its_last_value_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    assert [SITE["value_of"](code, names) for code in ("x = 2\nprint(x)\nx + 1", "y = x", "")] == [3, None, None]
    assert names["y"] == 2 and capsys.readouterr().out == ""


def test_the_card_of_a_value_follows_the_theme_of_the_site() -> None:
    mark = SITE["card_of"](pto_wsp.Schedule())
    html = SITE["CARDS"][int(re.sub(r"\D", "", mark))]
    assert 'data-md-color-scheme="slate"' in html and "data-jp-theme-light" not in html
    assert SITE["card_of"](3) == ""

"""Check the built documentation: `python .ci/check_site.py FOLDER`. Nothing is asked of the network, every link leads somewhere.

Each code of an error is an anchor of errors.html, and each public name one of reference.html.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "srcset", "link": "href"}     # what a browser asks for by itself


class PageLinks(HTMLParser):
    """The anchors of a page, what it loads, and where its links lead."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag loads, links to or names."""
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        self.loads += [found[LOADED[tag]]] if LOADED.get(tag) in found else []
        self.links += [found["href"]] if tag == "a" and "href" in found else []


def problems_of(pages: dict[str, str], files: set[str]) -> list[str]:
    """Return what is wrong with pages, HTML by path; `files`: all that the site has."""
    parsed = {path: PageLinks(html) for path, html in pages.items()}
    found = []
    for path, page in parsed.items():
        found += [f"{path} loads {target}" for target in page.loads if urlsplit(target).netloc]
        for target in {*page.links, *page.loads}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or path == "404.html":
                continue
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path))) if parts.path else path
            anchor = unquote(parts.fragment)
            if wanted not in files and f"{wanted}/index.html" not in files and wanted != ".":
                found.append(f"{path} links to {target}, which is not there")
            elif anchor and wanted in parsed and anchor not in parsed[wanted].anchors and not anchor.startswith("__"):
                found.append(f"{path} links to {target}, and there is no such anchor")
    return sorted(found)


def public_names() -> list[str]:
    """Return `pto_wsp.__all__`, without importing the package."""
    tree = ast.parse((ROOT / "pto_wsp" / "__init__.py").read_text(encoding="utf-8"))
    return next(ast.literal_eval(node.value) for node in tree.body
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__")


def missing_anchors(pages: dict[str, str]) -> list[str]:
    """Return the codes of errors and the public names that no anchor has."""
    codes = re.findall(r"^### ([A-Z]\d{3}) ", (ROOT / "docs" / "errors.md").read_text(encoding="utf-8"), re.M)
    errors, names = PageLinks(pages["errors.html"]).anchors, PageLinks(pages["reference.html"]).anchors
    return [f"errors.html has no anchor {code.lower()}" for code in codes if code.lower() not in errors] + [
        f"reference.html does not have {name}" for name in public_names() if f"pto_wsp.{name}" not in names]


def main(folder: Path) -> int:
    """Print what is wrong with a built site."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    pages = {path: (folder / path).read_text(encoding="utf-8") for path in files if path.endswith(".html")}
    problems = problems_of(pages, files) + missing_anchors(pages)
    problems += [f"{path} asks for {url}" for path in files if path.endswith(".css")
                 for url in re.findall(r"(?:@import|url\()\s*[\"']?(https?:[^\"')]+)", (folder / path).read_text(encoding="utf-8"))]
    print("\n".join(problems) or f"{len(pages)} pages: every link leads somewhere, nothing is loaded from elsewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

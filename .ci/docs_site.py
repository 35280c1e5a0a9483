"""Hooks of the documentation site (.ci/mkdocs.yml): pages that are not in docs/, and links that hold on the site and in the repository.

The README is the front page; an example and a notebook is a page each, and a cell that ends with a value shows the value's card, made anew
for the site. A link of a page is a path in the repository, as code hosting
follows it; on the site the same link leads to the page made of that file. A link to a file without a page is an error of the strict build.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import logging
import os
import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LOG = logging.getLogger("mkdocs.hooks.docs_site")
TOP_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md", "LICENSE": "licence.md"}
# Code is kept as it is; else the target of a link or picture, or of an attribute of HTML.
LINK = re.compile(r"^(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)\s*?$|(?P<tick>`+)[^`](?:(?!\n\n).)*?(?P=tick)(?!`)|"
                  r"(?P<before>\]\(|\b(?:src|href|srcset)=\")(?P<target>[^)\s\"]+)", re.M | re.S)
CARDS: list[str] = []       # the HTML of cards, by the number in their marks; Markdown would change it
MARK = re.compile(r'<div class="card-mark">(\d+)</div>')
CODE = re.compile(r"(<h3 id=\"(?P<code>[a-z]\d{3})-)")


def slug(text: str, separator: str) -> str:
    """Return the anchor of a heading, the one that code hosting gives."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)


# -- pages that are made -----------------------------------------------------------------------------------------------
def example_page(path: Path) -> str:
    """Return the page of an example: its docstring, then its code."""
    code = path.read_text(encoding="utf-8")
    title, _, rest = (ast.get_docstring(ast.parse(code)) or path.stem).partition("\n")
    indented = re.sub(r"(?m)(?:^    .*\n?)+", lambda found: "```bash\n" + re.sub(r"(?m)^    ", "", found[0]).rstrip() + "\n```\n", rest)
    where = path.relative_to(ROOT).as_posix()
    name = path.stem.replace("_", " ").capitalize() + (", on whole tensors" if path.parent.name == "tensors" else "")
    return f"# {name}\n\n{title}\n{indented}\n`{where}`\n\n```python\n{code}```\n"


def notebook_page(path: Path) -> str:
    """Return the page of a notebook: its prose, its code, what each cell prints, and the card of its last value."""
    parts, names = [], new_names()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        card = card_of(value_of(source, names))
        texts = ("".join(output.get("text", "") or ("" if card else output["data"]["text/plain"])) for output in cell["outputs"])
        printed = "".join(text.rstrip("\n") + "\n" for text in texts if text)
        parts += [f"```text\n{printed}```"] if printed.strip() else []
        parts += [card] if card else []
    return "\n\n".join(parts) + f"\n\nThe notebook: `{path.relative_to(ROOT).as_posix()}`\n"


def new_names() -> dict[str, Any]:
    """Return the names of a module in which cells run; plots are drawn nowhere."""
    os.environ.setdefault("MPLBACKEND", "agg")
    return {"__name__": "__main__"}


def value_of(code: str, names: dict[str, Any]) -> object:
    """Run a cell; return the value of its last line, where that is an expression. What the cell prints is dropped."""
    name = f"Cell {len(linecache.cache)}"          # a kernel's card shows its source, which comes from here
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(tree, name, "exec"), names)
        return None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), names)


def card_of(value: object) -> str:
    """Return a mark that stands for the card of a value, which follows the theme of the site; "" for a value without a card."""
    html = value._repr_mimebundle_().get("text/html", "") if hasattr(value, "_repr_mimebundle_") else ""
    if not html:
        return ""
    for theme, scheme in (("true", "default"), ("false", "slate")):
        html = html.replace(f'[data-jp-theme-light="{theme}"]', f'[data-md-color-scheme="{scheme}"]')
    CARDS.append(html)
    return f'<div class="card-mark">{len(CARDS) - 1}</div>'


def shown_values() -> str:
    """Return the section of docs/notebook.md that shows its values; the cells of code hosting have no style."""
    first = re.search(r"^```python\n(.*?)^```", (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8"), re.M | re.S)
    names = new_names()
    value_of(first[1] if first else "", names)
    before = f"`layer()`\n\n{card_of(value_of('layer()', names))}\n\n`scale`\n\n{card_of(names['scale'])}"
    names["program"].run()
    after = "\n\n".join(f"`{code}`\n\n{card_of(value_of(code, names))}" for code in ("program.stats", "program.trace", "program.graph"))
    return f"\n\n## How it looks\n\nThe cards of this page's values.\n\n{before}\n\n{after}\n"


def index_page(title: str, pages: Mapping[str, str]) -> str:
    """Return a page that lists pages; `pages`: title by name of the file."""
    return f"# {title}\n\n" + "".join(f"- [{text}]({uri})\n" for uri, text in pages.items())


def made_pages() -> dict[str, str]:
    """Return the repository path of each page that stands outside docs/, by its address on the site."""
    found = {page: path for path, page in TOP_PAGES.items()}
    for path in sorted([*(ROOT / "examples").glob("*/*.py"), ROOT / "examples" / "over_ranks.py"]):
        name = f"tensors_{path.stem}" if path.parent.name == "tensors" else path.stem      # names that other examples have
        found[f"examples/{name}.md"] = path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        found[f"notebooks/{path.stem}.md"] = path.relative_to(ROOT).as_posix()
    return found


def text_of(path: Path) -> str:
    """Return the Markdown of a page that stands outside docs/."""
    makers: Mapping[str, Callable[[Path], str]] = {".py": example_page, ".ipynb": notebook_page}
    if path.suffix in makers:
        return makers[path.suffix](path)
    text = path.read_text(encoding="utf-8")
    return text if path.suffix == ".md" else f"# Licence\n\n```text\n{text}```\n"


def title_of(markdown: str) -> str:
    """Return the first heading of a page."""
    found = re.search(r"^# (.+)$", markdown, re.M)
    return found[1] if found else "?"


# -- links -------------------------------------------------------------------------------------------------------------
def site_addresses(names: list[str]) -> dict[str, str]:
    """Return the address on the site of each path of the repository that has one; `names`: the addresses of the files of docs/."""
    found = {f"docs/{name}": name for name in names}
    for page, path in made_pages().items():
        found[path] = page
        found.setdefault(posixpath.dirname(path), page)        # a folder with one example
    return found | {"docs": "index.md", "docs/design": "design/index.md", "examples": "examples/index.md",
                    "examples/notebooks": "notebooks/index.md", "examples/recipes": "recipes.md", "examples/tensors": "examples/index.md"}


def mapped_links(markdown: str, path: str, uri: str, addresses: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return a page with its links mapped to the site, and the links that lead nowhere.

    `path`: where the page stands in the repository; `uri`: its address on the site.
    """
    lost = []

    def mapped(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or re.match(r"[a-z]+:|#|/", target):
            return found[0]
        file, mark, anchor = target.partition("#")
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        if wanted not in addresses:
            lost.append(target)
            return found[0]
        return f"{found['before']}{posixpath.relpath(addresses[wanted], posixpath.dirname(uri) or '.')}{mark}{anchor}"

    return LINK.sub(mapped, markdown), lost


# -- hooks -------------------------------------------------------------------------------------------------------------
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the anchors of code hosting, and the navigation the pages that are made."""
    config.mdx_configs["toc"]["slugify"] = slug
    made = made_pages()
    groups = {"EXAMPLES": ["examples/index.md", *(page for page in made if page.startswith("examples/"))],
              "NOTEBOOKS": ["notebooks/index.md", *(page for page in made if page.startswith("notebooks/"))],
              "DESIGN": ["design/index.md", *(f"design/{path.name}" for path in sorted((ROOT / "docs" / "design").glob("*.md")))]}

    def filled(item: Any) -> Any:
        match item:
            case list():
                return [filled(part) for part in item]
            case dict():
                return {title: filled(part) for title, part in item.items()}
            case _:
                return groups.get(item, item)

    config.nav = filled(config.nav)
    how_to = next(item["How to"] for item in config.nav if "How to" in item)
    how_to += [{title_of((ROOT / "docs" / name).read_text(encoding="utf-8")): name} for name in unlisted_pages(str(config.nav))]
    return config


def unlisted_pages(nav: str) -> list[str]:
    """Return the pages of docs/ that a navigation does not name: they go to the end of the how-tos."""
    return [path.name for path in sorted((ROOT / "docs").glob("*.md")) if f"'{path.name}'" not in nav]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand outside docs/, lists of them, and the style sheet."""
    from mkdocs.structure.files import File  # the tests read links without mkdocs

    made = {page: text_of(ROOT / path) for page, path in made_pages().items()}
    made["examples/index.md"] = index_page("Examples", {
        posixpath.basename(page): title_of(text) for page, text in made.items() if page.startswith("examples/")})
    made["notebooks/index.md"] = index_page("Notebooks", {
        posixpath.basename(page): title_of(text) for page, text in made.items() if page.startswith("notebooks/")})
    made["design/index.md"] = index_page("Design notes", {
        path.name: title_of(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "docs" / "design").glob("*.md"))})
    made["docs_site.css"] = (ROOT / ".ci" / "docs_site.css").read_text(encoding="utf-8")
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Map the links of a page, and drop the tags of blocks that only the tests read."""
    uri = page.file.src_uri
    if uri in ("examples/index.md", "notebooks/index.md", "design/index.md"):
        return markdown
    addresses = site_addresses([file.src_uri for file in files])
    if uri == "errors.md":
        markdown = re.sub(r"(?<=\w\])\[", r"\\[", markdown)       # X[b][t] is no link
    if uri == "notebook.md":
        markdown += shown_values()
    text, lost = mapped_links(markdown, made_pages().get(uri, f"docs/{uri}"), uri, addresses)
    for target in lost:
        LOG.warning("%s links to %s, which has no page on the site", uri, target)
    return re.sub(r"(?m)^```python no-run$", "```python", text)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put cards where their marks stand, and give each error its code as an anchor: errors.html#w201."""
    html = MARK.sub(lambda found: f'<div class="cell">{CARDS[int(found[1])]}</div>', html)
    return html if page.file.src_uri != "errors.md" else CODE.sub(lambda found: f'<a id="{found["code"]}"></a>{found[1]}', html)

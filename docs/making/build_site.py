"""Builds the site into `site/`, strictly and without a network, and follows every link of it: `nox -s site`.

The documents that stand beside the code get pages below tree/, and so do the files that links name. All is laid out in
one folder first, with the links turned to follow, so that whatever builds the site needs to know nothing about it.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from docs.making import write_api
from pumice import __version__

ROOT: Final = Path(__file__).parents[2]
SITE: Final = ROOT / "site"
ADDRESSES: Final = {"site_url": "Documentation", "repo_url": "Source"}
LOADING: Final = {"script": "src", "img": "src", "link": "href", "iframe": "src"}
ROOMS: Final = ("actors", "cluster", "config", "core", "examples", "pumice", "storage", "tests", "charts")
LINK: Final = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
ELSEWHERE: Final = re.compile(r"[a-z]+:|#|/")
CODE: Final = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
PLACEHOLDER: Final = ".invalid"


def main() -> int:
    """Build the site; 1 when a link leads nowhere or a page asks another host for something."""
    with tempfile.TemporaryDirectory(prefix="pumice-site-") as folder:
        lay_out(Path(folder))
        command = [
            str(Path(sys.executable).parent / "mkdocs"),
            "build",
            "-q",
            "-f",
            f"{folder}/mkdocs.yml",
            "-d",
            str(SITE),
        ]
        if subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode:
            return 1
    write_api.main(str(SITE / "api"))
    lost = astray(SITE)
    for line in lost:
        print(line)
    return 1 if lost else 0


def lay_out(folder: Path) -> None:
    """Put everything that a builder of sites needs into a folder: its configuration, the pages, the files."""
    pages = folder / "docs"
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("making", "__pycache__", "*.md"))
    for document in (*own_documents(), *documents()):
        place = pages / uri_of(document)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(turned((ROOT / document).read_text("utf-8"), document), "utf-8")
    for path in linked():
        (pages / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, pages / "tree" / path)
    (folder / "mkdocs.yml").write_text(f"{(ROOT / 'mkdocs.yml').read_text('utf-8')}\n{addresses()}", "utf-8")


def addresses() -> str:
    """Return what the site's configuration takes from the project's metadata; a placeholder is no address."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    known = {key: urls[name] for key, name in ADDRESSES.items() if PLACEHOLDER not in urls[name]}
    lines = [f"{key}: {url}" for key, url in known.items()]
    return "\n".join([*lines, f"copyright: Pumice {__version__}, Apache-2.0", ""])


def own_documents() -> list[str]:
    """Return the documents of docs/, by path."""
    return sorted(f"docs/{path.relative_to(ROOT / 'docs').as_posix()}" for path in (ROOT / "docs").rglob("*.md"))


def documents() -> list[str]:
    """Return the documents outside of docs/, by path."""
    found = list(ROOT.glob("*.md"))
    for room in ROOMS:
        walked = (ROOT / room).rglob("*.md")
        found += [path for path in walked if not any(part.startswith((".", "__")) for part in path.parts[-4:])]
    return sorted({path.relative_to(ROOT).as_posix() for path in found if path.resolve() == path})


def linked() -> set[str]:
    """Return the files outside of docs/ that a document links to, and are no documents themselves."""
    known, found = set(documents()), set[str]()
    for document in (*own_documents(), *known):
        for _, link, _ in LINK.findall((ROOT / document).read_text("utf-8")):
            target = target_of(document, link)
            if target and not target.startswith("docs/") and target not in known and (ROOT / target).is_file():
                found.add(target)
    return found


def target_of(document: str, link: str) -> str:
    """Return the path that a link of a document leads to, from the root; "" if it leads out of the tree."""
    place = link.partition("#")[0]
    if ELSEWHERE.match(link) or not place:
        return ""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(document), place))
    return f"{target}/README.md" if (ROOT / target / "README.md").is_file() else target


def turned(markdown: str, document: str) -> str:
    """Return the text of a document with its links turned to where the site has what they lead to."""
    here = posixpath.dirname(uri_of(document))

    def turn(found: re.Match[str]) -> str:
        before, link, after = found.groups()
        target = target_of(document, link)
        if not target:
            return found[0]
        if not (ROOT / target).is_file():
            return before.removeprefix("!").strip("[](")  # a folder that says nothing of itself has no page
        _, mark, anchor = link.partition("#")
        return f"{before}{posixpath.relpath(uri_of(target), here)}{mark}{anchor}{after}"

    parts = CODE.split(markdown)
    return "".join(part if number % 2 else LINK.sub(turn, part) for number, part in enumerate(parts))


def uri_of(target: str) -> str:
    """Return where the site has a file of the tree."""
    return target.removeprefix("docs/") if target.startswith("docs/") else f"tree/{target}"


# --- Links of the pages


class Links(HTMLParser):
    """Collects what a page links to, what it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses and the anchor of an element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in LOADING and (place := given.get(LOADING[tag])):
            self.loads.append(place)


def astray(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, and for each thing that a page would load from elsewhere."""
    pages = {path: links_of(path) for path in site.rglob("*.html")}
    lines: list[str] = []
    for path, found in pages.items():
        name = path.relative_to(site).as_posix()
        lines += [f"{name} loads {place}" for place in found.loads if place.startswith(("http:", "https:", "//"))]
        for link in {*found.links, *found.loads}:
            place, _, anchor = unquote(link).partition("#")
            if ELSEWHERE.match(link) and not link.startswith("#"):
                continue
            target = (path.parent / place).resolve() if place else path
            if not target.is_file():
                lines.append(f"{name}: {link} leads nowhere")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                lines.append(f"{name}: {link}: no such heading")
    return sorted(lines)


def links_of(path: Path) -> Links:
    """Return the links of a page."""
    found = Links()
    found.feed(path.read_text("utf-8"))
    return found


if __name__ == "__main__":
    sys.exit(main())

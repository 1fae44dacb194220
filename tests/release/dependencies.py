"""What Pumice installs besides itself: names, licences and weights, as docs/reference/dependencies.md lists them.

`python -m tests.release.dependencies PYTHON` writes the page from an environment that holds the wheel alone.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

from tests.release.archives import BIN, ROOT, ReleaseError, run

PAGE: Final = ROOT / "docs" / "reference" / "dependencies.md"
OURS: Final = {"pumice", "pip", "setuptools", "uv"}
MARK: Final = "| package | licence | MB |\n|---|---|---:|\n"
FREE: Final = re.compile(r"MIT|BSD|0BSD|Apache|ISC|Zlib|PSF|Python Software Foundation|CC0|MPL|Mozilla")
WEIGH: Final = """\
import importlib.metadata as m, json
print(json.dumps({d.metadata["Name"]: sum(f.locate().stat().st_size for f in d.files or () if f.locate().is_file())
                  for d in m.distributions()}))
"""


class Package(NamedTuple):
    """One installed distribution."""

    name: str
    licence: str
    size_bytes: int


def packages(python: Path) -> list[Package]:
    """Return what an environment holds besides Pumice, the heaviest first."""
    weights = {normal(name): size for name, size in json.loads(run(python, "-c", WEIGH)).items()}
    told = json.loads(run(BIN / "pip-licenses", "--python", python, "--from", "mixed", "--format", "json"))
    found = [Package(row["Name"], row["License"], weights.get(normal(row["Name"]), 0)) for row in told]
    others = [each for each in found if normal(each.name) not in OURS]
    return sorted(others, key=lambda each: (-each.size_bytes, normal(each.name)))


def normal(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def written(text: str, found: list[Package]) -> str:
    """Return the page's text with its table filled anew."""
    head, mark, rest = text.partition(MARK)
    rows = [f"| {each.name} | {each.licence} | {each.size_bytes / 1e6:.1f} |" for each in found]
    total = sum(each.size_bytes for each in found) / 1e6
    return "\n".join(
        [f"{head}{mark}{rows[0]}", *rows[1:], f"| all of them | | {total:.0f} |", "", rest.partition("\n\n")[2]]
    )


def listed() -> set[str]:
    """Return the packages that the page names."""
    rows = PAGE.read_text("utf-8").partition(MARK)[2].partition("\n\n")[0]
    return {normal(name) for name in re.findall(r"^\| (\S+) \|", rows, re.MULTILINE)}


def compare_licences(python: Path) -> None:
    """Raise ReleaseError for a package that the page does not name, and for a licence that is not known as free."""
    found = packages(python)
    new = [each.name for each in found if normal(each.name) not in listed()]
    unknown = [f"{each.name}: {each.licence}" for each in found if not FREE.search(each.licence)]
    if new or unknown:
        raise ReleaseError(f"docs/reference/dependencies.md lacks {new}; licences to look at: {unknown}")


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8"), packages(Path(sys.argv[1]))), "utf-8")

"""Writes the actions and plugins that are built into the table of docs/features.md: `python -m docs.making.list_built`.

A test lists them again and compares.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pumice.core.actions import ACTIONS
from pumice.core.plugins import PLUGINS

PAGE: Final = Path(__file__).parents[1] / "features.md"


def listed(text: str) -> str:
    """Return the page's text with both rows as they should be."""
    return with_row(with_row(text, "actions", ACTIONS), "plugins", PLUGINS)


def with_row(text: str, what: str, names: Iterable[str]) -> str:
    """Return the text with the table's row of that name filled anew."""
    return re.sub(rf"^\| {what} \| .+ \|$", f"| {what} | {', '.join(names)} |", text, flags=re.MULTILINE)


if __name__ == "__main__":
    PAGE.write_text(listed(PAGE.read_text("utf-8")), "utf-8")

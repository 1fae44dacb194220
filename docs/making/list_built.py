"""Writes the actions and plugins that are built in, and the kinds that are looked after, into the tables of
docs/reference/features.md and docs/reference/workloads.md: `python -m docs.making.list_built`.

A test lists them again and compares.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.kernel.roster import RULES
from pumice.core.actions import ACTIONS
from pumice.core.plugins import BUILT_IN

PAGE: Final = Path(__file__).parents[1] / "reference" / "features.md"
WORKLOADS: Final = Path(__file__).parents[1] / "reference" / "workloads.md"


def listed(text: str) -> str:
    """Return the page's text with both rows as they should be."""
    return with_row(with_row(text, "actions", ACTIONS), "plugins", BUILT_IN)


def with_row(text: str, what: str, names: Iterable[str]) -> str:
    """Return the text with the table's row of that name filled anew."""
    return re.sub(rf"^\| {what} \| .+ \|$", f"| {what} | {', '.join(names)} |", text, flags=re.MULTILINE)


def looked_after(text: str) -> str:
    """Return the text of the page about workloads with its table as it should be: a row for each summary of a rule."""
    rows: dict[str, list[str]] = {}
    for key, rule in RULES.items():
        row = KINDS[key]
        several = sum(each.kind == row.kind for each in KINDS.values()) > 1
        rows.setdefault(rule.summary, []).append(f"{row.kind} ({row.group})" if several else row.kind)
    lines = [f"| {', '.join(names)} | {summary} |" for summary, names in rows.items()]
    head, _, rest = text.partition("|---|---|\n")
    return "\n".join([f"{head}|---|---|", *lines, "", rest.partition("\n\n")[2]])


if __name__ == "__main__":
    WORKLOADS.write_text(looked_after(WORKLOADS.read_text("utf-8")), "utf-8")
    PAGE.write_text(listed(PAGE.read_text("utf-8")), "utf-8")

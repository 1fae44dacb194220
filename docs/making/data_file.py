"""The schema's data file, as it is written: one line a resource and a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parents[2] / "cluster/api/schema/kinds.json"


def text(content: dict[str, Any]) -> str:
    """Return the data file."""
    resources = [_short(row) for row in content["resources"]]
    messages = [f'"{name}":{_short(entry)}' for name, entry in sorted(content["messages"].items())]
    kinds = json.dumps(content["kinds"], indent=0, sort_keys=True)
    return f'{{"kinds":{kinds},"resources":[\n{_lines(resources)}\n],"messages":{{\n{_lines(messages)}\n}}}}\n'


def _short(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _lines(lines: list[str]) -> str:
    return ",\n".join(lines)

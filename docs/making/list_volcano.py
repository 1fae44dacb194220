"""Volcano's names as Markdown tables, from the records themselves; config/README.md holds them and a test compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.config.known import ACTION_ARGUMENTS, FLAGS

if TYPE_CHECKING:
    from collections.abc import Iterable


def flags_table() -> str:
    """Volcano's plugin switches in their real spelling."""
    rows = ((f"`{flag.key}`", flag.point, "on" if flag.on_by_default else "off") for flag in FLAGS)
    return "\n".join(_table(("key", "extension point", "when absent"), rows))


def actions_table() -> str:
    """Volcano's actions and the arguments each reads."""
    rows = ((name, ", ".join(f"`{key.name}`" for key in keys) or "none") for name, keys in ACTION_ARGUMENTS.items())
    return "\n".join(_table(("action", "arguments"), rows))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]

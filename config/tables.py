"""The settings as Markdown tables, from the records themselves; the README holds them and a test compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.known import ACTION_ARGUMENTS, FLAGS
from config.pumice_arguments import settings
from config.settings import process_settings

if TYPE_CHECKING:
    from collections.abc import Iterable


def settings_table() -> str:
    """Pumice's settings: those in the scheduler.conf, then those of the process."""
    scheduling = ((f"`{one.key}`", one.expected, f"`{one.default}`", one.description) for one in settings().values())
    process = (
        (f"`{one.flag}`", f"`{one.variable}`", one.expected, f"`{one.default}`", one.description)
        for one in process_settings().values()
    )
    return "\n".join(
        (
            *_table(("setting", "may be", "default", "what it does"), scheduling),
            "",
            *_table(("flag", "environment", "may be", "default", "what it does"), process),
        )
    )


def flags_table() -> str:
    """Volcano's plugin switches in their real spelling."""
    rows = ((f"`{flag.key}`", flag.point, "on" if flag.on_by_default else "off") for flag in FLAGS)
    return "\n".join(_table(("key", "extension point", "when absent"), rows))


def actions_table() -> str:
    """Volcano's actions and the arguments each reads."""
    rows = ((name, ", ".join(f"`{key}`" for key in keys) or "none") for name, keys in ACTION_ARGUMENTS.items())
    return "\n".join(_table(("action", "arguments"), rows))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]

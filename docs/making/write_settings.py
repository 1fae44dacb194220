"""Writes docs/settings.md from the records that the settings are read into: `python -m docs.making.write_settings`.

A test writes it again and compares.
"""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Final

from pumice.cli.app import load
from pumice.config import pumice_arguments, settings
from pumice.config.argument_types import kind_of
from pumice.config.known import OWN_PLUGIN_ARGUMENTS, OwnArgument

PAGE: Final = Path(__file__).parents[1] / "settings.md"

HEAD: Final = """\
# Settings

This page is written by `docs/making/write_settings.py` from the records in `config/`; change those.

## In the scheduler configuration

Everything about scheduling stands in Volcano's `scheduler.conf`. Pumice's own settings stand beside it as the arguments
of a configuration that Volcano ignores:

```yaml
configurations:
- name: pumice
  arguments:
    schedulePeriod: 100ms
```
"""

PLUGINS: Final = """\
### Of plugins that Volcano does not have

Arguments of the plugin where the tiers list it. They place pods that share cards as `deviceshare` keeps them.
"""

PROCESS: Final = """\
## Of the process

Options of `pumice run`. A flag wins over the environment, which wins over the default.
"""


def write() -> str:
    """Return the whole page."""
    ours = pumice_arguments.settings().values()
    options = run_options()
    processes = [one for one in settings.process_settings().values() if one.flag in options]
    return "\n".join(
        [
            HEAD,
            *table("argument | expected | default | what", (row(f"`{s.key}`", s) for s in ours)),
            "",
            PLUGINS,
            *table("argument | expected | default | what", map(own, chain(*OWN_PLUGIN_ARGUMENTS.values()))),
            "",
            PROCESS,
            *table(
                "option | variable | expected | default | what",
                (row(f"`{s.flag}` | `{s.variable}`", s) for s in processes),
            ),
            "",
        ]
    )


def run_options() -> set[str]:
    """Return the options that `pumice run` takes."""
    return {spelling for parameter in load("run").params for spelling in parameter.opts}


def row(first: str, setting: pumice_arguments.Setting | settings.ProcessSetting) -> str:
    """Return one row without its outer bars."""
    return f"{first} | {setting.expected} | {setting.default} | {setting.description}"


def own(argument: OwnArgument) -> str:
    """Return the row of an argument of a plugin of ours."""
    kind = kind_of(argument.name)
    assert kind is not None
    what = argument.what.replace("|", "\\|")
    return f"`{argument.name}` | {kind.expected} | {argument.default} | {what}"


def table(head: str, rows: Iterable[str]) -> list[str]:
    """Return a table in Markdown, line by line."""
    rule = " | ".join("---" for _ in head.split(" | "))
    return [f"| {line} |" for line in (head, rule, *rows)]


if __name__ == "__main__":
    PAGE.write_text(write(), "utf-8")

"""Writes docs/reference/settings.md from the records that the settings are read into.

`python -m docs.making.write_settings`, or `nox -s documents`. A test writes it again and compares.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pumice.cli.app import load
from pumice.config import pumice_arguments, settings
from pumice.core.plugins import BUILT_IN

PAGE: Final = Path(__file__).parents[1] / "reference" / "settings.md"

HEAD: Final = """\
# Settings

This page is written by `docs/making/write_settings.py` from the records in `config/` and beside the plugins in
`core/plugins/`; change those.

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
### Of Volcano's plugins

Arguments of the plugin where the tiers list it. A value that is not as expected is passed over, with a warning.
"""

OWN: Final = """\
### Of plugins that Volcano does not have

They place pods that share cards as `deviceshare` keeps them.
"""
_ARGUMENTS: Final = "plugin | argument | expected | default | what"

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
            *table(_ARGUMENTS, of_plugins(of_volcano=True)),
            "",
            OWN,
            *table(_ARGUMENTS, of_plugins(of_volcano=False)),
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


def of_plugins(*, of_volcano: bool) -> Iterator[str]:
    """Yield a row for each argument that a plugin, or the part of the configuration that is its own, may have."""
    for plugin in BUILT_IN.values():
        places = [(plugin.name, plugin.arguments)]
        places += [(f"{plugin.name} (`configurations`: {name})", own) for name, own in plugin.sections.items()]
        for where, arguments in places if plugin.of_volcano is of_volcano else ():
            for each in arguments:
                what = each.what.replace("|", "\\|")
                yield f"{where} | `{each.name}` | {each.kind.expected} | {each.default_words} | {what}"


def table(head: str, rows: Iterable[str]) -> list[str]:
    """Return a table in Markdown, line by line."""
    rule = " | ".join("---" for _ in head.split(" | "))
    return [f"| {line} |" for line in (head, rule, *rows)]


if __name__ == "__main__":
    PAGE.write_text(write(), "utf-8")

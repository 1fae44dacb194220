"""Names that later versions keep: `python -m tests.promises.promised` adds new ones to `promised.json`."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pumice
from pumice import plugins, testing
from pumice.cli.app import COMMANDS, load
from pumice.cli.exits import Exit
from pumice.config import pumice_arguments, rules, settings
from pumice.config.fixes import KNOWN_FIXES
from pumice.core import digest
from pumice.core.actions import ACTIONS
from pumice.core.configuration import load_scheduler_config
from pumice.core.messages.message import WIRE
from pumice.core.objects.pod import Task
from pumice.core.plugins import BUILT_IN
from pumice.core.session.points.all_points import Points
from pumice.core.session.points.earlier_forms import FORMS
from pumice.core.session.points.nodes import TaskBatch
from pumice.core.session.points.point import FLAGS
from pumice.questions.adviser.reasons import ALIASES, WaitClass, WaitCode
from pumice.questions.whatif import changes
from pumice.storage.sqlite.migrations import MIGRATIONS

FILE: Final = Path(__file__).with_name("promised.json")
PARTS: Final = {
    "Cluster": pumice.Cluster,
    "DecidedCycle": pumice.DecidedCycle,
    "LivedRun": pumice.LivedRun,
    "testing.ClusterOptions": testing.ClusterOptions,
    "testing.ServedCluster": testing.ServedCluster,
    "changes": changes,
}


def promised() -> dict[str, list[str]]:
    """Return what the file holds, by kind of name."""
    found: dict[str, list[str]] = json.loads(FILE.read_text("utf-8"))
    return found


def current() -> dict[str, list[str]]:
    """Return the names of today, by kind."""
    return {kind: sorted(set(names)) for kind, names in _named().items()}


def _named() -> Mapping[str, Iterable[str]]:
    ours, processes = pumice_arguments.settings(), settings.process_settings()
    return {
        "commands": COMMANDS,
        "options": [f"{name} {option}" for name in COMMANDS for option in _options(name)],
        "exit codes": [f"{each.value} {each.name}" for each in Exit],
        "variables": [each.variable for each in processes.values()],
        "settings": ours,
        "arguments of plugins": [f"{each.name} {one.name}" for each in BUILT_IN.values() for one in each.arguments],
        "fixes": KNOWN_FIXES,
        "actions": ACTIONS,
        "plugins": BUILT_IN,
        "names of pumice": pumice.__all__,
        "names of pumice.plugins": plugins.__all__,
        "earlier names of pumice.plugins": FORMS,
        "names of pumice.testing": testing.__all__,
        "parts of the library": [f"{name}.{part}" for name, whole in PARTS.items() for part in _parts(whole)],
        "extension points": FLAGS,
        "attributes of extension points": _attributes(),
        "classes of waiting": [each.value for each in WaitClass],
        "codes of waiting": [each.value for each in WaitCode],
        "earlier codes of waiting": ALIASES,
        "names in journals": [f"{wire.name}/{wire.version}" for wire in WIRE.values()],
        "versions in journals": [
            *(f"schema/{number}" for number in range(1, len(MIGRATIONS) + 1)),
            *(f"digest/{number}" for number in range(1, digest.VERSION + 1)),
            *(f"rules/{number}" for number in range(1, rules.VERSION + 1)),
        ],
    }


def _options(command: str) -> list[str]:
    """Return the options of a command, each by all its spellings, and its arguments by their metavars."""
    parameters: list[Any] = load(command).params
    return [spelling for each in parameters for spelling in (*each.opts, *each.secondary_opts) if spelling[:1] == "-"]


def _parts(whole: Any) -> list[str]:
    """Return the public parts of a class, or the functions that a module defines."""
    if inspect.ismodule(whole):
        own = (name for name, value in vars(whole).items() if getattr(value, "__module__", "") == whole.__name__)
        return [name for name in own if inspect.isfunction(getattr(whole, name)) and not name.startswith("_")]
    return [name for name in dir(whole) if not name.startswith("_")]


def _attributes() -> list[str]:
    """Return the attributes of a session's points that plugins add rules to."""
    return list(Points(load_scheduler_config(None), _nobody).by_attribute())


def _nobody(tasks: Sequence[Task]) -> TaskBatch:
    raise AssertionError("no rule is asked")


def main() -> int:
    """Add what is new. Refuse to take anything away."""
    was, now = promised() if FILE.exists() else {}, current()
    gone = broken(was, now)
    if gone:
        sys.stderr.write("\n".join([*gone, ""]))
        return 1
    FILE.write_text(json.dumps(now, indent=1) + "\n", "utf-8")
    return 0


def broken(was: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> list[str]:
    """Return a line for each promised name that is gone."""
    return [f"{kind}: {name} is gone" for kind, names in was.items() for name in names if name not in now.get(kind, ())]


if __name__ == "__main__":
    sys.exit(main())

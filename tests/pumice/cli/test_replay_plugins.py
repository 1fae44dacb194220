"""Journals that were decided with plugins of a user's own: a missing or changed one is named."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pumice.core.plugins import PLUGINS
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import pumice

EXAMPLES = ROOT / "examples" / "plugins"
CONFIG = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: young-nodes, arguments: {weight: 5}}]
"""
FOLDER = "--plugins-dir"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The table as it was."""
    before = dict(PLUGINS)
    yield
    forget(before)


def forget(before: Mapping[str, object]) -> None:
    """As in a new process."""
    for name in set(PLUGINS) - set(before):
        del PLUGINS[name]
    for name in [name for name in sys.modules if name.startswith("pumice_user_plugins")]:
        del sys.modules[name]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """The journal of a run with a user's plugin, which this process has forgotten since."""
    before = dict(PLUGINS)
    items = [*(node(f"n{number}") for number in range(3)), *gang("j", pods=2, duration="100ms")]
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "utf-8")
    (tmp_path / "some.conf").write_text(CONFIG, "utf-8")
    shutil.copytree(EXAMPLES, tmp_path / "plugins", ignore=shutil.ignore_patterns("__pycache__"))
    run = ["run", "-f", tmp_path / "all.json", "--config", tmp_path / "some.conf", "--db", tmp_path / "j.db"]
    said = pumice(*run, FOLDER, tmp_path / "plugins", "--until", "idle", "-o", "json")
    assert said.code == 0, said.err
    forget(before)
    return tmp_path / "j.db"


COMMANDS = (
    ("replay", "--verify"),
    ("explain", "pod", "default/j-0", "--db"),
    ("decide", "--cycle", "1", "--db"),
)


def arguments(command: tuple[str, ...], db: Path) -> list[object]:
    return [command[0], db, *command[1:]] if command[0] == "replay" else [*command, db]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_missing_plugin_is_named(db: Path, command: tuple[str, ...]) -> None:
    said = pumice(*arguments(command, db), "-o", "json")
    assert said.code == 2
    assert "it was decided with the plugin 'young-nodes' (rack_spread.py sha256:" in said.err
    assert FOLDER in said.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_with_the_plugin_it_comes_out_as_recorded(db: Path, command: tuple[str, ...]) -> None:
    said = pumice(*arguments(command, db), FOLDER, db.parent / "plugins", "-o", "json")
    assert said.code == 0, said.err
    assert "plugin" not in said.err
    if command[0] == "replay":
        assert (said.json["identical"], said.json["changed_plugins"]) == (True, [])


def test_a_changed_plugin_is_named_and_may_decide_otherwise(db: Path) -> None:
    module = db.parent / "plugins" / "rack_spread.py"
    module.write_text(module.read_text("utf-8").replace("class YoungNodes", "# another version\nclass YoungNodes"))
    said = pumice("replay", db, FOLDER, db.parent / "plugins", "-o", "json")
    assert said.code == 0
    assert "the plugin 'young-nodes' was rack_spread.py sha256:" in said.err
    assert len(said.json["changed_plugins"]) == 1


FLAKY = """
from pathlib import Path

class Flaky:
    def __init__(self, arguments):
        self._broken = Path(arguments["broken"])

    def on_session_open(self, session):
        session.points.predicate.add("flaky", self.test)

    def on_session_close(self, session):
        pass

    def test(self, task, node):
        if self._broken.exists():
            raise ConnectionError("nobody there")
        return "not that one" if node.name == "n0" else None

PLUGINS = {"flaky": Flaky}
"""


def test_what_a_plugin_failed_to_answer_is_not_asked_again(tmp_path: Path) -> None:
    """It is well again when the journal is replayed, and would not have the node that the pod was given."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "flaky.py").write_text(FLAKY, "utf-8")
    broken, conf, db = tmp_path / "broken", tmp_path / "some.conf", tmp_path / "j.db"
    broken.touch()
    flaky = f"{{name: flaky, arguments: {{broken: {broken}}}}}"
    conf.write_text(CONFIG.replace("{name: young-nodes, arguments: {weight: 5}}", flaky), "utf-8")
    items = [node("n0"), *gang("j", pods=2, duration="100ms")]
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "utf-8")
    folder = [FOLDER, tmp_path / "plugins"]
    run = pumice("run", "-f", tmp_path / "all.json", "--config", conf, "--db", db, *folder, "--until", "idle")
    assert "plugin flaky failed in reject_one: ConnectionError: nobody there" in run.err
    broken.unlink()
    said = pumice("replay", db, *folder, "-o", "json")
    assert (said.code, said.json["identical"]) == (0, True), said.json
    same = pumice("replay", db, "--config", conf, *folder)
    assert same.code == 0, same.out
    told = pumice("explain", "pod", "default/j-0", "--db", db, *folder, "-o", "json")
    assert (told.code, told.json["differs"]) == (0, {}), told.out
    assert "was placed on n0" in told.json["message"]

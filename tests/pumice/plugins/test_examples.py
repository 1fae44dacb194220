"""The example plugins, from the command line."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pumice.core.plugins import PLUGINS
from tests.kit import gang, node, queue
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import Said, pumice

EXAMPLES = ROOT / "examples" / "plugins"
CONFIG = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
- plugins:
  - name: predicates
  - name: {name}
    arguments: {arguments}
"""
RACKS = [node(f"n{i}", labels={"rack": "ab"[i % 2]}) for i in range(4)]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The table as it was."""
    before, modules = dict(PLUGINS), set(sys.modules)
    yield
    PLUGINS.clear()
    PLUGINS.update(before)
    for name in set(sys.modules) - modules:
        if name.startswith("pumice_user_plugins"):
            del sys.modules[name]


def decide(tmp_path: Path, name: str, arguments: dict[str, Any], *more: object, folder: Path = EXAMPLES) -> Said:
    objects, config = tmp_path / "objects.json", tmp_path / "scheduler.conf"
    items = [*RACKS, queue("default"), *gang("j", pods=4)]
    objects.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    config.write_text(CONFIG.format(name=name, arguments=json.dumps(arguments)))
    return pumice("decide", "-f", objects, "--config", config, "--plugins-dir", folder, "-o", "json", *more)


def test_young_nodes(tmp_path: Path) -> None:
    binds = decide(tmp_path, "young-nodes", {"weight": 5}).json["cycles"][0]["binds"]
    assert set(binds.values()) == {"n3"}


def test_quiet_racks(tmp_path: Path) -> None:
    binds = decide(tmp_path, "quiet-racks", {"most": 2}).json["cycles"][0]["binds"]
    assert sorted(binds.values()) == ["n0", "n0", "n1", "n1"]
    said = decide(tmp_path, "quiet-racks", {"most": 1})
    assert said.json["cycles"][0]["binds"] == {}
    message = said.json["pending"]["default/j-2"]["message"]
    assert "2 rack a has 1 of the job's tasks" in message
    assert "2 rack b has 1 of the job's tasks" in message


def test_a_plugin_that_raises_is_named_on_stderr(tmp_path: Path) -> None:
    wrong = {"most": "a few"}
    ignored = decide(tmp_path, "quiet-racks", wrong)
    assert len(ignored.json["cycles"][0]["binds"]) == 4
    sentence = "plugin quiet-racks failed in on_session_open: ValueError: invalid literal for int()"
    assert sentence in ignored.err
    said = decide(tmp_path, "quiet-racks", {**wrong, "onError": "fail"})
    assert said.code == 0
    assert said.json["cycles"][0]["binds"] == {}
    assert f"4 {sentence}" in said.json["pending"]["default/j-0"]["message"]


def test_a_folder_that_is_none_is_bad_input(tmp_path: Path) -> None:
    said = decide(tmp_path, "young-nodes", {}, folder=tmp_path / "nowhere")
    assert said.code == 2
    assert "does not exist" in said.err


def test_without_the_folder_the_name_is_unknown(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    said = decide(tmp_path, "young-nodes", {}, folder=empty)
    assert said.code == 2
    assert "unknown plugin 'young-nodes'" in said.err

"""A single node that fits is taken without a score, and who explains asks for none: asking may move what is decided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pumice.core.plugins import PLUGINS
from pumice.core.plugins.user import guarded
from tests.core.plugins.user.test_user_plugins import registering
from tests.kit import gang, node, queue
from tests.pumice.cli.terminal import Said, pumice

if TYPE_CHECKING:
    from pumice.core.session.session import Session

CONFIG = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: mine}]
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nodes that a plugin was asked to score."""
    found = list[str]()

    def score(task: Any, at: Any) -> float:
        found.append(at.name)
        return 7.0

    def register(session: Session) -> None:
        session.points.node_order.add("mine", score)

    monkeypatch.setitem(PLUGINS, "mine", guarded("mine", registering(register)))
    return found


def explained(folder: Path, *nodes: dict[str, Any], more: str = "") -> Said:
    (folder / "o.yaml").write_text(yaml.safe_dump_all([*nodes, queue("default"), *gang("g", pods=1, cpu="3")]))
    (folder / "c.conf").write_text(CONFIG + more)
    at = ("-f", folder / "o.yaml", "--config", folder / "c.conf", "--budget", 0, "-o", "json")
    return pumice("explain", "pod", "g-0", *at)


def test_a_single_node_is_not_scored(tmp_path: Path, asked: list[str]) -> None:
    said = explained(tmp_path, node("n0", cpu="4"), node("n1", cpu="1"))
    assert said.json["message"].endswith("placed on n0: 1 of 2 nodes fits, and a single one is not scored")
    assert asked == []


def test_several_are(tmp_path: Path, asked: list[str]) -> None:
    said = explained(tmp_path, node("n0", cpu="4"), node("n1", cpu="4"))
    assert "2 of 2 nodes fit, it scored 7" in said.json["message"]
    assert set(asked) == {"n0", "n1"}


@pytest.mark.usefixtures("asked")
def test_of_a_search_that_ended_early_only_what_it_saw_is_told(tmp_path: Path) -> None:
    crowd = [node(f"n{number:03d}", cpu="4", unschedulable=number % 2 == 1) for number in range(400)]
    sampled = "configurations: [{name: pumice, arguments: {percentageOfNodesToFind: 10}}]\n"
    said = explained(tmp_path, *crowd, more=sampled)
    assert said.code == 0, said.err
    assert "101 of 201 nodes that were looked at fit, it scored 7" in said.json["message"]
    assert said.json["nodes"] == {"node(s) were unschedulable": 100, "fits": 101, "not looked at": 199}

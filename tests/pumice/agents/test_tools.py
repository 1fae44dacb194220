"""What an agent may ask, and the command that answers it."""

from pathlib import Path
from typing import Any, Final

import pytest

from pumice.agents.tools import TOOLS, AgentSource, read_question
from pumice.errors import InputError

JOURNAL: Final = AgentSource(db=Path("/tmp/a.db"), cycle=7, plugins_dir=Path("/tmp/plugins"))
SERVER: Final = AgentSource(server="http://a", certificate=Path("/ca.pem"))
FILES: Final = AgentSource(manifests=["/a.yaml", "/b.yaml"], config=Path("/c.conf"), gate=Path("/tmp/g.yaml"))

COMMANDS: Final[list[tuple[AgentSource, str, dict[str, Any], str]]] = [
    (JOURNAL, "queues", {}, "queue --db=/tmp/a.db --plugins-dir=/tmp/plugins"),
    (JOURNAL, "who_is_next", {"queue": "--help"}, "queue --db=/tmp/a.db --plugins-dir=/tmp/plugins -- --help"),
    (SERVER, "queues", {"queue": "a"}, "queue --server=http://a --cacert=/ca.pem -- a"),
    (FILES, "queues", {}, "queue --filename=/a.yaml --filename=/b.yaml --config=/c.conf"),
    (
        JOURNAL,
        "why_pending",
        {"object": "a/b", "kind": "pod", "cycle": 3},
        "explain --db=/tmp/a.db --plugins-dir=/tmp/plugins --cycle=3 --budget=0 -- pod a/b",
    ),
    (
        SERVER,
        "what_would_help",
        {"object": "a/b", "budget_s": 2},
        "explain --server=http://a --cacert=/ca.pem --budget=2 -- job a/b",
    ),
    (
        FILES,
        "what_if",
        {"drain": ["n1"], "add_nodes": ["2:like=n1"], "submit": "a: 1", "config": "b: 1"},
        (
            "whatif --filename=/a.yaml --filename=/b.yaml --base-config=/c.conf --add-nodes=2:like=n1 --drain=n1"
            " --submit=manifest.yaml --config=scheduler.conf --horizon=1h"
        ),
    ),
    (
        JOURNAL,
        "what_if",
        {"until_starts": "a/b", "within": "5m"},
        "whatif --db=/tmp/a.db --plugins-dir=/tmp/plugins --until-starts=a/b --within=5m --budget=30",
    ),
    (JOURNAL, "eta", {}, "eta --db=/tmp/a.db --plugins-dir=/tmp/plugins --horizon=24h --samples=20"),
    (
        SERVER,
        "eta",
        {"jobs": ["a/b"]},
        "eta --server=http://a --cacert=/ca.pem --horizon=24h --samples=20 -- a/b",
    ),
    (
        JOURNAL,
        "dry_run",
        {"manifest": "a: 1"},
        "decide --db=/tmp/a.db --plugins-dir=/tmp/plugins --cycle=7 --cycles=2 --filename=manifest.yaml",
    ),
    (
        SERVER,
        "dry_run",
        {"manifest": "a: 1"},
        "whatif --server=http://a --cacert=/ca.pem --submit=manifest.yaml --horizon=10m",
    ),
    (JOURNAL, "story", {"object": "a/b"}, "journal --about=a/b -- /tmp/a.db"),
    (
        JOURNAL,
        "compare_configurations",
        {"config": "a: 1"},
        "replay --config=scheduler.conf --workers=1 --plugins-dir=/tmp/plugins -- /tmp/a.db",
    ),
    (
        FILES,
        "compare_configurations",
        {"config": "a: 1", "horizon": "2h"},
        "whatif --filename=/a.yaml --filename=/b.yaml --base-config=/c.conf --config=scheduler.conf --horizon=2h",
    ),
    (FILES, "gate", {"head": "HEAD~1"}, "gate --head=HEAD~1 --workers=1 --results=runs -- /tmp/g.yaml"),
]


@pytest.mark.parametrize(("source", "tool", "arguments", "command"), COMMANDS)
def test_a_question_is_a_command(source: AgentSource, tool: str, arguments: dict[str, Any], command: str) -> None:
    line = read_question(tool, arguments).command(source)
    assert " ".join(line.words) == command
    assert set(line.files) == {name for name in ("manifest.yaml", "scheduler.conf") if f"={name}" in command}


def test_every_tool_has_a_command() -> None:
    assert {tool for _, tool, _, _ in COMMANDS} == TOOLS.keys()


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("delete_everything", {}, "no tool 'delete_everything'; there are queues, who_is_next"),
        ("why_pending", {}, "missing required field `object`; known: object, kind, cycle"),
        ("why_pending", {"object": "a/b", "kind": "secret"}, r"\$\.kind"),
        ("why_pending", {"object": 5}, r"Expected `str`, got `int` - at `\$\.object`"),
        ("who_is_next", {"first": 0}, r"Expected `int` >= 1 - at `\$\.first`"),
        ("eta", {"sample": 3}, "unknown field `sample`; known: jobs, horizon, samples"),
    ],
)
def test_a_question_that_cannot_be_read_is_named(tool: str, arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_question(tool, arguments)


@pytest.mark.parametrize(
    ("source", "tool", "arguments", "instead"),
    [
        (SERVER, "story", {"object": "a/b"}, "start `pumice mcp --db FILE`"),
        (JOURNAL, "gate", {}, "start `pumice mcp --gate POLICY`"),
    ],
)
def test_a_question_that_this_cluster_cannot_answer_is_refused(
    source: AgentSource, tool: str, arguments: dict[str, Any], instead: str
) -> None:
    with pytest.raises(InputError, match=instead):
        read_question(tool, arguments).command(source)

"""Answers: bounded in time and size, of the shape that is promised."""

from __future__ import annotations

import json
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from pumice.agents import asking
from pumice.agents.asking import ToolDesk, UnansweredError, output_schema, shortened
from pumice.agents.tools import TOOLS, AgentSource, AgentTool, QueuesTool, WhyPendingTool, read_question
from tests.quality.agents import clusters

jsonschema: Final[Any] = import_module("jsonschema")  # it has no types


def source_of(folder: Path) -> AgentSource:
    return AgentSource(manifests=[str(clusters.manifests(folder))])


@pytest.mark.anyio
async def test_an_answer_has_the_shape_of_its_schema(tmp_path: Path) -> None:
    answer = await ToolDesk(source_of(tmp_path)).answer(WhyPendingTool(object="lab/narrow"))
    jsonschema.Draft202012Validator(output_schema(WhyPendingTool)).validate(answer.told)
    assert answer.told["command"].startswith("pumice explain -o json --filename=")
    assert answer.told["result"]["reason"] == "QueueCapability"


@pytest.mark.anyio
async def test_an_error_says_what_to_ask_instead(tmp_path: Path) -> None:
    with pytest.raises(UnansweredError, match=r"no job 'lab/nobody'.*`who_is_next` lists what waits.*\(pumice explain"):
        await ToolDesk(source_of(tmp_path)).answer(WhyPendingTool(object="lab/nobody"))


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("dry_run", {"manifest": "a: [1\n b: {"}, "the manifest:2: malformed YAML"),
        ("dry_run", {"manifest": "just words"}, "the manifest:1: expected an object"),
        ("dry_run", {"manifest": "# nothing"}, "the manifest has no objects"),
        ("dry_run", {"manifest": "{apiVersion: v9, kind: Thing, metadata: {name: t}}"}, "skipped"),
        ("what_if", {"submit": "a: [1"}, "the manifest:"),
        ("what_if", {"add_nodes": ["some"]}, "`add_nodes`: expected COUNT:like=NODE"),
        ("what_if", {"horizon": "soon"}, "`horizon`: expected a duration"),
        ("what_if", {"until_starts": "lab/nobody"}, "`until_starts`: job lab/nobody does not exist"),
        ("what_if", {"config": "a: [1"}, "`config`:"),
        (
            "what_if",
            {"drain": ["n9"], "submit": "{apiVersion: v1, kind: Pod, metadata: {name: p}}"},
            "`drain` n9: Node",
        ),
    ],
)
def test_an_error_speaks_of_the_tool_s_arguments(
    tmp_path: Path, tool: str, arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UnansweredError) as refused:
        anyio.run(ToolDesk(source_of(tmp_path)).answer, read_question(tool, arguments))
    told = str(refused.value).partition("(pumice ")[0]
    assert problem in told
    assert "--" not in told


@pytest.mark.anyio
async def test_a_command_that_takes_too_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_run", _sleep)
    began = time.monotonic()
    with pytest.raises(UnansweredError, match=r"took longer than 0\.2 s\. Without a queue it lists all of them"):
        await ToolDesk(source_of(tmp_path), timeout_s=0.2).answer(QueuesTool())
    assert time.monotonic() - began < 10


async def _sleep(_words: list[str], _folder: str) -> Any:
    return await anyio.run_process(["/bin/sleep", "30"])


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_schema_is_valid_by_itself(tool: type[AgentTool]) -> None:
    schema = output_schema(tool)
    jsonschema.Draft202012Validator.check_schema(schema)
    defined = {f"#/$defs/{name}" for name in schema["$defs"]}
    used = set(json.dumps(schema).split('"$ref": "')[1:])
    assert {each.partition('"')[0] for each in used} <= defined


def test_what_is_too_long_is_cut_and_counted() -> None:
    result = {
        "schema": "queue/1",
        "waiting": [{"job": f"team/job-{number}", "why": "x" * 50} for number in range(500)],
        "queues": {f"q{number}": {"weight": 1} for number in range(300)},
        "record": {"weight": 1, "schema": 2},
    }
    found, left_out = shortened(result, {}, {"schema", "waiting", "queues", "weight", "record", "job", "why"}, 5_000)
    assert len(json.dumps(found)) <= 5_000
    assert left_out == {"waiting": 500 - len(found["waiting"]), "queues": 300 - len(found["queues"])}
    assert found["waiting"][0]["job"] == "team/job-0"
    assert found["record"] == {"weight": 1, "schema": 2}, "a record keeps its keys"


def test_a_part_is_what_was_asked_for() -> None:
    found, left_out = shortened({"waiting": [1, 2, 3], "queues": {"a": 1}}, {"waiting": 2, "queues": 0}, {"waiting"})
    assert found == {"waiting": [1, 2], "queues": {}}
    assert left_out == {"waiting": 1, "queues": 1}

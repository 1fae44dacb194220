"""An agent that asks over the protocol gets the known answers, each in at most three calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp")

from mcp.client.client import Client

from pumice.agents.asking import MOST_BYTES, ToolDesk
from pumice.agents.server import build_server
from pumice.agents.tools import AgentSource
from pumice.questions.history.rewind import newest_cycle
from tests.kit.roles import TOKEN
from tests.kit.serving import Served, served
from tests.quality.agents import clusters
from tests.quality.agents.questions import QUESTIONS, Question

pytestmark = pytest.mark.slow
MOST_CALLS = 3


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, AgentSource]]:
    folder = tmp_path_factory.mktemp("agents")
    journals = {"day": clusters.day(folder), "preempted": clusters.preempted(folder)}
    found = {name: AgentSource(db=file, cycle=anyio.run(newest_cycle, file)) for name, file in journals.items()}
    found["manifests"] = AgentSource(manifests=[str(clusters.manifests(folder))])
    with served(folder, "-f", str(clusters.running(folder))) as server:
        until_running(server)
        certificate, token = (server.roles.certificate, TOKEN) if server.roles else (None, "")
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("PUMICE_TOKEN", token)
            yield {**found, "server": AgentSource(server=server.url, certificate=certificate)}


def until_running(server: Served) -> None:
    with server.client() as client:
        for _ in range(300):
            jobs = client.get("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/runs").json()
            if jobs.get("status", {}).get("state", {}).get("phase") == "Running":
                return
            time.sleep(0.1)
    raise AssertionError("the job does not run")


def test_there_are_forty_questions_on_four_clusters() -> None:
    assert len(QUESTIONS) == 40
    assert len({each.cluster for each in QUESTIONS}) == 4
    assert all(len(each.calls) <= MOST_CALLS for each in QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=[f"{each.cluster}: {each.asked}" for each in QUESTIONS])
def test_a_question_gets_its_answer(sources: dict[str, AgentSource], question: Question) -> None:
    results = anyio.run(asked, sources[question.cluster], question)
    assert question.find(results) == question.answer


async def asked(source: AgentSource, question: Question) -> list[dict[str, Any]]:
    """Return the results of the calls, remarks among them, which the client has compared with their schemas."""
    results = list[dict[str, Any]]()
    async with Client(build_server(ToolDesk(source), "a test")) as client:
        await client.list_tools()
        for tool, arguments in question.calls:
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            assert len(str(answer.content)) < 2 * MOST_BYTES
            told = answer.structured_content
            assert told["command"].startswith("pumice ")
            results.append({**told["result"], "remarks": told["remarks"]})
    return results

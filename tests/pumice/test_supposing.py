"""Answers about what only might be ask no extender: they suppose that it agrees, and say so."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice

NOWHERE = "http://127.0.0.1:1"
CONFIG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: nodeorder
  - name: extender
    arguments:
      extender.urlPrefix: URL
      extender.predicateVerb: predicate
      extender.prioritizeVerb: prioritize
      extender.preemptableVerb: preemptable
      extender.jobEnqueueableVerb: enqueueable
      extender.jobReadyVerb: ready
      extender.queueOverusedVerb: overused
      extender.allocateFuncVerb: allocated
"""
SUPPOSED = (
    f"the extender at {NOWHERE} is asked nothing here: where no record says what it answered, this supposes that it "
    "agrees"
)


class Hates(BaseHTTPRequestHandler):
    """Node n0 does not please it; all else does."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        agreed: dict[str, dict[str, Any]] = {"/prioritize": {"nodeScore": {}}, "/ready": {"status": True}}
        said = agreed.get(self.path, {})
        if self.path == "/predicate" and asked["node"]["Name"] == "n0":
            said = {"status": "not n0", "code": 2}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - so the library names it
        """Nobody reads it."""


@contextmanager
def serving() -> Generator[str]:
    with HTTPServer(("127.0.0.1", 0), Hates) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def written(folder: Path, url: str, *nodes: str) -> tuple[str, str]:
    """A pod with objects around it, and a configuration: two files."""
    first, later = pod("p", cpu="800m", group="g", duration="10s"), pod("q", cpu="800m", group="later", duration="10s")
    jobs = [pod_group("g"), first, pod_group("later"), later]
    objects = [*(node(name, cpu="1") for name in nodes), queue("default"), *jobs]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    (folder / "scheduler.conf").write_text(CONFIG.replace("URL", url))
    return str(folder / "objects.yaml"), str(folder / "scheduler.conf")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The journal of a run in which the extender left one pod a node and the other none, and where the extender was."""
    folder = tmp_path_factory.mktemp("recorded")
    with serving() as url:
        objects, config = written(folder, url, "n0", "n1")
        where = ("--config", config, "--db", folder / "run.db")
        assert pumice("run", "-f", objects, *where, "--until", "5s", "--time", "virtual").code == 0
    return folder / "run.db", url


def test_futures_suppose_that_it_agrees(tmp_path: Path) -> None:
    objects, config = written(tmp_path, NOWHERE, "n0")
    at = ("-f", objects, "--config", config)
    estimate = pumice("eta", *at, "--samples", 1, "-o", "json").json["default/later"]
    assert (estimate["with_known_durations_s"], estimate["supposed"]) == (10.0, [SUPPOSED])
    found = pumice(
        "whatif", "-f", objects, "--base-config", config, "--add-nodes", "1:like=n0", "--horizon", "1m", "-o", "json"
    ).json
    assert found["pending"] == {}
    assert found["supposed"] == [SUPPOSED]
    for said in (pumice("eta", *at, "--samples", 1), pumice("queue", *at, "--eta")):
        assert SUPPOSED in said.out
    assert (
        SUPPOSED
        in pumice("whatif", "-f", objects, "--base-config", config, "--add-nodes", "1:like=n0", "--horizon", "1m").out
    )


def test_without_an_extender_nothing_is_supposed(tmp_path: Path) -> None:
    objects, _ = written(tmp_path, NOWHERE, "n0")
    assert (
        pumice("whatif", "-f", objects, "--add-nodes", "1:like=n0", "--horizon", "1m", "-o", "json").json["supposed"]
        == []
    )
    assert pumice("decide", "-f", objects, "-o", "json").json["supposed"] == []


def test_a_recorded_cycle_is_told_by_its_answers_and_advice_says_what_it_supposes(recorded: tuple[Path, str]) -> None:
    db, url = recorded
    told = pumice("explain", "pod", "q", "--db", db, "-o", "json").json
    assert told["nodes"] == {"not n0": 1, "Insufficient cpu": 1}
    assert not told["differs"]
    assert "1 of 1 fit with: 600m cpu more on node n1" in told["unblock"]
    assert told["supposed"] == [SUPPOSED.replace(NOWHERE, url)]
    quick = pumice("explain", "pod", "q", "--db", db, "--budget", 0, "-o", "json").json
    assert quick["supposed"] == told["supposed"], "what it waits for was not asked, and is no part of the record"
    placed = pumice("explain", "pod", "p", "--db", db, "--cycle", 1, "--budget", 0, "-o", "json").json
    assert (placed["state"], placed["supposed"]) == ("Bound", []), "all that was asked is in the record"
    waiting_jobs = pumice("queue", "--db", db, "-o", "json").json
    assert waiting_jobs["supposed"] == told["supposed"], "it asks again when the cycle is over, of what is left"


def test_a_recorded_state_that_is_changed_supposes_what_was_not_asked(
    recorded: tuple[Path, str], tmp_path: Path
) -> None:
    db, url = recorded
    (tmp_path / "more.yaml").write_text(yaml.safe_dump(node("n2")))
    same = pumice("decide", "--db", db, "--cycle", 1, "-o", "json").json
    assert same["cycles"][0]["binds"] == {"default/p": "n1"}
    assert same["supposed"] == [SUPPOSED.replace(NOWHERE, url)], "of what q waits for"
    more = pumice("decide", "--db", db, "--cycle", 1, "-f", tmp_path / "more.yaml", "-o", "json").json
    assert len(more["cycles"][0]["binds"]) == 2
    assert more["supposed"] == [SUPPOSED.replace(NOWHERE, url)]


def test_a_record_under_a_configuration_with_another_extender_supposes_that_it_agrees(
    recorded: tuple[Path, str], tmp_path: Path
) -> None:
    db, _ = recorded
    _, config = written(tmp_path, NOWHERE)
    saved = tmp_path / "saved.db"
    found = pumice("replay", db, "--config", config, "--save", saved, "-o", "json")
    assert found.code == 1, "the one that was asked did not agree"
    assert found.json["supposed"] == [SUPPOSED]
    assert pumice("replay", saved, "--verify").code == 0

"""A recorded story: the requests of kubectl, vcctl, vc-scheduler and vc-controller-manager, sent again as they were.

`recorded/story.jsonl` holds what the unmodified clients (kubectl 1.32.4; the others from Volcano v1.15.1) sent to
`pumice run --http --no-scheduler --no-controllers` while they did the fifteen steps of a cluster that is real enough,
with headers and bodies, protobuf ones among them, and of each answer what a client reads. Reads that were repeated word
for word are left out, and the key in a Secret is blanked. Identities that a server gives out (uids, generated names,
resourceVersions) are exchanged for those of the server at hand; everything else is sent byte for byte.
"""

import base64
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pytest
import yaml

from pumice.actors.gateway.identity.rights import attributes_of
from pumice.actors.gateway.request.exchange import Exchange
from pumice.cluster.rbac.defaults import default_roles
from pumice.cluster.rbac.index import RoleIndex
from pumice.cluster.rbac.rules import User, account_groups
from tests.kit.answers import PROTOBUF, events_in, object_of
from tests.kit.serving import PASSIVE, served

STORY: Final = Path(__file__).parent / "recorded" / "story.jsonl"
CLIENTS: Final = {"kubectl", "kubectl-dispatcher", "vcctl", "vc-scheduler", "vc-controller-manager"}
REVISION: Final = re.compile(rb"(?<![0-9])1[0-9]{13}(?![0-9])")
"""A resourceVersion in a body; no other number there has fourteen digits."""
PATIENCE_S: Final = 15.0


class Step(msgspec.Struct, frozen=True):
    """One request, and what came of it."""

    client: str
    agent: str
    method: str
    path: str
    status: int
    accept: str = ""
    type: str = ""
    text: str = ""
    protobuf: str = ""
    watch: bool = False
    answer: dict[str, Any] = {}

    @property
    def body(self) -> bytes:
        return base64.b64decode(self.protobuf) if self.protobuf else self.text.encode()

    @property
    def headers(self) -> dict[str, str]:
        given = {"user-agent": self.agent, "accept": self.accept, "content-type": self.type}
        return {name: value for name, value in given.items() if value}


def story() -> list[Step]:
    return [msgspec.json.decode(line, type=Step) for line in STORY.read_bytes().splitlines()]


def told(stream: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a watch, in the form that it has."""
    if not stream.headers["content-type"].startswith(PROTOBUF):
        for line in stream.iter_lines():
            event = msgspec.json.decode(line)
            yield event["type"], event["object"]
        return
    held = b""
    for part in stream.iter_bytes():
        found, held = events_in(held + part)
        yield from found


class Replay:
    """Sends the steps to a server, and learns what it calls the things of the story."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._names: dict[bytes, bytes] = {}

    def send(self, step: Step) -> httpx.Response:
        """The answer; a write that another one has to go before is tried again until it has."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self._send(step)
            if answer.status_code == step.status or step.method == "GET" or time.monotonic() > deadline:
                return answer
            time.sleep(0.1)

    def learn(self, step: Step, answer: dict[str, Any]) -> None:
        """Names and uids of the object in an answer."""
        recorded: dict[str, Any] = step.answer.get("metadata") or {}
        live: dict[str, Any] = answer.get("metadata") or {}
        for field in ("uid", "name"):
            if recorded.get(field) and live.get(field) and recorded[field] != live[field]:
                self._names[recorded[field].encode()] = live[field].encode()

    def here(self, text: bytes) -> bytes:
        """The text with the names of this server."""
        for recorded, live in sorted(self._names.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(recorded, live)
        return text

    def _send(self, step: Step) -> httpx.Response:
        path, body = self.here(step.path.encode()).decode(), self.here(step.body)
        if step.method in ("PUT", "PATCH") and REVISION.search(body):
            body = REVISION.sub(self._revision(path), body)
        if not step.watch:
            return self._http.request(step.method, path, headers=step.headers, content=body)
        path = REVISION.sub(b"0", path.encode()).decode()
        with self._http.stream("GET", path, headers=step.headers) as stream:
            self._check_events(step, stream)
            return stream

    def _revision(self, path: str) -> bytes:
        """The newest resourceVersion of the object that is written: the client has just read it."""
        found = self._http.get(path.partition("?")[0].removesuffix("/status")).raise_for_status()
        revision: str = found.json()["metadata"]["resourceVersion"]
        return revision.encode()

    def _check_events(self, step: Step, stream: httpx.Response) -> None:
        """What a reflector needs: kind and apiVersion in every event, and the bookmark after the initial ones."""
        assert stream.status_code == 200
        assert stream.headers["transfer-encoding"] == "chunked"
        if "sendInitialEvents=true" not in step.path:
            return
        for type_, obj in told(stream):
            assert obj["kind"]
            assert obj["apiVersion"]
            if type_ == "BOOKMARK":
                assert obj["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
                return
            assert type_ == "ADDED"
        raise AssertionError("the stream ended before the bookmark")


@pytest.fixture
def http(tmp_path: Path) -> Iterator[httpx.Client]:
    with served(tmp_path, *PASSIVE) as server, server.client() as client:
        yield client


def test_the_story_holds_every_client() -> None:
    steps = story()
    assert {step.client for step in steps} == CLIENTS
    assert {step.type.partition("/")[2] for step in steps if step.type} >= {
        "json",
        "vnd.kubernetes.protobuf",
        "apply-patch+yaml",
        "strategic-merge-patch+json",
        "merge-patch+json",
        "json-patch+json",
    }


@pytest.mark.timeout(300)
def test_the_recorded_clients_get_their_answers_again(http: httpx.Client) -> None:
    replay = Replay(http)
    for number, step in enumerate(story(), start=1):
        answer = replay.send(step)
        what = f"step {number}: {step.client} {step.method} {step.path}"
        assert answer.status_code == step.status, f"{what}: {answer.status_code} {'' if step.watch else answer.text}"
        if step.answer:
            found = object_of(answer)
            replay.learn(step, found)
            check(replay, step, found, what)


def check(replay: Replay, step: Step, found: dict[str, Any], what: str) -> None:
    """What clients read of an answer is as it was; statuses, which the node agents write meanwhile, are left out, and
    so is the taint of a cordoned node, which a controller adds and takes away when it comes to it.
    """
    expected = msgspec.json.decode(replay.here(msgspec.json.encode(step.answer)))
    for name, value in expected.items():
        if name == "columns":
            assert [column["name"] for column in found["columnDefinitions"]] == value, what
        elif name == "metadata":
            mine = {field: found["metadata"].get(field) for field in value}
            assert {**mine, "resourceVersion": 0} == {**value, "resourceVersion": 0}, what
        elif name == "message" and REVISION.search(str(value).encode()):
            continue
        else:
            said = settled(found[name]) if name == "spec" and found["kind"] == "Node" else found.get(name)
            assert said == value, f"{what}: {name}"


def settled(part: dict[str, Any]) -> dict[str, Any]:
    """A node's spec without the taint that follows `unschedulable`."""
    taints: list[dict[str, str]] = part.get("taints") or []
    left = [taint for taint in taints if taint["key"] != "node.kubernetes.io/unschedulable"]
    return {name: value for name, value in part.items() if name != "taints"} | ({"taints": left} if left else {})


ROLES: Final = Path(__file__).parent / "recorded" / "volcano-roles.yaml"
ACCOUNTS: Final = {"vc-scheduler": "volcano-scheduler", "vc-controller-manager": "volcano-controllers"}


def refused_by_roles(client: str, account: str, **without: str) -> set[tuple[str, str]]:
    """Verb and resource of the client's requests that Volcano's roles do not allow that ServiceAccount."""
    index = RoleIndex()
    for role in default_roles():
        index.heard("ADDED", role["kind"], role)
    for role in yaml.safe_load_all(ROLES.read_text("utf-8")):
        if role["metadata"]["name"] != without.get("name"):
            index.heard("ADDED", role["kind"], role)
    namespace = "volcano-system"
    name, groups = f"system:serviceaccount:{namespace}:{account}", account_groups(namespace)
    user = User(name, ("system:authenticated", *groups))
    refused = set[tuple[str, str]]()
    for step in story():
        path, _, query = step.path.partition("?")
        scope: dict[str, Any] = {"method": step.method, "path": path, "query_string": query.encode(), "headers": []}
        asked = attributes_of(Exchange(scope, nothing, nothing))
        if step.client == client and asked is not None and not index.decide(user, asked).allowed:
            refused.add((asked.verb, asked.resource or asked.path))
    return refused


async def nothing(*_: Any) -> Any:
    """Receives and sends nothing."""


@pytest.mark.parametrize("client", ACCOUNTS)
def test_the_roles_that_volcano_ships_are_enough(client: str) -> None:
    """By the roles of its installer, each daemon's own ServiceAccount may do what the daemon did in the story."""
    assert refused_by_roles(client, ACCOUNTS[client]) == set()
    assert refused_by_roles(client, "default")
    assert refused_by_roles(client, ACCOUNTS[client], name=f"{ACCOUNTS[client]}-role")

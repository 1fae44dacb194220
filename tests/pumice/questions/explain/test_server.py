"""Explaining what a server shows: over plain REST, page by page, and from a real gateway."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from pumice.cli import sources
from pumice.cli.inputs import in_force
from pumice.cluster.api.kinds import KINDS
from pumice.config.errors import ConfigError
from pumice.config.load import default_text
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import WATCHED
from pumice.questions.explain.server import ASKED, Server, ServerError, configuration, fetch
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import pumice

OTHER = """actions: "allocate"
tiers:
- plugins: [{name: priority}, {name: predicates}]
"""
URL = "http://cluster.test:8080"
OBJECTS = [*(node(f"n{number}") for number in range(5)), *gang("g", pods=2, cpu="100")]
OWN = default_text().replace(", backfill", "")
SERVED = ("Node", "Pod", "PodGroup")


class Cluster:
    """Answers lists of two objects a page; kinds that it does not serve with 404."""

    def __init__(self, token: str = "") -> None:
        self.asked: list[str] = []
        self._token = token

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path)
        if self._token and request.headers.get("Authorization") != f"Bearer {self._token}":
            return httpx.Response(401, json={"kind": "Status", "message": "Unauthorized"})
        kind = next((one for one in SERVED if self._path(one) == request.url.path), None)
        if kind is None:
            return httpx.Response(404, json={"kind": "Status", "message": "the server could not find it"})
        found = [self._bare(obj) for obj in OBJECTS if obj["kind"] == kind]
        first = int(request.url.params.get("continue") or 0)
        more = str(first + 2) if first + 2 < len(found) else ""
        page = {"kind": f"{kind}List", "metadata": {"continue": more}, "items": found[first : first + 2]}
        return httpx.Response(200, json=page)

    @staticmethod
    def _bare(obj: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}

    @staticmethod
    def _path(kind: str) -> str:
        row = KINDS[kind]
        return f"/apis/{row.group}/{row.version}/{row.plural}" if row.group else f"/api/{row.version}/{row.plural}"


def answering(handler: Any, **more: Any) -> Server:
    return Server(URL, transport=httpx.MockTransport(handler), **more)


def test_all_pages_of_all_kinds_with_the_kind_of_each_object() -> None:
    cluster = Cluster()
    found = fetch(answering(cluster))
    assert [obj["metadata"]["name"] for obj in found] == ["n0", "n1", "n2", "n3", "n4", "g", "g-0", "g-1"]
    assert [(obj["apiVersion"], obj["kind"]) for obj in found[4:7]] == [
        ("v1", "Node"),
        ("scheduling.volcano.sh/v1beta1", "PodGroup"),
        ("v1", "Pod"),
    ]
    assert len(set(cluster.asked)) == len(ASKED) == len(WATCHED) + 1


def test_a_token_is_shown() -> None:
    assert len(fetch(answering(Cluster("secret"), token="secret"))) == len(OBJECTS)
    with pytest.raises(ServerError, match="401 Unauthorized: it asks for a token"):
        fetch(answering(Cluster("secret")))
    with pytest.raises(ServerError, match="401 Unauthorized: the token is not the one it was started with"):
        fetch(answering(Cluster("secret"), token="another"))


def always(answer: httpx.Response) -> Any:
    """Whatever is asked."""

    def answered(request: httpx.Request) -> httpx.Response:
        return answer

    return answered


def gone(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("connection refused")


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (gone, "no answer: connection refused"),
        (always(httpx.Response(200, text="<html>")), "expected a list of objects, was '<html>'"),
        (always(httpx.Response(200, json=[1])), "expected a list of objects"),
        (always(httpx.Response(500, text="oops")), "500 Internal Server Error: oops"),
        (always(httpx.Response(404, text="nothing")), "404 Not Found: nothing"),
    ],
)
def test_a_server_that_is_none_is_told_apart(handler: Any, sentence: str) -> None:
    with pytest.raises(ServerError, match=re.escape(sentence)):
        fetch(answering(handler))


@pytest.mark.parametrize("url", ["cluster:80", "ftp://cluster", "http://"])
def test_a_url_that_is_none_is_bad_input(url: str) -> None:
    with pytest.raises(ConfigError, match="expected http://HOST:PORT"):
        fetch(Server(url))


@pytest.mark.parametrize("code", [403, 404])
def test_a_volcano_has_its_configuration_in_a_config_map(code: int) -> None:
    found = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"volcano-scheduler.conf": OTHER}}

    def answers(request: httpx.Request) -> httpx.Response:
        wanted = request.url.path.endswith("/configmaps/volcano-scheduler-configmap")
        return httpx.Response(200, json=found) if wanted else httpx.Response(code, json={})

    warned: list[str] = []
    told, config = in_force(None, answering(answers), None, lenient=False, warn=warned.append)
    assert told.source == f"{URL}: ConfigMap volcano-scheduler-configmap"
    assert (config.actions, warned) == (("allocate",), [])


@pytest.mark.parametrize("code", [403, 404])
def test_a_server_that_does_not_tell_its_configuration_is_supposed_to_have_the_stock_one(code: int) -> None:
    warned: list[str] = []
    nothing = answering(always(httpx.Response(code, json={})))
    told, _ = in_force(None, nothing, None, lenient=False, warn=warned.append)
    assert (told.source, told.text) == ("default.conf", default_text())
    (sentence,) = warned
    assert sentence.startswith(f"{URL}: it does not say how its scheduler is configured")


def test_plugins_that_a_server_decides_with_must_be_here() -> None:
    found = {"kind": "Configuration", "text": OTHER, "source": "a.conf", "plugins": {"mine": "mine 1"}}
    server = answering(always(httpx.Response(200, json=found)))
    with pytest.raises(ConfigError, match="decided with the plugin 'mine'"):
        in_force(None, server, None, lenient=False, warn=print)


@pytest.mark.parametrize("code", [401, 429, 500])
def test_a_server_that_could_tell_is_not_guessed_at(code: int) -> None:
    with pytest.raises(ServerError, match=f"GET /apis/pumice.dev/v1/configurations: {code}"):
        configuration(answering(always(httpx.Response(code, json={}))))


# --- the real gateway


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running system with a gang that never fits."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "all.yaml").write_text(yaml.safe_dump_all([*OBJECTS, *gang("s", pods=1, cpu="1", duration="0")]), "utf-8")
    (folder / "own.conf").write_text(OWN, "utf-8")
    given = ["--config", str(folder / "own.conf"), "-f", str(folder / "all.yaml"), "--db", str(folder / "j.db")]
    run = [sys.executable, "-m", "pumice", "run", *given]
    serving = [*run, "--http", "127.0.0.1:0", "--token", "secret"]
    with subprocess.Popen(serving, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if found := re.search(r"serving Kubernetes' API on (\S+)", line):
                wait_for_pods(found[1])
                yield found[1]
                break
        else:
            raise AssertionError(said)
        process.terminate()


def wait_for_pods(url: str) -> None:
    for _ in range(100):
        pods = [obj for obj in fetch(Server(url, "secret")) if obj["kind"] == "Pod"]
        if any(pod["spec"].get("nodeName") for pod in pods):
            return


def test_why_it_is_pending_on_a_server(url: str) -> None:
    said = pumice("explain", "--server", url, "--token", "secret", "pod", "g-0", "-o", "json")
    assert said.code == 0, said.err
    assert (said.json["state"], sum(said.json["nodes"].values())) == ("Pending", 5)
    assert said.json["nodes"] == {"Insufficient cpu": 5}
    assert said.json["unblock"]
    assert "in cycle" not in pumice("explain", "--server", url, "--token", "secret", "pod", "g-0", "-o", "table").out
    assert pumice("explain", "--server", url, "--token", "secret", "pod", "s-0", "-o", "json").json["state"] in (
        "Bound",
        "Running",
    )


def test_a_server_is_asked_for_its_own_configuration(url: str) -> None:
    told = configuration(Server(url, "secret"))
    assert told is not None
    assert (told.text, told.source.endswith("own.conf"), told.plugins) == (OWN, True, {})
    said = pumice("explain", "--server", url, "--token", "secret", "pod", "g-0", "-o", "json")
    assert "backfill" not in said.out
    assert not said.err.count("configur")


def test_a_frame_of_a_server(url: str) -> None:
    said = pumice("top", "--server", url, env={"PUMICE_TOKEN": "secret"})
    assert said.code == 0
    assert said.json["board"]["nodes"]
    assert said.json["standings"]["waiting"]
    assert said.json["cycle_ms"] > 0
    refused = pumice("top", "--server", url)
    assert (refused.code, "it asks for a token" in refused.err) == (3, True)


def test_what_a_server_cannot_be_asked(url: str, tmp_path: Path) -> None:
    assert pumice("explain", "--server", url, "--token", "secret", "pod", "nobody").code == 2
    assert pumice("explain", "--server", url, "--cycle", 1, "pod", "g-0").code == 2
    assert pumice("explain", "--db", tmp_path / "j.db", "--config", "x.conf", "pod", "g-0").code == 2
    refused = pumice("explain", "--server", url, "pod", "g-0")
    assert (refused.code, "401" in refused.err) == (3, True)
    nobody = pumice("explain", "--server", "http://127.0.0.1:1", "pod", "g-0")
    assert nobody.code == 3
    assert "http://127.0.0.1:1: no answer" in nobody.err


@pytest.mark.parametrize("is_pumice", [True, False])
def test_user_of_one_namespace_is_answered_by_the_server(is_pumice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told: Object = {"kind": "Explanation", "apiVersion": "pumice.dev/v1", "metadata": {}, "schema": "explain/1"}
    told |= {"of": "job", "name": "red/g", "cycle": 7, "state": "Pending", "message": "no room", "unblock": ["add one"]}

    def answer(request: httpx.Request) -> httpx.Response:
        if is_pumice and request.url.path == "/apis/pumice.dev/v1":
            return httpx.Response(200, json={"kind": "APIResourceList"}, request=request)
        if is_pumice and request.url.path == "/apis/pumice.dev/v1/namespaces/red/explanations/g":
            assert dict(request.url.params) == {"of": "job", "budget": "60"}
            return httpx.Response(200, json=told, request=request)
        return httpx.Response(403, json={"message": "nodes is forbidden"}, request=request)

    monkeypatch.setattr(sources, "Server", partial(Server, transport=httpx.MockTransport(answer)))
    command = ("explain", "--server", URL, "--budget", 90, "job", "red/g")
    said, listed = pumice(*command, "-o", "table"), pumice("queue", "--server", URL)
    assert "nodes is forbidden" in listed.err
    assert ("/apis/pumice.dev/v1/standings" in listed.err) is is_pumice
    if not is_pumice:
        assert (said.code, "nodes is forbidden" in said.err) == (3, True)
        return
    assert (said.code, said.err, said.out) == (0, "", "job red/g in cycle 7: Pending\nno room\nadd one\n")
    assert (pumice(*command, "-o", "json").json["kind"], listed.code) == ("job", 3)


@pytest.mark.parametrize("command", [("top", "--once"), ("queue",), ("explain", "pod", "a"), ("eta",), ("whatif",)])
def test_a_command_that_asks_a_server_takes_a_token_file(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        shown.append(request.headers.get("authorization", ""))
        return httpx.Response(401, json={"message": "Unauthorized"}, request=request)

    monkeypatch.setattr(sources, "Server", partial(Server, transport=httpx.MockTransport(answer)))
    (tmp_path / "token").write_text("secret\n")
    said = pumice(*command, "--server", "http://127.0.0.1:1", "--token-file", tmp_path / "token")
    assert (said.code, shown[0]) == (3, "Bearer secret")
    assert "the token is not the one it was started with" in said.err
    assert "ps" not in said.err.split()
    said = pumice(*command, "--server", "http://127.0.0.1:1")
    assert (said.code, shown[-1]) == (3, "")
    assert "it asks for a token" in said.err
    for option in (("--token", "a"), ("--token-file", "a"), ("--cacert", "a")):
        said = pumice(*command, *option)
        assert said.code == 2
        assert f"{option[0]}: this is for a server" in said.err

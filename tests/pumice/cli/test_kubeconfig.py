"""`pumice kubeconfig`, and `pumice run --http` from the outside."""

import gc
from pathlib import Path

import httpx
import pytest
import yaml

from tests.kit.serving import PASSIVE, served
from tests.pumice.cli.terminal import pumice


def test_to_stdout_as_yaml_or_json() -> None:
    said = pumice("kubeconfig", "--http", "127.0.0.1:8080")
    assert said.code == 0
    assert yaml.safe_load(said.out)["clusters"][0]["cluster"]["server"] == "http://127.0.0.1:8080"
    said = pumice("kubeconfig", "--server", "https://example.com", "--token", "t", "-o", "json")
    assert said.json["users"][0]["user"] == {"token": "t"}


def test_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    said = pumice("kubeconfig", "--http", "0.0.0.0:8080", "--write", path)
    assert (said.code, said.out) == (0, "")
    assert f"export KUBECONFIG={path}" in said.err
    assert "http://127.0.0.1:8080" in path.read_text()


def test_where_does_it_run() -> None:
    said = pumice("kubeconfig")
    assert said.code == 2
    assert "--http" in said.err


def test_what_run_refuses(tmp_path: Path) -> None:
    db = ("--db", tmp_path / "p.db")
    assert pumice("run", *db, "--http", "127.0.0.1:0", "--time", "virtual", "--until", "idle").code == 2
    said = pumice("run", *db, "--http", "0.0.0.0:0", "--until", "idle")
    assert said.code == 2
    assert "--token" in said.err
    assert pumice("run", *db, "--http", "nonsense", "--until", "idle").code == 2
    assert pumice("run", *db, "--no-scheduler", "--until", "cycles=3").code == 2


@pytest.mark.slow
def test_a_server_from_its_start_to_its_end(tmp_path: Path) -> None:
    with served(tmp_path, *PASSIVE, roles=False) as server:
        assert f"export KUBECONFIG={tmp_path}/pumice.kubeconfig" in server.log
        config = yaml.safe_load((tmp_path / "pumice.kubeconfig").read_text())
        assert config["clusters"][0]["cluster"]["server"] == server.url
        taken = pumice("run", "--db", tmp_path / "other.db", "--http", f"127.0.0.1:{server.port}", "--until", "idle")
        assert taken.code == 3
        assert "in use" in taken.err
        pods = f"{server.url}/api/v1/namespaces/default/pods"
        assert httpx.get(pods, trust_env=False).json()["items"] == []
        nodes = httpx.get(f"{server.url}/api/v1/nodes", trust_env=False).json()["items"]
        assert len(nodes) == 3
    assert pumice("journal", tmp_path / "pumice.db", "--check", "-o", "json").json["whole"]
    assert pumice("replay", tmp_path / "pumice.db", "--verify", "-o", "json").json["identical"]


def test_a_run_with_a_gateway_ends_when_idle(tmp_path: Path) -> None:
    said = pumice("run", "--db", tmp_path / "p.db", "--http", "127.0.0.1:0", "--until", "idle", "-o", "json")
    assert said.code == 0
    assert said.json["pods"]["bound"] == 0
    gc.collect()  # which would speak of a socket that still listens


def test_a_token_among_the_words_of_a_command_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("kubeconfig", "--server", "https://example.com")
    assert "visible to all users of this machine in ps" in pumice(*asked, "--token", "t").err
    monkeypatch.setenv("PUMICE_TOKEN", "t")
    assert "ps" not in pumice(*asked).err.split()

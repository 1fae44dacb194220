"""Credentials that run out: files that are rotated, programs that are asked again, certificates."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from pumice.actors.errors import CredentialsError
from pumice.actors.real_clusters.remote.access import (
    Credential,
    FromPlugin,
    TokenFile,
    credentials_of,
    in_cluster,
    proxy_of,
    trust_of,
)
from pumice.config.errors import ConfigError
from pumice.config.kubeconfig import ClusterAccess, ExecPlugin

pytestmark = pytest.mark.anyio
V1 = "client.authentication.k8s.io/v1"


def plugin_of(folder: Path, status: Any, *, code: int = 0, version: str = V1) -> ExecPlugin:
    """A program that counts its calls in `calls`, and says this."""
    said = json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status})
    script = folder / "plugin.py"
    script.write_text(
        f"#!{sys.executable}\nimport os, sys, pathlib\n"
        f"calls = pathlib.Path({str(folder / 'calls')!r})\n"
        "calls.write_text((calls.read_text() if calls.exists() else '') + os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
        "times = str(len(calls.read_text().splitlines()))\n"
        f"sys.stderr.write('log in first')\nprint({said!r}.replace('TIMES', times))\n"
        f"sys.exit({code})\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return ExecPlugin(str(script), env=(("REGION", "x"),), cluster_info=True)


def asked(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


async def test_a_token_file_is_read_again_now_and_then_and_when_it_was_refused(tmp_path: Path) -> None:
    file, now = tmp_path / "token", [0.0]
    found = TokenFile(file, ClusterAccess("https://c"), now=lambda: now[0])
    with pytest.raises(CredentialsError, match="no token can be read"):
        await found.current()
    file.write_text("one\n")
    assert (await found.current()).header == "Bearer one"
    file.write_text("two")
    assert (await found.current()).header == "Bearer one"
    now[0] = 61.0
    assert (await found.current()).header == "Bearer two"
    file.write_text("three")
    found.refused()
    assert (await found.current()).header == "Bearer three"
    file.unlink()
    found.refused()
    assert (await found.current()).header == "Bearer three"


async def test_a_plugin_is_asked_again_when_its_credential_has_expired(tmp_path: Path) -> None:
    now = [0.0]
    plugin = plugin_of(tmp_path, {"token": "tTIMES", "expirationTimestamp": "1970-01-01T00:10:00Z"})
    found = FromPlugin(ClusterAccess("https://c"), plugin, lambda: now[0])
    assert (await found.current()).header == (await found.current()).header == "Bearer t1"
    now[0] = 591.0
    assert (await found.current()).header == "Bearer t2"
    told = asked(tmp_path)[0]
    assert told["spec"] == {"interactive": False, "cluster": {"server": "https://c", "insecure-skip-tls-verify": False}}


async def test_a_plugin_is_asked_again_when_its_credential_was_refused(tmp_path: Path) -> None:
    found = FromPlugin(ClusterAccess("https://c"), plugin_of(tmp_path, {"token": "tTIMES"}), lambda: 0.0)
    await found.current()
    found.refused()
    assert (await found.current()).header == "Bearer t2"


async def test_a_plugin_may_hand_out_certificates(tmp_path: Path) -> None:
    plugin = plugin_of(tmp_path, {"clientCertificateData": "cert", "clientKeyData": "key"})
    found = FromPlugin(ClusterAccess("https://c"), plugin, lambda: 0.0)
    assert await found.current() == Credential("", b"cert", b"key")


@pytest.mark.parametrize(
    ("status", "more", "told"),
    [
        ({"token": "t"}, {"code": 3}, "ended with 3: log in first"),
        ({}, {}, "neither a token nor a certificate"),
        ({"token": "t"}, {"version": "v0"}, f"expected {V1}, said 'v0'"),
        ({"token": "t", "expirationTimestamp": "soon"}, {}, "expected a time, said 'soon'"),
    ],
)
async def test_what_a_plugin_does_wrong_is_said(tmp_path: Path, status: Any, more: Any, told: str) -> None:
    found = FromPlugin(ClusterAccess("https://c"), plugin_of(tmp_path, status, **more), lambda: 0.0)
    with pytest.raises(CredentialsError, match=told):
        await found.current()


async def test_a_plugin_that_is_not_there_comes_with_its_hint() -> None:
    plugin = ExecPlugin("no-such-plugin-of-anybody", hint="get it from there")
    with pytest.raises(CredentialsError, match="the program does not exist: get it from there"):
        await FromPlugin(ClusterAccess("https://c"), plugin, lambda: 0.0).current()


def test_the_cluster_of_ones_own_pod(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"pem")
    found = in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, tmp_path)
    assert (found.server, found.authority, found.token_file) == ("https://[fd00::1]:443", b"pem", tmp_path / "token")
    assert isinstance(credentials_of(found, lambda: 0.0), TokenFile)
    with pytest.raises(ConfigError, match="not in a pod of a cluster"):
        in_cluster({}, tmp_path)


def test_a_certificate_that_is_none_is_said() -> None:
    with pytest.raises(ConfigError, match="certificate-authority is not a valid certificate"):
        trust_of(ClusterAccess("https://c", authority=b"pem"), Credential())
    with pytest.raises(CredentialsError, match="do not go together"):
        trust_of(ClusterAccess("https://c"), Credential("", b"cert", b"key"))


def test_proxies_come_from_the_kubeconfig_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_of(ClusterAccess("https://c", proxy="http://own:1")) == "http://own:1"
    assert proxy_of(ClusterAccess("https://c")) == "http://proxy:3128"
    assert proxy_of(ClusterAccess("https://inside.example:6443", server_name="other")) is None


def test_the_name_of_a_certificate_that_a_proxy_hides_is_refused() -> None:
    with pytest.raises(ConfigError, match="tls-server-name cannot be checked through the proxy own"):
        proxy_of(ClusterAccess("https://c", proxy="http://own:1", server_name="other"))
    assert proxy_of(ClusterAccess("https://c", proxy="socks5://own:1", server_name="other")) == "socks5://own:1"

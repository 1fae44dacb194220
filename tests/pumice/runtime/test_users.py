# SPDX-License-Identifier: Apache-2.0
"""Users of a token file and of certificates, and the settings about them."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import yaml

from pumice.config.errors import ConfigError, ConflictError
from pumice.config.settings import ProcessSettings
from pumice.runtime.serving import gateway_settings
from pumice.runtime.tokens import TokenUser, read_users
from tests.actors.gateway.rig import serving
from tests.kit.authority import Authority
from tests.kit.serving import PASSIVE, served
from tests.pumice.cli.terminal import pumice


def test_a_token_file_has_kubernetes_form(tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text('a,alice,1,"dev, qa"\n\nb,bob,2\nc, carol ,3,ops\n')
    users = read_users(file)
    assert users == {
        "a": TokenUser("alice", "1", ("dev", "qa")),
        "b": TokenUser("bob", "2"),
        "c": TokenUser("carol", "3", ("ops",)),
    }
    for text, why in (
        ("a,alice\n", "line 1: expected token,user,uid"),
        ("b,bob,1\na,,1\n", "line 2: expected a token and a user"),
        ("a,alice,1\na,bob,2\n", "line 2: the token of an earlier line"),
        ("ü,alice,1\n", "--token-auth-file: expected a token of printable ASCII"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=why):
            read_users(file)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"authorization": "rbac"}, "--authorization: no client could be a user"),
        ({"client_ca_file": "x"}, "--client-ca-file: certificates of clients need TLS"),
        ({"service_account_key_file": "KEY"}, "--service-account-key-file: expected at least 32 random bytes, found 5"),
    ],
)
def test_settings_about_users_that_cannot_work_are_refused(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    (tmp_path / "key").write_text("short")
    given = {name: str(tmp_path / "key") if value == "KEY" else value for name, value in given.items()}
    with pytest.raises((ConfigError, ConflictError)) as caught:
        gateway_settings(ProcessSettings(http="127.0.0.1:0", **given))
    assert told in str(caught.value)


def test_roles_are_enforced_off_the_loopback_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("a,alice,1\n")
    for http, given, expected in (
        ("127.0.0.1:0", None, "none"),
        ("127.0.0.1:0", "rbac", "rbac"),
        ("0.0.0.0:0", None, "rbac"),
        ("0.0.0.0:0", "none", "none"),
    ):
        more: Any = {"authorization": given}
        settings = ProcessSettings(http=http, **more, token_auth_file=str(tmp_path / "users.csv"))
        found = gateway_settings(settings)
        assert found is not None
        with found.listener:
            assert found.authorization == expected


def test_tokens_of_accounts_outlive_a_start_with_the_same_key_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(range(64)))
    keys = set[bytes]()
    for file in (str(tmp_path / "key"), str(tmp_path / "key"), None, None):
        found = gateway_settings(ProcessSettings(http="127.0.0.1:0", service_account_key_file=file))
        assert found is not None
        found.listener.close()
        keys.add(found.account_key)
    assert len(keys) == 3


@pytest.mark.anyio
async def test_a_client_certificate_names_a_user_and_its_groups(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority = Authority(tmp_path, "authority")
    server = authority.signed("server")
    given: Any = {"certificate": server, "key": server, "client_authority": authority.file, "authorization": "rbac"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    async def seen(url: str, file: Path | None) -> tuple[int, Any]:
        return await anyio.to_thread.run_sync(asked, url, file)

    def asked(url: str, file: Path | None) -> tuple[int, Any]:
        context = ssl.create_default_context(cafile=str(authority.file))
        if file is not None:
            context.load_cert_chain(file)
        with httpx.Client(base_url=url, verify=context, trust_env=False) as client:
            answer = client.post(path, json={})
            return answer.status_code, answer.json().get("status", {})

    async with serving(**given) as web:
        carol = authority.signed("carol", None, "dev", "ops")
        code, status = await seen(web.settings.url, carol)
        assert (code, status["userInfo"]) == (
            201,
            {"username": "carol", "groups": ["dev", "ops", "system:authenticated"]},
        )
        assert (await seen(web.settings.url, None))[0] == 403
        stranger = Authority(tmp_path / "other", "stranger").signed("mallory")
        with pytest.raises(httpx.HTTPError):
            await seen(web.settings.url, stranger)


@pytest.mark.slow
def test_kubeconfigs_of_users(tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text("a,alice,1\n")
    (tmp_path / "token").write_text("secret")
    users = ("--token-auth-file", str(file))
    said = pumice("kubeconfig", "--http", "127.0.0.1:8080", "--user", "alice", *users)
    found = yaml.safe_load(said.out)
    assert found["users"] == [{"name": "alice", "user": {"token": "a"}}]
    assert found["contexts"][0]["context"]["user"] == "alice"
    said = pumice("kubeconfig", "--http", "127.0.0.1:8080", "--user", "alce", *users)
    assert (said.code, "did you mean 'alice'" in said.err) == (2, True)
    flags = ("--authorization", "rbac", "--token-file", str(tmp_path / "token"), *users)
    with served(tmp_path, *PASSIVE, *flags, roles=False) as server:
        given = ("kubeconfig", "--server", server.url, "--token-file", tmp_path / "token")
        said = pumice(*given, "--user", "system:serviceaccount:default:default")
        token = yaml.safe_load(said.out)["users"][0]["user"]["token"]
        answer = httpx.get(f"{server.url}/api/v1/pods", headers={"authorization": f"Bearer {token}"}, trust_env=False)
        assert 'User "system:serviceaccount:default:default" cannot list' in answer.json()["message"]
        assert "not found" in pumice(*given, "--user", "system:serviceaccount:default:none").err

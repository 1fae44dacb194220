"""Kubeconfigs: which server, whom to trust, as whom to ask."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.config.errors import ConfigError
from pumice.config.kubeconfig import ExecPlugin, parse_kubeconfig, read_kubeconfig
from pumice.core.objects.metadata import Object


def written(cluster: Object, user: Object, **more: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [
                {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
                {"name": "there", "context": {"cluster": "c", "user": "other"}},
            ],
            "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **cluster}}],
            "users": [{"name": "u", "user": user}, {"name": "other", "user": {"token": "another"}}],
            **more,
        }
    )


def test_the_current_context_is_the_one_that_is_meant() -> None:
    found = parse_kubeconfig(written({}, {"token": "t"}), "file")
    assert (found.server, found.token, found.context, found.namespace) == ("https://10.0.0.1:6443", "t", "here", "team")


def test_another_context_can_be_named() -> None:
    assert parse_kubeconfig(written({}, {"token": "t"}), "file", "there").token == "another"


def test_data_goes_before_files_and_files_stand_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"from the file")
    beside = tmp_path / "config"
    beside.write_text(written({"certificate-authority": "ca.pem"}, {"tokenFile": "token"}))
    found = read_kubeconfig(beside)
    assert (found.authority, found.token_file) == (b"from the file", tmp_path / "token")
    data = b64encode(b"inline").decode()
    beside.write_text(written({"certificate-authority": "ca.pem", "certificate-authority-data": data}, {}))
    assert read_kubeconfig(beside).authority == b"inline"


def test_a_client_certificate_has_a_key() -> None:
    pem = b64encode(b"pem").decode()
    found = parse_kubeconfig(written({}, {"client-certificate-data": pem, "client-key-data": pem}), "file")
    assert (found.certificate, found.key) == (b"pem", b"pem")
    with pytest.raises(ConfigError, match=r"file:\d+: users\[0\]\.user: client-certificate and client-key go together"):
        parse_kubeconfig(written({}, {"client-certificate-data": pem}), "file")


def test_a_plugin_is_read_with_all_it_needs() -> None:
    version = "client.authentication.k8s.io/v1beta1"
    plugin = {
        "apiVersion": version,
        "command": "./get-token",
        "args": ["--for", "me"],
        "env": [{"name": "REGION", "value": "x"}],
        "installHint": "install it",
        "provideClusterInfo": True,
    }
    found = parse_kubeconfig(written({}, {"exec": plugin}), "file", folder=Path("/somewhere")).plugin
    assert found == ExecPlugin("/somewhere/get-token", ("--for", "me"), (("REGION", "x"),), version, "install it", True)


@pytest.mark.parametrize(
    ("cluster", "user", "more", "told"),
    [
        ({"server": "10.0.0.1"}, {}, {}, r"clusters\[0\]\.cluster\.server: expected http://HOST:PORT"),
        ({"certificate-authority-data": "%"}, {}, {}, r"certificate-authority-data: expected base64"),
        ({"certificate-authority": "gone.pem"}, {}, {}, r"gone\.pem does not exist"),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority-data": "cGVt"},
            {},
            {},
            "exclude each other",
        ),
        ({"insecure-skip-tls-verify": "no way"}, {}, {}, "expected true or false"),
        ({}, {"auth-provider": {"name": "gcp"}}, {}, "auth-provider is gone from Kubernetes"),
        ({}, {"exec": {"args": []}}, {}, r"exec\.command: expected the program"),
        ({}, {}, {"current-context": "hero"}, "unknown context 'hero', did you mean 'here'"),
        ({}, {}, {"current-context": ""}, "name one with --context"),
        ({}, {}, {"clusters": []}, "unknown cluster 'c'"),
        ({}, {}, {"users": "all"}, "users: expected a list"),
    ],
)
def test_what_is_wrong_is_named(cluster: Object, user: Object, more: Object, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_kubeconfig(written(cluster, user, **more), "file")


@pytest.mark.parametrize("text", ["", "---\n", "[", "- a\n"])
def test_what_is_no_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="file"):
        parse_kubeconfig(text, "file")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        read_kubeconfig(tmp_path / "none")


def test_whom_to_ask_as_is_shown_in_headers() -> None:
    extra = {"Scopes/x": ["view", "edit"], "reason": ["audit"]}
    user = {"token": "t", "as": "ann", "as-uid": "7", "as-groups": ["dev", "ops"], "as-user-extra": extra}
    assert parse_kubeconfig(written({}, user), "file").impersonation == (
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-scopes%2Fx", "view"),
        ("Impersonate-Extra-scopes%2Fx", "edit"),
        ("Impersonate-Extra-reason", "audit"),
    )


@pytest.mark.parametrize("more", [{"as-groups": ["dev"]}, {"as-uid": "7"}, {"as-user-extra": {"reason": ["audit"]}}])
def test_groups_without_a_name_to_ask_as_are_refused(more: Object) -> None:
    with pytest.raises(ConfigError, match=r"users\[0\]\.user\.as-[a-z-]+: it goes with a name to ask as"):
        parse_kubeconfig(written({}, {"token": "t", **more}), "file")


def test_whom_no_header_can_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"user\.as: expected ASCII that a header can hold"):
        parse_kubeconfig(written({}, {"as": "ann\r\nX: y"}), "file")

"""From process settings to the gateway's, and the kubeconfig of it."""

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.errors import ListenError
from config.errors import ConflictError
from config.settings import ProcessSettings
from pumice.runtime.kubeconfig import export_line, kubeconfig_of, write
from pumice.runtime.serving import gateway_settings


def settings(**given: Any) -> ProcessSettings:
    return ProcessSettings(**given)


def test_without_an_address_there_is_no_gateway() -> None:
    assert gateway_settings(settings()) is None


@pytest.mark.parametrize(("address", "url"), [("127.0.0.1:0", "http://127.0.0.1:"), (":0", "http://127.0.0.1:")])
def test_the_loopback_asks_for_no_token(address: str, url: str) -> None:
    found = gateway_settings(settings(http=address))
    assert found is not None
    with found.listener:
        assert found.url == f"{url}{found.listener.getsockname()[1]}"
        assert found.token == ""
        with pytest.raises(ListenError, match="cannot listen on"):
            gateway_settings(settings(http=f"127.0.0.1:{found.address[1]}"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"http": "0.0.0.0:0"}, "--http: 0.0.0.0 can be reached from other machines"),
        ({"http": "127.0.0.1:99999"}, "--http: expected a port of at most 65535"),
        ({"http": "127.0.0.1:0", "time": "virtual"}, "--http: clients live in real time"),
        ({"http": "127.0.0.1:0", "token": "a", "token_file": "b"}, "--token: give --token or --token-file"),
        ({"http": "127.0.0.1:0", "tls_key": "a"}, "--tls-cert: a certificate and its key go together"),
    ],
)
def test_what_does_not_go_together(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConflictError) as caught:
        gateway_settings(settings(**given))
    assert str(caught.value).startswith(told)


def test_everywhere_with_a_token_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    found = gateway_settings(settings(http="0.0.0.0:0", token_file=str(file)))
    assert found is not None
    with found.listener:
        assert (found.token, found.url.rpartition(":")[0]) == ("secret", "http://127.0.0.1")
    file.write_text("\n")
    with pytest.raises(ConflictError, match="expected a token"):
        gateway_settings(settings(http="0.0.0.0:0", token_file=str(file)))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        gateway_settings(settings(http="127.0.0.1:0", tls_cert=missing, tls_key=missing))


def test_a_kubeconfig_is_for_its_owner_alone(tmp_path: Path) -> None:
    certificate, path = tmp_path / "cert", tmp_path / "a folder.kubeconfig"
    certificate.write_text("pem")
    path.write_text("old")
    path.chmod(0o644)
    write(kubeconfig_of("https://127.0.0.1:1", "secret", certificate), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = yaml.safe_load(path.read_text())
    assert found["current-context"] == found["contexts"][0]["name"]
    assert found["clusters"][0]["cluster"] == {"server": "https://127.0.0.1:1", "certificate-authority-data": "cGVt"}
    assert found["users"][0]["user"] == {"token": "secret"}
    assert export_line(path) == f"export KUBECONFIG='{path}'"


@pytest.mark.parametrize("token", ["geheim-ü", "two words", "tab\there", "\x1b[31m", "línea\n"])
def test_a_token_that_cannot_be_sent_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    with pytest.raises(ConflictError, match="--token: expected a token of printable ASCII"):
        gateway_settings(settings(http="127.0.0.1:0", token=token))
    monkeypatch.setenv("PUMICE_TOKEN", token)
    with pytest.raises(ConflictError, match="PUMICE_TOKEN: expected a token of printable ASCII"):
        gateway_settings(settings(http="127.0.0.1:0", token=token))
    file = tmp_path / "token"
    file.write_text(f"x{token}x")
    with pytest.raises(ConflictError, match="--token-file: expected a token of printable ASCII"):
        gateway_settings(settings(http="127.0.0.1:0", token_file=str(file)))

"""From process settings to the gateway's, and the kubeconfig of it."""

import datetime as dt
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pumice.actors.errors import ListenError
from pumice.config.errors import ConfigError, ConflictError
from pumice.config.settings import ProcessSettings
from pumice.runtime.serving import export_line, gateway_settings, kubeconfig_of, write


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


@pytest.mark.parametrize("option", ["token", "token_file", "tls_cert", "tls_key"])
def test_an_option_of_http_without_it_is_refused_unless_the_environment_has_it(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = "--" + option.replace("_", "-")
    with pytest.raises(ConflictError, match=f"{flag}: nothing is served without --http"):
        gateway_settings(settings(**{option: "x"}))
    monkeypatch.setenv(f"PUMICE_{option.upper()}", "x")
    assert gateway_settings(settings(**{option: "x"})) is None


def made(folder: Path, name: str, password: bytes | None = None) -> tuple[Path, Path]:
    """A certificate of this machine and its key."""
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(private.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + dt.timedelta(days=9999))
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    certificate.write_bytes(builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    hidden = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, hidden))
    return certificate, key


def test_a_certificate_and_its_key_are_taken(tmp_path: Path) -> None:
    certificate, key = made(tmp_path, "a")
    found = gateway_settings(settings(http="127.0.0.1:0", tls_cert=str(certificate), tls_key=str(key)))
    assert found is not None
    with found.listener:
        assert found.url.startswith("https://")


def test_a_pair_that_cannot_be_used_is_refused_by_file(tmp_path: Path) -> None:
    certificate, key = made(tmp_path, "a")
    other, _ = made(tmp_path, "b")
    _, hidden = made(tmp_path, "c", b"secret")
    text, der, broken, cut = (tmp_path / name for name in ("text", "der", "broken", "cut"))
    text.write_text("hello\n")
    der.write_bytes(ssl.PEM_cert_to_DER_cert(certificate.read_text()))
    broken.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    cut.write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    for files, wrong, why in (
        ((other, key), key, f"--tls-key: is not the key of the certificate in {other}"),
        ((key, certificate), key, "--tls-cert: expected a certificate in PEM form"),
        ((certificate, certificate), certificate, "--tls-key: expected a private key in PEM form"),
        ((text, key), text, "found nothing in PEM form"),
        ((der, key), der, "found nothing in PEM form"),
        ((certificate, text), text, "--tls-key: expected a private key"),
        ((broken, key), broken, "cannot be read"),
        ((certificate, cut), cut, "holds no private key that can be read"),
        ((certificate, hidden), hidden, "has a password"),
    ):
        given = {"tls_cert": str(files[0]), "tls_key": str(files[1])}
        with pytest.raises(ConfigError) as caught:
            gateway_settings(settings(http="127.0.0.1:0", **given))
        assert str(caught.value).startswith(str(wrong))
        assert why in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_kubeconfig_for_plain_http_checks_no_certificate() -> None:
    """As @kubernetes/client-node demands; with one, client-go would refuse both together."""
    cluster = kubeconfig_of("http://127.0.0.1:1")["clusters"][0]["cluster"]
    assert cluster == {"server": "http://127.0.0.1:1", "insecure-skip-tls-verify": True}
    assert "insecure-skip-tls-verify" not in kubeconfig_of("https://127.0.0.1:1")["clusters"][0]["cluster"]

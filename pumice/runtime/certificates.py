# SPDX-License-Identifier: Apache-2.0
"""A certificate and its key, tried before anything is served: otherwise the gateway would crash of them repeatedly."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from pumice.config.errors import ConfigError
from pumice.config.input_file import read_bytes

BEGINS: Final = "-----BEGIN"
MISMATCH: Final = "KEY_VALUES_MISMATCH"


class _HasPasswordError(Exception):
    """OpenSSL has asked for the password of a key. Without this error it would ask the terminal."""


def demand_pair(certificate: Path, key: Path) -> None:
    """Check the pair. Raises ConfigError, which names the file, and OSError for one that cannot be read."""
    # Before OpenSSL has its turn: its errors do not say which of the two files is at fault.
    _demand_pem(certificate, "CERTIFICATE", "--tls-cert", "a certificate")
    _demand_pem(key, "PRIVATE KEY", "--tls-key", "a private key")
    _demand_readable(certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, _no_password)
    except _HasPasswordError as error:
        raise _wrong(key, "--tls-key", "has a password; take one without (openssl pkey -in FILE -out NEW)") from error
    except ssl.SSLError as error:
        if error.reason == MISMATCH:
            why = f"is not the key of the certificate in {certificate}; name the two files that were made together"
            raise _wrong(key, "--tls-key", why) from error
        if (weak := _why_not_allowed(error)) is not None:
            raise _wrong(certificate, "--tls-cert", weak) from error
        raise _wrong(key, "--tls-key", "holds no private key that can be read (PEM)") from error


def demand_authority(certificate: Path) -> None:
    """Check who signs clients' certificates. Raises ConfigError, OSError."""
    _demand_pem(certificate, "CERTIFICATE", "--client-ca-file", "a certificate")
    _demand_readable(certificate, "--client-ca-file")


def _demand_pem(file: Path, what: str, path: str, sort: str) -> None:
    # Decodes any bytes: a file in DER gets the message below and not one about UTF-8.
    text = read_bytes(file).decode("latin-1")
    if any(line.startswith(BEGINS) and line.rstrip().endswith(f"{what}-----") for line in text.splitlines()):
        return
    found = next((line.strip("- \r") for line in text.splitlines() if line.startswith(BEGINS)), "")
    held = f"found {found.removeprefix('BEGIN ')!r} there" if found else "found nothing in PEM form there"
    raise _wrong(file, path, f"expected {sort} in PEM form (-----BEGIN {what}-----), {held}")


def _demand_readable(certificate: Path, path: str = "--tls-cert") -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cafile=certificate)
    except ssl.SSLError as error:
        raise _wrong(certificate, path, "holds a certificate that cannot be read; make it again") from error


def _why_not_allowed(error: ssl.SSLError) -> str | None:
    """Return why OpenSSL's security level refuses a certificate that it can read."""
    reasons = {
        "EE_KEY_TOO_SMALL": "holds a key that is too small",
        "CA_MD_TOO_WEAK": "is signed with a digest that is too weak",
        "CA_KEY_TOO_SMALL": "is signed with a key that is too small",
    }
    found = reasons.get(error.reason or "")
    return None if found is None else f"{found}; make it again"


def _no_password() -> str:
    raise _HasPasswordError


def _wrong(file: Path, path: str, why: str) -> ConfigError:
    return ConfigError(why, source=str(file), path=path)

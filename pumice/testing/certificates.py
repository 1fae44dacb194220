# SPDX-License-Identifier: Apache-2.0
"""The certificate of a cluster that serves HTTPS, made anew for each; only its kubeconfigs trust it.

cryptography is an extra: most tests need no TLS.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pumice.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

LASTS: Final = dt.timedelta(days=7)
HOST: Final = "127.0.0.1"


def made_certificate(folder: Path) -> Path:
    """Return a file with a certificate for this machine, which is its own authority, and its key. Raises InputError
    without cryptography.
    """
    try:
        x509: Any = import_module("cryptography.x509")
        hashes: Any = import_module("cryptography.hazmat.primitives.hashes")
        forms: Any = import_module("cryptography.hazmat.primitives.serialization")
        ec: Any = import_module("cryptography.hazmat.primitives.asymmetric.ec")
    except ImportError as error:
        raise InputError("needs cryptography: pip install 'pumice[tls]'", path="tls") from error
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pumice")])
    names = [x509.IPAddress(ipaddress.ip_address(HOST)), x509.DNSName("localhost")]
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "tls.pem"
    file.touch(mode=0o600)
    written = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    file.write_bytes(certificate.public_bytes(forms.Encoding.PEM) + written)
    return file

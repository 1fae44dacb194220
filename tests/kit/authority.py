"""Who signs certificates, of servers on the loopback and of their clients."""

import datetime as dt
import ipaddress
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NAME: Final = x509.NameOID.COMMON_NAME
GROUP: Final = x509.NameOID.ORGANIZATION_NAME


class Authority:
    """Signs certificates. `file`: its own one, by itself, and the key."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NAME, name)])
        self.file = self.signed(name, self._key, is_authority=True)

    def signed(
        self, name: str, key: ec.EllipticCurvePrivateKey | None = None, *groups: str, is_authority: bool = False
    ) -> Path:
        """Return a file with the certificate, then its key."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NAME, name), *(x509.NameAttribute(GROUP, group) for group in groups)]
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder().subject_name(x509.Name(parts)).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=9))
        builder = builder.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        local = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        made = builder.add_extension(local, critical=False).sign(self._key, hashes.SHA256())
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file = self._folder / f"{name}.pem"
        file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + key.private_bytes(*form))
        return file

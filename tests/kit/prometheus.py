"""A small Prometheus on a real socket: it answers instant queries as the real one does, GET only, on a thread."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "127.0.0.1"


@dataclass
class Prometheus:
    """`vectors`: query -> instance -> value. `failures`: (status, type, body) of the next answers, in order.

    `silence_s`: how long it thinks before the first answer. `prefix`: the path it is served under. `asked`: path and
    Authorization header of each request so far.
    """

    vectors: Mapping[str, Mapping[str, float | str]]
    failures: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    silence_s: float = 0.0
    prefix: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    address: str = ""

    def answer(self, target: str, authorization: str) -> tuple[int, str, str]:
        """(status, content type, body) of one request."""
        parts = urlsplit(target)
        self.asked.append((parts.path, authorization))
        if self.silence_s:
            pause, self.silence_s = self.silence_s, 0.0
            time.sleep(pause)
        if self.failures:
            return self.failures.pop(0)
        [query] = parse_qs(parts.query).get("query", [""])
        if parts.path != f"{self.prefix}/api/v1/query" or query not in self.vectors:
            return refusal(400, f"unknown query {query!r} at {parts.path}")
        now = time.time()
        samples = [{"metric": {"instance": i}, "value": [now, str(v)]} for i, v in self.vectors[query].items()]
        body = {"status": "success", "data": {"resultType": "vector", "result": samples}, "warnings": ["a test"]}
        return 200, "application/json", json.dumps(body)


def refusal(status: int, text: str) -> tuple[int, str, str]:
    """An answer in Prometheus' form for what went wrong."""
    return status, "application/json", json.dumps({"status": "error", "errorType": "bad_data", "error": text})


@contextmanager
def serving(prometheus: Prometheus, certificate: Path | None = None) -> Generator[Prometheus]:
    """It is at `prometheus.address` while the block runs; with a certificate file (key within) it speaks TLS."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = prometheus.answer(self.path, self.headers.get("Authorization") or "")
            content = body.encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                pass  # nobody waits for the answer any more

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = QuietServer((HOST, 0), Handler)
    if certificate is not None:
        server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.tls.load_cert_chain(certificate)
    scheme = "http" if certificate is None else "https"
    prometheus.address = f"{scheme}://{HOST}:{server.server_address[1]}{prometheus.prefix}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield prometheus
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class QuietServer(ThreadingHTTPServer):
    """Clients that hang up are no news."""

    daemon_threads = False  # whoever still answers is waited for
    tls: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, object]:
        """The handshake is left to the thread that answers: a client may break it off."""
        connection, client = super().get_request()
        if self.tls is not None:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, client

    def handle_error(self, request: object, client_address: object) -> None:
        """A handshake that the client broke off."""


def self_signed(folder: Path) -> Path:
    """A file with a fresh key and a certificate for this host that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file = folder / "prometheus.pem"
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return file

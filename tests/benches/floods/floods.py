"""The floods. Each runs in a process of its own, so that its work delays no probe. It says "open" on its output, and
holds what it has opened until its input ends.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Final
from urllib.request import Request, urlopen

import h2.config
import h2.connection

HOST: Final = "127.0.0.1"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
WATCHES: Final = 2_000
WRITES: Final = 60
WRITTEN_BYTES: Final = 40_000
LISTS: Final = 40
LARGE: Final = "large"
"""Label of the objects of the lists."""
LARGE_OBJECTS: Final = 20
LARGE_BYTES: Final = 500_000
RESETS: Final = 4_000
MANAGERS: Final = 200
FIELDS: Final = 1_000


def send(port: int, method: str, path: str, body: object = None, form: str = "application/json") -> int:
    """Send one request and read its answer; return the status."""
    data = None if body is None else json.dumps(body).encode()
    asked = Request(f"http://{HOST}:{port}{path}", data, {"content-type": form}, method=method)
    try:
        with urlopen(asked, timeout=60) as answer:
            answer.read()
            return int(answer.status)
    except OSError as error:
        return int(getattr(error, "code", 0))


def config_map(name: str, size: int, **labels: str) -> dict[str, object]:
    """Return a ConfigMap of about so many bytes."""
    return {"metadata": {"name": name, "labels": labels}, "data": {"x": "x" * size}}


@contextmanager
def unread(port: int, path: str) -> Generator[socket.socket]:
    """Yield a connection whose client asks and reads nothing."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((HOST, port))
        client.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        yield client


def watches(port: int, hold: Callable[[], None]) -> None:
    """2,000 watches that are not read, and 60 writes of 40 KB."""
    with ExitStack() as open_:
        for _ in range(WATCHES):
            open_.enter_context(unread(port, f"{MAPS}?watch=1"))
        for number in range(WRITES):
            send(port, "POST", MAPS, config_map(f"written-{number}", WRITTEN_BYTES))
        hold()
    for number in range(WRITES):
        send(port, "DELETE", f"{MAPS}/written-{number}")


def lists(port: int, hold: Callable[[], None]) -> None:
    """40 lists of 10 MB that are not read."""
    with ExitStack() as open_:
        for _ in range(LISTS):
            open_.enter_context(unread(port, f"{MAPS}?labelSelector=app={LARGE}"))
        hold()


def resets(port: int, hold: Callable[[], None]) -> None:
    """Such lists over HTTP/2, each reset as soon as it is asked for (CVE-2023-44487)."""
    with socket.socket() as client:
        client.connect((HOST, port))
        client.settimeout(1.0)
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        connection.initiate_connection()
        asked = [
            (":method", "GET"),
            (":path", f"{MAPS}?labelSelector=app={LARGE}"),
            (":scheme", "http"),
            (":authority", "localhost"),
        ]
        try:
            for number in range(RESETS):
                stream = 2 * number + 1
                connection.send_headers(stream, asked, end_stream=True)
                connection.reset_stream(stream)
                client.sendall(connection.data_to_send())
        except OSError:
            pass  # the server has closed the connection
        hold()


def managers(port: int, hold: Callable[[], None]) -> None:
    """200 managers that apply 1,000 fields each to one object."""
    for number in range(MANAGERS):
        data = {f"m{number}-{field}": "x" for field in range(FIELDS)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "managed"}, "data": data}
        path = f"{MAPS}/managed?fieldManager=m{number}&force=true"
        send(port, "PATCH", path, body, "application/apply-patch+yaml")
    hold()
    send(port, "DELETE", f"{MAPS}/managed")


def requests(port: int, hold: Callable[[], None]) -> None:
    """2,000 connections that ask for a short list at the same time."""
    with ExitStack() as open_:
        for _ in range(WATCHES):
            open_.enter_context(unread(port, f"{MAPS}?limit=1"))
        hold()


FLOODS: Final = {each.__name__: each for each in (watches, lists, resets, managers, requests)}


def prepare(port: int) -> None:
    """Make the objects of the lists."""
    for number in range(LARGE_OBJECTS):
        send(port, "POST", MAPS, config_map(f"large-{number}", LARGE_BYTES, app=LARGE))


def probe(port: int) -> None:
    """Ask for /livez on new connections until the input ends; say how long the slowest took, in seconds."""
    slowest, count = 0.0, 0
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        began = time.perf_counter()
        status = send(port, "GET", "/livez")
        slowest, count = max(slowest, time.perf_counter() - began if status == 200 else 60.0), count + 1
    sys.stdout.write(json.dumps({"slowest_s": slowest, "probes": count}))


def hold() -> None:
    """Say that all is open, and wait for the parent."""
    sys.stdout.write("open\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    what, at = sys.argv[1], int(sys.argv[2])
    if what == "probe":
        probe(at)
    else:
        FLOODS[what](at, hold)

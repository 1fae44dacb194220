"""A wire that breaks: a TCP proxy that cuts connections after a number of bytes drawn from a seed."""

import random
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress


class Cutter:
    """Listens on `port` and passes everything on until a connection's time has come; `cuts` counts them."""

    def __init__(self, upstream: int, seed: int, least: int, most: int) -> None:
        self.upstream = upstream
        self.cuts = 0
        self._random = random.Random(seed)
        self._bounds = least, most
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening and cut what is left."""
        self._listener.close()
        for one in list(self._open):
            self._cut(one)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.upstream))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            budget = self._random.randint(*self._bounds)
            threading.Thread(target=self._pass, args=(near, far, 1 << 60), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, budget), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, budget: int) -> None:
        try:
            while data := source.recv(4096):
                target.sendall(data[:budget])
                budget -= len(data)
                if budget <= 0:
                    self.cuts += 1
                    break
        except OSError:
            pass
        self._cut(source)
        self._cut(target)

    def _cut(self, one: socket.socket) -> None:
        self._open.discard(one)
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@contextmanager
def cutting(upstream: int, seed: int, least: int = 2_000, most: int = 40_000) -> Generator[Cutter]:
    """A cutter in front of a server's port."""
    cutter = Cutter(upstream, seed, least, most)
    try:
        yield cutter
    finally:
        cutter.close()

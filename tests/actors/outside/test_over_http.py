"""Asking over HTTP: an extender that answers, refuses, dawdles and talks nonsense."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pumice.actors.outside.over_http import LATE, MOST_BYTES, ExtenderRequest, ask_now, over_http, supposing
from pumice.core.messages.questions import OutsideAnswer
from pumice.core.outside import SUPPOSED


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # who has heard enough hangs up
            self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Content-Type"] == "application/json"
        if self.path == "/hangs":
            return
        if self.path == "/late":
            time.sleep(0.3)
        self.send_response(500 if self.path == "/fails" else 200)
        self.end_headers()
        self.wfile.write(b"x" * (MOST_BYTES + 9) if self.path == "/endless" else body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 64


@pytest.fixture
def server() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()


@pytest.mark.anyio
async def test_many_questions_are_answered_in_their_order(server: str) -> None:
    asked = [ExtenderRequest(f"{server}/echo", b"%d" % number, 5.0) for number in range(40)]
    assert await over_http(asked) == [OutsideAnswer(200, b"%d" % number) for number in range(40)]
    assert await over_http([]) == []


@pytest.mark.anyio
async def test_what_goes_wrong_is_an_answer(server: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        port = nobody.rsplit(":", 1)[1]
        urls = [f"{server}/fails", f"{server}/late", f"{server}/hangs", f"{nobody}/x", "/predicate", "ftp://e/x"]
        answers = await over_http([ExtenderRequest(url, b"{}", 0.1 if "late" in url else 5.0) for url in urls])
    failed, late, hung, refused, unnamed, other = answers
    assert failed == OutsideAnswer(500)
    assert late.error == f'Post "{server}/late": {LATE}'
    assert hung.error == f'Post "{server}/hangs": EOF'
    assert refused.error == f'Post "{nobody}/x": dial tcp 127.0.0.1:{port}: connect: connection refused'
    assert unnamed.error == 'Post "/predicate": unsupported protocol scheme ""'
    assert other.error == 'Post "ftp://e/x": unsupported protocol scheme "ftp"'


def test_where_nothing_else_goes_on_and_no_further_than_the_limit(server: str) -> None:
    (answer,) = ask_now([ExtenderRequest(f"{server}/endless", b"{}", 5.0)])
    assert len(answer.body) == MOST_BYTES


@pytest.mark.anyio
async def test_a_future_asks_nobody() -> None:
    assert await supposing([ExtenderRequest("http://e", b"{}", 1.0)]) == [SUPPOSED]

"""An extender: a process of one's own that Volcano's plugin `extender`, and so Pumice, asks over HTTP.

It keeps pods off nodes with the label `maintenance: "true"`, and prefers nodes in the zone that the pod's annotation
`example.com/zone` names. Run it, then a scheduler with the configuration beside it:

    python extender/server.py &
    pumice run -f job.yaml -f queues/ --config extender/scheduler.conf --until idle
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

UNSCHEDULABLE = 2  # Volcano's code: evictions could help; 3 would say that they cannot


def labels_of(node: dict[str, Any]) -> dict[str, str]:
    """Of a NodeInfo."""
    return node["Node"]["metadata"].get("labels") or {}


def predicate(asked: dict[str, Any]) -> dict[str, Any]:
    """May the task go to the node? A `status` that is not empty says why not."""
    labels = labels_of(asked["node"])
    if labels.get("maintenance") == "true":
        return {"status": "node(s) were in maintenance", "code": UNSCHEDULABLE}
    return {"status": ""}


def prioritize(asked: dict[str, Any]) -> dict[str, Any]:
    """A score for each node; it is added to what the plugins say."""
    annotations: dict[str, str] = asked["task"]["Pod"]["metadata"].get("annotations") or {}
    zone = annotations.get("example.com/zone")
    nodes = {node["Name"]: labels_of(node) for node in asked["nodes"]}
    return {"nodeScore": {name: 100.0 * (labels.get("zone") == zone) for name, labels in nodes.items()}}


VERBS = {"/predicate": predicate, "/prioritize": prioritize}


class Extender(BaseHTTPRequestHandler):
    """POST /<verb> with JSON."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a question."""
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        verb = VERBS.get(self.path)
        answer = b"" if verb is None else json.dumps(verb(json.loads(asked))).encode()
        self.send_response(404 if verb is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Asks about some nodes, in one batch."""

    request_queue_size = 64


def serve(port: int) -> Server:
    """On the loopback; port 0 takes a free one."""
    return Server(("127.0.0.1", port), Extender)


if __name__ == "__main__":
    serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8713).serve_forever()

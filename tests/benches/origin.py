"""The cluster of `bench mirror`, in a process of its own: `-m tests.benches.origin NODES PODS GANG COUNT`.

An API server that only lists and watches. It says its port, waits for a line on stdin, makes COUNT changes at RATE, and
says one JSON object: the `seconds` that took, and the `name` and moment (`at`) of the last one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import parse_qs, urlsplit

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream

from pumice.core.objects.metadata import Object
from pumice.proof.bench import cluster

RATE: Final = 500
"""Changes a second."""
AT: Final = "bench/at"
"""The annotation that says when a change was made, in seconds since the epoch."""
TICK_S: Final = 0.01
LINE: Final = b"\r\n"


@dataclass(frozen=True)
class PlayedSize:
    """How large the cluster is, and how many changes come."""

    nodes: int
    pods: int
    gang: int
    count: int

    @property
    def jobs(self) -> int:
        """Gangs that run."""
        return cluster.jobs_of(self.pods, self.gang)

    def objects(self) -> dict[str, list[Object]]:
        """By plural, but for the pods."""
        groups = [cluster.pod_group(job, self.gang, "Running") for job in range(self.jobs)]
        return {"nodes": [*cluster.nodes(self.nodes)], "queues": [*cluster.queues()], "podgroups": groups}

    def running(self, number: int) -> Object:
        """The pod of that number among those that run from the beginning."""
        job, index = divmod(number, self.gang)
        return full(cluster.pod(job, index, f"n{number % self.nodes:05d}"))

    def changes(self) -> Iterator[tuple[str, Object]]:
        """Every second a quarter of each: pods of a second ago are bound, of two seconds ago run, of three seconds ago
        are gone, and new ones come; in place of what is not there yet, one that runs says something.
        """
        each = RATE // 4
        for number in range(self.count):
            second, within = divmod(number, RATE)
            quarter, place = divmod(within, each)
            wave = second - (quarter + 1) % 4
            if wave < 0:
                yield "MODIFIED", self.running(number % (self.jobs * self.gang))
                continue
            job, index = (wave * each + place) % self.jobs, self.gang + wave * each + place
            node = f"n{index % self.nodes:05d}"
            pod = cluster.pod(job, index, "" if quarter == 3 else node)
            if quarter == 0:
                pod["status"] = {"phase": "Pending"}
            yield ("MODIFIED", "MODIFIED", "DELETED", "ADDED")[quarter], full(pod)


def full(pod: Object) -> Object:
    """The pod made as large as pods are: who manages which field, an environment, volumes, statuses."""
    meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
    meta["managedFields"] = [{"manager": "kubelet", "fieldsV1": {f"f:{number}": {} for number in range(40)}}]
    meta["labels"] = {f"example.com/label-{number}": f"value-{number}" for number in range(6)}
    for container in spec["containers"]:
        container["env"] = [{"name": f"NAME_{number}", "value": "v" * 40} for number in range(12)]
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}, {"name": "token", "mountPath": "/var/run"}]
    spec["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "token", "emptyDir": {}}]
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    status["conditions"] = [{"type": each, "status": "True"} for each in conditions if status["phase"] == "Running"]
    return pod


class PlayedCluster:
    """Serves it."""

    def __init__(self, played: PlayedSize) -> None:
        self._played = played
        self._objects = played.objects()
        self._begin = anyio.Event()

    async def serve(self) -> None:
        """Until stdin ends."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, self._connection)
            _say(str(listener.extra(SocketAttribute.local_port)))  # nosec B610 - a socket, no database
            await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
            self._begin.set()
            await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
            tasks.cancel_scope.cancel()

    async def _connection(self, stream: SocketStream) -> None:
        async with stream:
            try:
                async for path, query in _requests(stream):
                    if "watch" in query:
                        await self._watch(stream, path)
                    await _answer(stream, self._page(path, query))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the mirror has gone

    def _page(self, path: str, query: dict[str, str]) -> Object:
        plural, first, limit = path.rsplit("/", 1)[1], int(query.get("continue", 0)), int(query.get("limit", 1 << 40))
        whole = self._played.jobs * self._played.gang if path == "/api/v1/pods" else len(self._objects.get(plural, ()))
        last = min(first + limit, whole)
        if path == "/api/v1/pods":
            items = [self._played.running(number) for number in range(first, last)]
        else:
            items = self._objects.get(plural, [])[first:last]
        meta = {"resourceVersion": "1", "continue": str(last) if last < whole else ""}
        return {"metadata": meta, "items": [_versioned(each, 1) for each in items]}

    async def _watch(self, stream: SocketStream, path: str) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        if path != "/api/v1/pods":
            await anyio.sleep_forever()
        await self._begin.wait()
        began, told, last = time.perf_counter(), 0, {"name": "", "at": 0.0}
        changes = self._played.changes()
        while told < self._played.count:
            due = min(int((time.perf_counter() - began) * RATE) + 1, self._played.count)
            lines = list[bytes]()
            for type_, obj in (next(changes) for _ in range(due - told)):
                told, at = told + 1, time.time()
                obj["metadata"].setdefault("annotations", {})[AT] = repr(at)
                lines.append(msgspec.json.encode({"type": type_, "object": _versioned(obj, 1 + told)}) + b"\n")
                last = {"name": obj["metadata"]["name"], "at": at}
            if lines:
                chunk = b"".join(lines)
                await stream.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await anyio.sleep(TICK_S)
        seconds = time.perf_counter() - began
        _say(msgspec.json.encode({"seconds": seconds, **last}).decode())
        await anyio.sleep_forever()


async def _requests(stream: SocketStream) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """Path and query of each request on a connection; none has a body."""
    rest = b""
    while True:
        while (LINE * 2) not in rest:
            try:
                rest += await stream.receive()
            except anyio.EndOfStream:
                return
        head, _, rest = rest.partition(LINE * 2)
        target = urlsplit(head.split(b" ", 2)[1].decode())
        yield target.path, {name: values[0] for name, values in parse_qs(target.query).items()}


async def _answer(stream: SocketStream, body: Object) -> None:
    content = msgspec.json.encode(body)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content)
    await stream.send(head + content)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _versioned(obj: Object, revision: int) -> Object:
    obj["metadata"]["resourceVersion"] = str(revision)
    return obj


async def _served(played: PlayedSize) -> None:
    await PlayedCluster(played).serve()


def main(arguments: list[str]) -> None:
    """Nodes, pods, gang, how many changes."""
    anyio.run(partial(_served, PlayedSize(*map(int, arguments))))


if __name__ == "__main__":
    main(sys.argv[1:])

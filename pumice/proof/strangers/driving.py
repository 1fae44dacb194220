# SPDX-License-Identifier: Apache-2.0
"""The driver of a storm for strangers: it brings about over HTTP what the script says."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import httpx
import msgspec

from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.driver import NAMESPACE, NEW, objects_of, pods
from pumice.proof.storm.script.events import Event
from pumice.proof.strangers.history import Acknowledged
from pumice.proof.strangers.script import StrangerScript
from pumice.proof.strangers.server import ServerFailedError

PATHS: Final = {
    "Node": "/api/v1/nodes",
    "Queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Pod": f"/api/v1/namespaces/{NAMESPACE}/pods",
    "PodGroup": f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups",
    "Job": f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs",
    "PodDisruptionBudget": f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
}
FAULTS: Final = "/apis/pumice.dev/v1/faults"
MERGE: Final = {"content-type": "application/merge-patch+json"}
TRIES: Final = 100
AGAIN_S: Final = 0.1
"""A server that restarts is away for a second or two."""
OF_OTHERS: Final = "scheduler-of-others"
GONE_S: Final = 10.0
"""For a pod that was deleted, until another one may take its name."""


class ApiCall(NamedTuple):
    """A request to the API."""

    method: str
    path: str
    body: Object | None = None


class ApiDriver:
    """Carries out events, and remembers what was acknowledged."""

    def __init__(self, script: StrangerScript, client: httpx.Client) -> None:
        self.acknowledged: list[Acknowledged] = []
        self._client = client
        self._known = {event.target: event for event in script.events if event.what in NEW}
        self._sizes = {name: int(event.details.get("pods", 0)) for name, event in self._known.items()}

    def happen(self, event: Event) -> None:
        """Carry out one event. What is refused stays undone: its object may be gone."""
        for call in self._calls(event):
            self.ask(call)

    def ask(self, call: ApiCall) -> Any:
        """Send a request, again while the server is away, and return the answer; None for a refusal."""
        headers = MERGE if call.method == "PATCH" else {"content-type": "application/json"}
        content = None if call.body is None else msgspec.json.encode(call.body)
        for _ in range(TRIES):
            try:
                answer = self._client.request(call.method, call.path, content=content, headers=headers)
            except httpx.TransportError:
                time.sleep(AGAIN_S)
                continue
            if answer.is_error:
                return None
            found: Any = answer.json()
            if call.method != "GET":
                self._note(found)
            return found
        raise ServerFailedError(f"{call.method} {call.path}: the served cluster does not answer")

    def pods(self) -> list[Object]:
        """Return all pods."""
        found = self.ask(ApiCall("GET", PATHS["Pod"]))
        items: list[Object] = found["items"] if found is not None else []
        return items

    def nodes(self) -> list[Object]:
        """Return all nodes."""
        found = self.ask(ApiCall("GET", PATHS["Node"]))
        items: list[Object] = found["items"] if found is not None else []
        return items

    def revision(self) -> int:
        """Return the newest revision."""
        found = self.ask(ApiCall("GET", f"{PATHS['Node']}?limit=1"))
        return int(section(found, "metadata")["resourceVersion"]) if found is not None else 0

    def _note(self, answer: Object) -> None:
        meta = section(answer, "metadata")
        if answer.get("kind") in PATHS and meta.get("resourceVersion") and "deletionTimestamp" not in meta:
            namespace, revision = meta.get("namespace") or "", int(meta["resourceVersion"])
            self.acknowledged.append(Acknowledged(answer["kind"], namespace, meta["name"], revision))

    # --- events

    def _calls(self, event: Event) -> Iterator[ApiCall]:
        name = event.target
        match event.what:
            case "cordon":
                yield _patched("Node", name, {"spec": {"unschedulable": True}})
            case "remove-node":
                yield from self._removed(name)
            case "replace-node":
                yield from self._replaced(name)
            case "shrink-node":
                yield _patched("Node", name, {"status": {"allocatable": {"cpu": "2"}}}, "/status")
            case "restore-node":
                yield from self._restored(name)
            case "drain":
                yield from self._drained(name)
            case "delete-pod" | "fail-pod" | "replace-pod":
                yield from self._to_pod(event)
            case "delete-job":
                yield from self._deleted_job(name)
            case "scale-up":
                yield from self._scaled_up(event)
            case "scale-down":
                yield from self._scaled_down(event)
            case _:
                yield from (ApiCall("POST", PATHS[obj["kind"]], obj) for obj in objects_of(event))

    def _removed(self, name: str) -> Iterator[ApiCall]:
        """Remove a node and immediately its pods, as Kubernetes' garbage collector does later."""
        yield ApiCall("DELETE", f"{PATHS['Node']}/{name}")
        yield from (ApiCall("DELETE", f"{PATHS['Pod']}/{own}?gracePeriodSeconds=0") for own in self._on(name))

    def _replaced(self, name: str) -> Iterator[ApiCall]:
        """Remove a node and make it anew, as a kubelet does that registers again; its pods stay."""
        yield ApiCall("DELETE", f"{PATHS['Node']}/{name}")
        yield from self._restored(name)

    def _restored(self, name: str) -> Iterator[ApiCall]:
        if name in self._known:
            node = objects_of(self._known[name])[0]
            yield ApiCall("POST", PATHS["Node"], node)
            yield _patched("Node", name, {"spec": {"unschedulable": None}})
            yield _patched("Node", name, {"status": node["status"]}, "/status")

    def _drained(self, name: str) -> Iterator[ApiCall]:
        yield _patched("Node", name, {"spec": {"unschedulable": True}})
        for own in self._on(name):
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": own, "namespace": NAMESPACE}}
            yield ApiCall("POST", f"{PATHS['Pod']}/{own}/eviction", body)

    def _on(self, node: str) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods() if section(pod, "spec").get("nodeName") == node]

    def _members(self, job: str) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self.pods() if pod["metadata"]["name"].startswith(f"{job}-"))

    def _to_pod(self, event: Event) -> Iterator[ApiCall]:
        mine = self._members(event.target)
        if not mine:
            return
        name = mine[int(event.amount) % len(mine)]
        if event.what == "fail-pod":
            yield _patched("Pod", name, {"status": {"phase": "Failed"}}, "/status")
            return
        yield ApiCall("DELETE", f"{PATHS['Pod']}/{name}?gracePeriodSeconds=0")
        if event.what == "replace-pod" and event.target in self._known:
            yield from self._another(event.target, name, theirs=int(event.amount) % 2 == 1)

    def _another(self, job: str, name: str, *, theirs: bool) -> Iterator[ApiCall]:
        """Make a pod of the same name that asks for more, or is another scheduler's: a subject that still means the one
        before binds the wrong one.
        """
        deadline = time.monotonic() + GONE_S
        while self.ask(ApiCall("GET", f"{PATHS['Pod']}/{name}")) is not None and time.monotonic() < deadline:
            time.sleep(AGAIN_S / 5)
        number = name.rpartition("-")[2]
        details = {**self._known[job].details, **({"scheduler": OF_OTHERS} if theirs else {"cpu": "4"})}
        if number.isdigit() and self._known[job].what != "vcjob":  # its controller makes the next one
            (pod,) = pods(job, details, range(int(number), int(number) + 1))
            yield ApiCall("POST", PATHS["Pod"], pod)

    def _deleted_job(self, name: str) -> Iterator[ApiCall]:
        if name in self._known and self._known[name].what == "vcjob":
            yield ApiCall("DELETE", f"{PATHS['Job']}/{name}")
            return
        yield ApiCall("DELETE", f"{PATHS['PodGroup']}/{name}")
        yield from (ApiCall("DELETE", f"{PATHS['Pod']}/{each}") for each in self._members(name))

    def _scaled_up(self, event: Event) -> Iterator[ApiCall]:
        """Have the gang ask for more members, then make them."""
        job, more = event.target, int(event.amount)
        if job not in self._known:
            return
        details, now = self._known[job].details, self._sizes[job]
        wanted = int(details.get("min") or details["pods"]) + now - int(details["pods"]) + more
        self._sizes[job] = now + more
        yield _patched("PodGroup", job, {"spec": {"minMember": wanted}})
        yield from (ApiCall("POST", PATHS["Pod"], pod) for pod in pods(job, details, range(now, now + more)))

    def _scaled_down(self, event: Event) -> Iterator[ApiCall]:
        """Have the gang need fewer members, then delete its last ones."""
        job = event.target
        members = self._members(job)
        fewer = min(int(event.amount), len(members) - 1)
        if fewer < 1:
            return
        yield _patched("PodGroup", job, {"spec": {"minMember": len(members) - fewer}})
        yield from (ApiCall("DELETE", f"{PATHS['Pod']}/{name}") for name in members[-fewer:])


def _patched(kind: str, name: str, patch: Object, subresource: str = "") -> ApiCall:
    return ApiCall("PATCH", f"{PATHS[kind]}/{name}{subresource}", patch)


def moments(events: Sequence[Event]) -> list[tuple[float, list[Event]]]:
    """Return the events by their time, in the order of times."""
    found: dict[float, list[Event]] = {}
    for event in sorted(events, key=lambda each: each.at):
        found.setdefault(event.at, []).append(event)
    return list(found.items())

"""A scheduler of gangs in plain Python, with defects that can be planted: the subject of tests of `stress --subject`.

It is told each moment on its standard input, lists everything (at resourceVersion=0, as caches do), binds what it
decides one request after the other, and prints that it is done. Without a defect it keeps every promise that judges
know of.
"""

import http.client
import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Object = dict[str, Any]
Amounts = dict[str, float]
AGENT: Final = "tiny-scheduler/1"
PODS: Final = "/api/v1/namespaces/default/pods"
LISTS: Final = {
    "Node": "/api/v1/nodes",
    "Pod": PODS,
    "PodGroup": "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
    "Queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
}
GROUP: Final = "scheduling.k8s.io/group-name"
TRIES: Final = 4
PATIENCE: Final = 1000
"""Times that a read is asked again."""
LOST: Final = 0
"""The status of an answer that never came."""
DEFECTS: Final = {
    "lost-is-failed": "a bind whose answer was lost counts as not done, and its room as free",
    "no-retry": "a pod whose bind was refused is never looked at again",
    "assume-before-answer": "the cache says that a pod is bound before the bind is answered, and is not corrected",
    "bind-without-uid": "a bind names the pod and not its uid: another pod of that name is bound",
    "stale-group": "the minimum of a gang is read once",
    "conflict-is-success": "a 409 is taken for a bind that was done before",
    "takes-foreign": "pods of other schedulers are bound",
    "ignores-cordon": "cordoned nodes get pods",
    "ignores-pod-count": "a node gets more pods than it may have",
    "binds-until-full": "members are bound as long as there is room, and then the gang is found too large",
    "ignores-capability": "queues get more than their capability",
    "one-short": "a gang is bound when all but one of its minimum fit",
}
UNITS: Final = {"m": 1e-3, "": 1.0, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}


def amount(text: str) -> float:
    found = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text))
    assert found is not None
    return float(found[1]) * UNITS[found[2]]


class Api:
    """The served cluster, one request at a time."""

    def __init__(self, kubeconfig: Path) -> None:
        found = re.search(r"server: ['\"]?http://([^'\"\s]+)", kubeconfig.read_text("utf-8"))
        assert found is not None
        self._host = found[1]
        self._line: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, Any]:
        """Status and answer; LOST when none came."""
        headers = {"user-agent": AGENT, "content-type": "application/json"}
        try:
            self._line = self._line or http.client.HTTPConnection(self._host, timeout=20.0)
            self._line.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._line.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except (OSError, http.client.HTTPException, ValueError):
            if self._line is not None:
                self._line.close()
            self._line = None
            return LOST, None

    def read(self, path: str) -> Any:
        """Asked until there is an answer; None where there is no such object. Without a server it gives up."""
        for _ in range(PATIENCE):
            status, found = self.ask("GET", path)
            if status == 200 or status == 404:
                return found if status == 200 else None
            time.sleep(0.01)
        sys.exit(f"{path}: no answer")


def key(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def revision(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


def node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def phase_of(pod: Object) -> str:
    return str(pod.get("status", {}).get("phase") or "Pending")


def is_alive(pod: Object) -> bool:
    return phase_of(pod) not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def takes_room(pod: Object) -> bool:
    return bool(node_of(pod)) and phase_of(pod) not in ("Succeeded", "Failed")


def asks(pod: Object) -> Amounts:
    wanted: Amounts = {"pods": 1.0}
    for container in pod["spec"]["containers"]:
        requests: dict[str, str] = container.get("resources", {}).get("requests") or {}
        for name, text in requests.items():
            wanted[name] = wanted.get(name, 0.0) + amount(text)
    return wanted


@dataclass
class Cache:
    """What is known, by kind and uid: the newest that was seen of each object."""

    known: dict[str, dict[str, Object]] = field(default_factory=lambda: {kind: {} for kind in LISTS})

    def take_list(self, kind: str, listing: Object) -> None:
        """What a list shows; older than what is known it changes nothing."""
        at, items = int(listing["metadata"]["resourceVersion"]), {key(each): each for each in listing["items"]}
        mine = self.known[kind]
        for uid in [uid for uid, each in mine.items() if uid not in items and revision(each) <= at]:
            del mine[uid]
        for each in items.values():
            self.take(kind, each)

    def take(self, kind: str, obj: Object) -> None:
        mine = self.known[kind]
        if key(obj) not in mine or revision(mine[key(obj)]) <= revision(obj):
            mine[key(obj)] = obj

    def drop(self, pod: Object) -> None:
        self.known["Pod"].pop(key(pod), None)


@dataclass
class Gang:
    name: str
    minimum: int
    queue: str
    members: list[Object]
    placed: int


class Scheduler:
    def __init__(self, api: Api, defect: str) -> None:
        self._api = api
        self._defect = defect
        self._cache = Cache()
        self._reserved: dict[str, str] = {}
        self._given_up: set[str] = set()
        self._believed: dict[str, str] = {}
        self._minimums: dict[str, int] = {}
        self._free: dict[str, Amounts] = {}
        self._held: dict[str, Amounts] = {}

    def moment(self) -> None:
        for kind, path in LISTS.items():
            self._cache.take_list(kind, self._api.read(f"{path}?resourceVersion=0"))
        for uid, node in self._believed.items():
            if (pod := self._cache.known["Pod"].get(uid)) is not None:
                self._assume(pod, node)
        self._count()
        for gang in self._gangs():
            self._place(gang)

    def _all(self, kind: str) -> list[Object]:
        return sorted(self._cache.known[kind].values(), key=lambda each: str(each["metadata"]["name"]))

    # --- books

    def _count(self) -> None:
        """Room of each node, and what each queue has."""
        pods = {key(pod): pod for pod in self._all("Pod")}
        self._reserved = {uid: node for uid, node in self._reserved.items() if uid in pods and not node_of(pods[uid])}
        self._free, self._held = {}, {}
        for each in self._all("Node"):
            if self._defect == "ignores-cordon" or not each["spec"].get("unschedulable"):
                room = {name: amount(text) for name, text in each["status"]["allocatable"].items() if name in KNOWN}
                self._free[each["metadata"]["name"]] = room
        groups = {each["metadata"]["name"]: each for each in self._all("PodGroup")}
        for uid, pod in pods.items():
            node = self._reserved.get(uid) or (node_of(pod) if takes_room(pod) else "")
            if node and not (uid in self._given_up and self._defect == "lost-is-failed"):
                group = groups.get(group_of(pod))
                self._take(node, group["spec"].get("queue", "default") if group else "", pod)

    def _take(self, node: str, queue: str, pod: Object) -> None:
        held = self._held.setdefault(queue, {})
        for name, much in asks(pod).items():
            held[name] = held.get(name, 0.0) + much
            if node in self._free:
                self._free[node][name] = self._free[node].get(name, 0.0) - much

    def _gangs(self) -> list[Gang]:
        """Those that were begun first, then by name."""
        found: list[Gang] = []
        pods = [pod for pod in self._all("Pod") if self._is_mine(pod)]
        for group in self._all("PodGroup"):
            name, uid = group["metadata"]["name"], key(group)
            minimum = int(group["spec"].get("minMember") or 1)
            if self._defect == "stale-group":
                minimum = self._minimums.setdefault(uid, minimum)
            mine = [pod for pod in pods if group_of(pod) == name]
            placed = sum(1 for pod in mine if self._counts(pod))
            waiting = [pod for pod in mine if is_alive(pod) and not node_of(pod) and key(pod) not in self._given_up]
            found.append(Gang(name, minimum, group["spec"].get("queue") or "default", waiting, placed))
        found += [
            Gang(pod["metadata"]["name"], 1, "", [pod], 0)
            for pod in pods
            if not group_of(pod) and is_alive(pod) and not node_of(pod)
        ]
        return sorted(found, key=lambda gang: not any(key(pod) in self._reserved for pod in gang.members))

    def _is_mine(self, pod: Object) -> bool:
        return self._defect == "takes-foreign" or pod["spec"].get("schedulerName") == "volcano"

    def _counts(self, pod: Object) -> bool:
        return bool(node_of(pod)) and phase_of(pod) != "Failed" and "deletionTimestamp" not in pod["metadata"]

    # --- decisions

    def _still_needs(self, gang: Gang) -> int:
        """The minimum as it is now: a list may be old."""
        if not gang.queue or self._defect == "stale-group":
            return gang.minimum
        group = self._api.read(f"{LISTS['PodGroup']}/{gang.name}")
        return int(group["spec"].get("minMember") or 1) if group is not None else sys.maxsize

    def _place(self, gang: Gang) -> None:
        if self._defect == "binds-until-full":
            for pod in gang.members:
                if (node := self._find(gang, pod)) is not None:
                    self._bind(pod, node)
            return
        chosen = [(pod, node) for pod in gang.members if (node := self._find(gang, pod)) is not None]
        if chosen:
            gang.minimum = self._still_needs(gang)
        short = 1 if self._defect == "one-short" and gang.minimum > 1 else 0
        if gang.placed + len(chosen) < gang.minimum - short:
            for pod, node in chosen:
                self._give_back(node, gang.queue, pod)
            return
        for pod, node in chosen:
            self._reserved[key(pod)] = node
        for pod, node in chosen:
            self._bind(pod, node)

    def _find(self, gang: Gang, pod: Object) -> str | None:
        """A node with room for the pod, which is taken from it."""
        if key(pod) in self._reserved and self._reserved[key(pod)] in self._free:
            return self._reserved[key(pod)]  # its room is counted already
        wanted = asks(pod)
        if self._defect == "ignores-pod-count":
            wanted["pods"] = 0.0
        if not self._may_have(gang.queue, wanted):
            return None
        for name in sorted(self._free):
            if all(much <= 0.0 or self._free[name].get(each, 0.0) >= much for each, much in wanted.items()):
                self._take(name, gang.queue, pod)
                return name
        return None

    def _may_have(self, queue: str, wanted: Amounts) -> bool:
        if self._defect == "ignores-capability":
            return True
        found = next((each for each in self._all("Queue") if each["metadata"]["name"] == queue), None)
        if found is None:
            return not queue
        limits: dict[str, str] = found["spec"].get("capability") or {}
        held = self._held.get(queue, {})
        return all(held.get(name, 0.0) + wanted.get(name, 0.0) <= amount(text) for name, text in limits.items())

    def _give_back(self, node: str, queue: str, pod: Object) -> None:
        if key(pod) in self._reserved:
            return
        for name, much in asks(pod).items():
            self._held[queue][name] -= much
            self._free[node][name] += much

    # --- binding

    def _bind(self, pod: Object, node: str) -> None:
        name, uid = pod["metadata"]["name"], key(pod)
        meta = {"name": name} if self._defect == "bind-without-uid" else {"name": name, "uid": uid}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": node}}
        if self._defect == "assume-before-answer":
            self._assume(pod, node, for_good=True)
        for _ in range(TRIES):
            status, _ = self._api.ask("POST", f"{PODS}/{name}/binding", body)
            if self._defect == "assume-before-answer":
                return
            if status in (200, 201) or (status == 409 and self._defect == "conflict-is-success"):
                self._assume(pod, node, for_good=status == 409)
                return
            if (status == LOST and self._defect == "lost-is-failed") or (status >= 400 and self._defect == "no-retry"):
                self._given_up.add(uid)
                self._reserved.pop(uid, None)
                return
            found = self._api.read(f"{PODS}/{name}")
            if found is None or key(found) != uid:
                self._cache.drop(pod)
                self._reserved.pop(uid, None)
                return
            self._cache.take("Pod", found)
            if node_of(found):
                return

    def _assume(self, pod: Object, node: str, *, for_good: bool = False) -> None:
        """Until the state of the pod is seen, or for good."""
        if for_good:
            self._believed[key(pod)] = node
        self._cache.take("Pod", {**pod, "spec": {**pod["spec"], "nodeName": node}})


KNOWN: Final = ("cpu", "memory", "pods")


def group_of(pod: Object) -> str:
    notes: dict[str, str] = pod["metadata"].get("annotations") or {}
    return notes.get(GROUP, "")


def main() -> None:
    defect = sys.argv[1] if len(sys.argv) > 1 else ""
    assert not defect or defect in DEFECTS, defect
    scheduler = Scheduler(Api(Path(os.environ["KUBECONFIG"])), defect)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word == "moment":
            scheduler.moment()
            sys.stdout.write(f"done {number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Lives: what they are told does not hang on how an object is decoded, nor on who else hears."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object
from pumice.questions.measures.lives import GroupLife, Listener, Lives, PodLife
from pumice.storage import codec
from tests.kit import pod

CHANGES = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]),
            "uid": st.sampled_from(["u1", "u1", "u1", "u2"]),
            "node": st.sampled_from(["", "n0", "n1"]),
            "phase": st.sampled_from([None, "Pending", "Running", "Succeeded", "Failed", "Unknown"]),
            "started": st.sampled_from([None, "1970-01-01T00:00:02Z", "soon"]),
            "leaves": st.booleans(),
            "group": st.sampled_from(["", "g"]),
        }
    ),
    max_size=8,
)


class Noting(Listener):
    """Notes all that it hears of pods."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def pod_created(self, pod: PodLife) -> None:
        self.heard.append(("created", pod.uid, pod.queue, pod.job))

    def pod_moved(self, pod: PodLife, job: str, queue: str) -> None:
        self.heard.append(("moved", pod.uid, job, queue, pod.job))

    def pod_bound(self, pod: PodLife) -> None:
        self.heard.append(("bound", pod.uid, pod.node, pod.bound))

    def pod_started(self, pod: PodLife) -> None:
        self.heard.append(("started", pod.uid, pod.started, pod.ran_since))

    def pod_ended(self, pod: PodLife) -> None:
        self.heard.append(("ended", pod.uid, pod.phase, pod.told_to_go, pod.ended))

    def pod_gone(self, pod: PodLife) -> None:
        self.heard.append(("gone", pod.uid, pod.phase))


class Deaf(Listener):
    """Hears of groups alone."""

    def group(self, group: GroupLife) -> None:
        raise AssertionError(group)


def made(change: dict[str, Any]) -> Object:
    obj = pod("p", uid=change["uid"])
    meta = obj["metadata"]
    meta["uid"] = change["uid"]
    if change["group"]:
        meta["annotations"] = {"scheduling.k8s.io/group-name": change["group"]}
    if change["leaves"]:
        meta["deletionTimestamp"] = "1970-01-01T00:00:09Z"
    if change["node"]:
        obj["spec"]["nodeName"] = change["node"]
    obj["status"] = {"phase": change["phase"], "startTime": change["started"]} if change["phase"] else None
    return obj


@given(CHANGES)
def test_a_bound_pod_is_read_as_a_whole_one_is(changes: list[dict[str, Any]]) -> None:
    whole, quick = Noting(), Noting()
    # Any other function than the usual one decodes all of every object.
    readers = Lives((whole, Deaf()), unpack=partial(codec.unpack)), Lives((Deaf(), quick))
    for revision, change in enumerate(changes, start=1):
        blob = codec.pack(made(change))
        for reader in readers:
            reader.note(Mutation(revision, change["type"], "Pod", "default", "p", blob), float(revision))
    assert whole.heard == quick.heard
    assert readers[0].pods == readers[1].pods


def test_objects_that_no_listener_hears_of_are_not_decoded() -> None:
    reader = Lives((Noting(),))
    for kind in ("Job", "Queue", "Node"):
        reader.note(Mutation(1, "ADDED", kind, "", "x", b"no MessagePack \xc1"), 1.0)
    assert reader.began == 1.0

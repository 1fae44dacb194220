"""Patches of statuses that are decoded and checked once: which do for any object, and that no object feels it."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.api.verbs.changes import sound_patch
from pumice.core.messages.replies import Refused
from pumice.storage.codec import pack
from tests.actors.cluster import Cluster
from tests.kit.pods import pod

RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def test_one_that_replaces_whole_fields_is_decoded_once() -> None:
    patch = sound_patch("Pod", pack(RUNNING))
    assert patch == RUNNING
    assert sound_patch("Pod", pack(RUNNING)) is patch


@pytest.mark.parametrize(
    "patch",
    [{"phase": None}, {"conditions": [{"type": None}]}, {"phase": 1}, {"allocatable": {"cpu": "2"}}, ["phase"]],
    ids=["takes away", "holds a null", "of a wrong type", "merges", "no mapping"],
)
def test_one_that_depends_on_the_object_is_none(patch: Any) -> None:
    assert sound_patch("Pod", pack(patch)) is None


def test_what_is_sound_depends_on_the_kind() -> None:
    blob = pack({"state": 1})
    assert sound_patch("Pod", blob) is not None
    assert sound_patch("Queue", blob) is None


def test_the_same_patch_over_several_objects() -> None:
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.create(pod(name))
        cluster.status("Pod", name, {"podIP": name})
        cluster.status("Pod", name, RUNNING)
    cluster.status("Pod", "a", {"conditions": [{"type": None}], "phase": None})
    statuses = [cluster.get("Pod", name)["status"] for name in ("a", "b")]
    assert [status["podIP"] for status in statuses] == ["a", "b"]
    assert statuses[1].items() >= RUNNING.items()
    assert sound_patch("Pod", pack(RUNNING)) == RUNNING


def test_a_wrong_type_is_refused_every_time() -> None:
    cluster = Cluster()
    cluster.create(pod("p"))
    for _ in range(2):
        reply = cluster.status("Pod", "p", {"phase": 1})
        assert isinstance(reply, Refused)
        assert reply.code == 422

"""Volcano's own example manifests: what is right is taken, what is wrong is refused by its rule."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from pumice.cluster.api.kinds import kind_of
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit import source
from tests.kit.queues import queue

EXAMPLES = source.SHARED / "manifests" / "volcano-examples"


def documents(folder: Path) -> Iterator[tuple[str, Object]]:
    for path in sorted(folder.rglob("*.yaml")):
        for number, found in enumerate(yaml.safe_load_all(path.read_text("utf-8"))):
            if found:
                yield f"{path.relative_to(EXAMPLES)}#{number}", found


GOOD = [(name, found) for name, found in documents(EXAMPLES) if not name.startswith("invalid_jobs/")]
UNKNOWN = [(name, found) for name, found in GOOD if kind_of(found["apiVersion"], found["kind"]) is None]
WANTED_QUEUES = sorted({found["spec"].get("queue", "default") for _, found in GOOD if found["kind"] == "Job"})

pytestmark = pytest.mark.skipif(not GOOD, reason="no shared/manifests beside the repository")


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    for name in WANTED_QUEUES:
        if name != "default":
            found.create(queue(name))
    return found


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(found, id=name)
        for name, found in GOOD
        if kind_of(found["apiVersion"], found["kind"]) is not None and found["kind"] != "Queue"
    ],
)
def test_what_is_right_is_accepted(cluster: Cluster, found: Object) -> None:
    cluster.create(found)


def test_so_are_the_queues_together() -> None:
    cluster = Cluster()
    for _, found in GOOD:
        if found["kind"] == "Queue":
            cluster.create(found)


@pytest.mark.parametrize("found", [pytest.param(found, id=name) for name, found in UNKNOWN])
def test_what_is_unknown_is_named(cluster: Cluster, found: Object) -> None:
    reply = cluster.refused(found)
    assert reply.message == f'no matches for kind "{found["kind"]}" in version "{found["apiVersion"]}"'


@pytest.mark.parametrize(
    ("file", "field", "words"),
    [
        ("duplicatedPolicyEvent", "spec.policies[1].event", "duplicate event"),
        ("duplicatedTaskName", "spec.tasks[1].name", "duplicated task name"),
        ("minAvailable", "spec.minAvailable", "should not be greater than total replicas in tasks (4)"),
    ],
)
def test_what_is_wrong_is_refused_by_its_rule(cluster: Cluster, file: str, field: str, words: str) -> None:
    path = EXAMPLES / "invalid_jobs" / f"{file}-webhook-deny.yaml"
    reply: Refused = cluster.refused(yaml.safe_load(path.read_text("utf-8")))
    assert [cause["field"] for cause in reply.details["causes"]] == [field]
    assert words in reply.message
    assert '"test-job-webhook-disallow"' in reply.message

"""Lists, and the outbox that the journal is filled from."""

from pumice.core.messages.commands import List
from pumice.core.messages.replies import Listing, Refused
from pumice.storage.codec import unpack
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod


def test_lists_by_namespace_and_label(cluster: Cluster) -> None:
    for namespace in ("a", "b"):
        for index in range(3):
            cluster.create(pod(f"p{index}", namespace=namespace, labels={"odd": str(index % 2)}))

    def names(namespace: str | None, selector: str | None) -> list[str]:
        reply = cluster.ask(List("Pod", namespace, selector))
        assert isinstance(reply, Listing)
        metas = [unpack(blob)["metadata"] for blob in reply.blobs]
        return [f"{meta['namespace']}/{meta['name']}" for meta in metas]

    assert names("a", None) == ["a/p0", "a/p1", "a/p2"]
    assert names(None, "odd=1") == ["a/p1", "b/p1"]
    assert names("b", "odd!=1") == ["b/p0", "b/p2"]
    refused = cluster.ask(List("Pod", None, "odd in 1"))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.reason) == (400, "BadRequest")


def test_every_mutation_is_in_the_outbox_once() -> None:
    cluster = Cluster()
    cluster.create(node("n"))
    cluster.patch("Node", "n", {"metadata": {"labels": {"a": "b"}}}, "")
    cluster.delete("Node", "n", "")
    assert [(each.revision, each.type, each.kind) for each in cluster.journal[-3:]] == [
        (3, "ADDED", "Node"),
        (4, "MODIFIED", "Node"),
        (5, "DELETED", "Node"),
    ]

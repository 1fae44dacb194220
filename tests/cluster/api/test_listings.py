"""Lists, and the revisions that they and watches begin with."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.store import MOST_LISTINGS, Store
from pumice.core.messages.commands import Create, List, OpenListing
from pumice.core.messages.replies import Accepted, Listing, ListingOpened
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import START, Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod

# --- where revisions begin


def test_revisions_begin_after_what_no_client_can_have_seen() -> None:
    store = Store()
    store.begin_after(1_000)
    assert isinstance(store.create(pack(node("n")), START), Accepted)
    store.publish()
    assert store.revision == 1_001
    assert [event.revision for event in store.log.read(1_000).events] == [1_001]
    assert store.log.read(999).gone  # of an earlier life
    assert store.log.read(2_000).gone  # of a later one
    store.begin_after(500)
    assert store.revision == 1_001
    assert not store.log.read(1_000).gone


# --- listings


def test_an_opened_listing_is_a_snapshot(cluster: Cluster) -> None:
    for name in ("b", "a"):
        cluster.create(pod(name))
    opened = cluster.ask(OpenListing("Pod", "default"))
    assert isinstance(opened, ListingOpened)
    cluster.delete("Pod", "a")
    names = [unpack(blob)["metadata"]["name"] for blob in cluster.store.listings.take(opened.handle)]
    assert (names, opened.count) == (["a", "b"], 2)


def test_listings_that_nobody_takes_do_not_pile_up(cluster: Cluster) -> None:
    for _ in range(2 * MOST_LISTINGS):
        cluster.ask(OpenListing("Pod"))
    assert len(cluster.store.listings) == MOST_LISTINGS


NAMES = st.tuples(st.sampled_from(["a", "a-b", "b", "default"]), st.sampled_from(["p", "q", "r-1", "z"]))


@given(st.lists(st.tuples(st.sampled_from(["create", "delete", "label", "list"]), NAMES), max_size=30))
def test_lists_are_in_order_whatever_came_and_went(steps: list[tuple[str, tuple[str, str]]]) -> None:
    cluster = Cluster()
    there: set[tuple[str, str]] = set()
    for what, (namespace, name) in steps:
        if what == "create":
            cluster.ask(Create(pack(pod(name, namespace=namespace))))
            there.add((namespace, name))
        elif what == "delete":
            cluster.delete("Pod", name, namespace)
            there.discard((namespace, name))
        elif what == "label":
            cluster.patch("Pod", name, {"metadata": {"labels": {"x": "y"}}}, namespace)
        found = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in cluster.all("Pod")]
        assert found == sorted(there)
        within = cluster.ask(List("Pod", namespace))
        assert isinstance(within, Listing)
        assert [unpack(blob)["metadata"]["name"] for blob in within.blobs] == sorted(
            n for s, n in there if s == namespace
        )
        assert cluster.store.tables.in_namespace(namespace) == len(within.blobs)

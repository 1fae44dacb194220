"""The ring of a kind, and its part of one namespace: the same changes, without what is not of it."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.gateway.ring import MOST, Ring, RingEntry

NAMESPACES = ("a", "b", "c")


def change(revision: int, namespace: str, *, size: int = 10, deleted: bool = False) -> RingEntry:
    blob, key = b"x" * size, (namespace, f"p{revision}")
    return RingEntry(revision, "DELETED" if deleted else "ADDED", "Pod", key, blob, blob if deleted else None)


@given(
    st.lists(st.tuples(st.sampled_from(NAMESPACES), st.sampled_from([10, 40_000]), st.booleans()), max_size=40),
    st.integers(1, 12),
    st.integers(0, 40),
)
def test_a_part_tells_what_the_ring_does_of_a_namespace(
    changes: list[tuple[str, int, bool]], most: int, asked: int
) -> None:
    """Whenever it is asked for; what fell off before it was read is named as gone, if it was of that namespace."""
    ring = Ring(0, most)
    early = ring.part("a")
    for number, (namespace, size, deleted) in enumerate(changes, start=1):
        ring.append(change(number, namespace, size=size, deleted=deleted))
    ring.publish()
    position = min(asked, ring.end)
    first = ring.end - len(ring)
    lost = any(namespace == "a" for namespace, _, _ in changes[position:first])
    expected = [entry for entry in ring.entries() if entry.key[0] == "a" and entry.revision > position]
    for part in (early, ring.part("a")):
        assert part is early
        told: list[RingEntry] = []
        found = part.read(position)
        assert (found is None) == lost
        while found is not None and found[0]:
            told += found[0]
            found = part.read(found[1])
        assert lost or (told == expected and found == ([], ring.end))


def test_a_part_that_begins_late_has_what_is_there() -> None:
    ring = Ring(0, 100)
    for number in range(1, 5):
        ring.append(change(number, NAMESPACES[number % 2]))
    found = ring.part("a").read(0)
    assert found is not None
    assert [entry.revision for entry in found[0]] == [2, 4]


def test_a_chunk_is_bounded_and_goes_on_where_it_ended() -> None:
    ring = Ring(0, 10 * MOST)
    part = ring.part("a")
    for number in range(1, 2 * MOST + 3):
        ring.append(change(number, NAMESPACES[number % 2]))
    first = part.read(0)
    assert first is not None
    assert len(first[0]) == MOST
    second = part.read(first[1])
    assert second is not None
    assert [entry.revision for entry in second[0]] == [2 * MOST + 2]
    assert second[1] == ring.end


@pytest.mark.anyio
async def test_only_changes_of_the_namespace_wake_who_watches_it() -> None:
    ring = Ring(0, 3)
    woken: list[int] = []

    async def follow() -> None:
        part = ring.part("a")
        while True:
            woken.append(await part.news.wait_beyond(woken[-1] if woken else ring.end))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        for number, namespace in enumerate("bbbbbba", start=1):
            ring.append(change(number, namespace))
            ring.publish()
            await anyio.wait_all_tasks_blocked()
        assert woken == [7]
        ring.reset(9)
        await anyio.wait_all_tasks_blocked()
        assert woken == [7, ring.end]
        assert ring.part("a").read(7) is None
        tasks.cancel_scope.cancel()


def test_nothing_is_kept_of_namespaces_that_nobody_watches() -> None:
    ring = Ring(0, 100)
    part = ring.part("a")
    ring.append(change(1, "a"))
    del part
    ring.append(change(2, "a"))
    ring.publish()
    assert len(ring._parts) == 0  # pyright: ignore[reportPrivateUsage]

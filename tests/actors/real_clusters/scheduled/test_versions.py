"""Of what comes twice or late nothing is taken, in whatever order it comes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.real_clusters.mirror.changes import RemoteChange
from pumice.actors.real_clusters.scheduled.versions import RemoteVersions
from pumice.storage import codec

KEY = ("Pod", "default", "p")


def change(version: int, uid: str = "u", *, gone: bool = False) -> RemoteChange:
    meta: dict[str, Any] = {"name": "p", "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    return RemoteChange(*KEY, codec.pack({"metadata": meta}), gone)


@given(st.lists(st.integers(1, 20)))
def test_what_is_known_never_goes_back(numbers: list[int]) -> None:
    versions = RemoteVersions()
    taken = versions.news([change(number) for number in numbers])
    texts = [int((each.obj or {})["metadata"]["resourceVersion"]) for each in taken]
    assert texts == sorted(set(texts))
    known = versions.of(KEY)
    assert (known.number if known else 0) == max(numbers, default=0)


def test_what_is_gone_does_not_come_back_with_a_late_answer() -> None:
    versions = RemoteVersions()
    assert len(versions.news([change(1), change(3, gone=True), change(2)])) == 2
    assert versions.names("Pod") == []


def test_another_object_of_that_name_is_news() -> None:
    versions = RemoteVersions()
    assert len(versions.news([change(5), change(6, gone=True), change(7, "other")])) == 3
    assert versions.news([change(9, gone=True)]) == []
    assert versions.names("Pod") == [KEY]


def test_what_was_here_before_is_taken_in_any_version() -> None:
    versions = RemoteVersions()
    versions.know(KEY, "u")
    assert len(versions.news([change(1)])) == 1


def test_what_a_new_list_does_not_name_is_gone() -> None:
    versions = RemoteVersions()
    versions.news([change(1)])
    assert len(versions.news([RemoteChange(*KEY, None, gone=True)])) == 1
    assert versions.names("Pod") == []

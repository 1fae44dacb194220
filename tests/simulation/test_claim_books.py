"""The monitor's books of devices and volumes find what is wrong, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object
from pumice.proof.storm.invariants.claim_books import ClaimBooks
from pumice.storage import codec
from tests.kit.storage import device_claim, device_slice, using, volume, with_devices

POD: Object = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"nodeName": "n0"}}


def told(*objects: Object) -> ClaimBooks:
    books = ClaimBooks()
    for revision, obj in enumerate(objects):
        meta = obj["metadata"]
        where = (obj["kind"], meta.get("namespace", ""), meta["name"])
        books.apply(Mutation(revision, "MODIFIED", *where, codec.pack(obj)))
    return books


def given_devices(name: str, node: str, *devices: str, users: tuple[str, ...] = ("u",)) -> Object:
    results = [{"request": "r", "driver": "gpu.example.com", "pool": node, "device": device} for device in devices]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"uid": user} for user in users]}
    return {**device_claim(name), "status": status}


def claim_of(name: str, volume_name: str) -> Object:
    meta = {"name": name, "namespace": "default", "uid": f"uid of {name}"}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": volume_name}}


def kept_for(name: str, claim: str, node: str | None = None) -> Object:
    reference = {"namespace": "default", "name": claim, "uid": f"uid of {claim}"}
    return volume(name, node=node, claimRef=reference)


def test_a_device_has_one_claim() -> None:
    both = told(given_devices("a", "n0", "gpu0"), given_devices("b", "n0", "gpu0"))
    assert [words for _, words in both.new_problems()] == [
        "device gpu.example.com/n0/gpu0 is given to claim default/b and to claim default/a"
    ]
    assert told(given_devices("a", "n0", "gpu0"), given_devices("b", "n1", "gpu0")).new_problems() == []


def test_a_problem_is_told_once() -> None:
    both = told(given_devices("a", "n0", "gpu0"), given_devices("b", "n0", "gpu0"))
    assert [len(both.new_problems()) for _ in range(3)] == [1, 0, 0]


def test_a_device_that_was_given_back_may_be_given_again() -> None:
    books = told(given_devices("a", "n0", "gpu0"), device_claim("a"), given_devices("b", "n0", "gpu0"))
    assert books.new_problems() == []


def test_a_pod_has_its_devices_on_its_node() -> None:
    pod = with_devices(POD, "a")
    assert list(told(device_slice("n0"), given_devices("a", "n0", "gpu0")).judge(pod)) == []
    for books in (
        told(),
        told(device_claim("a")),
        told(given_devices("a", "n0", "gpu0", users=("another",))),
        told(device_slice("n1"), given_devices("a", "n1", "gpu0")),
    ):
        assert [invariant for invariant, _ in books.judge(pod)] == ["claims-first"]


def test_a_pod_has_its_volume_in_reach() -> None:
    pod = using(POD, "c")
    assert list(told(claim_of("c", "v"), kept_for("v", "c", "n0")).judge(pod)) == []
    assert list(told(claim_of("c", "v"), kept_for("v", "c")).judge(pod)) == []
    for books in (told(), told(claim_of("c", "")), told(claim_of("c", "v"), kept_for("v", "c", "n1"))):
        assert [invariant for invariant, _ in books.judge(pod)] == ["claims-first"]


def test_what_the_dead_still_have_is_left_over() -> None:
    assert list(told(given_devices("a", "n0", "gpu0")).left_over({"u"})) == []
    assert list(told(given_devices("a", "n0", "gpu0")).left_over(set()))
    assert list(told(given_devices("a", "n0", "gpu0", users=())).left_over({"u"}))


def test_a_volume_kept_for_a_claim_that_has_another_is_left_over() -> None:
    assert list(told(claim_of("c", "v"), kept_for("v", "c")).left_over(set())) == []
    assert list(told(claim_of("c", ""), kept_for("v", "c")).left_over(set()))
    assert list(told(kept_for("v", "c")).left_over(set())) == []  # released: its claim is gone


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("", "gpu0", "gpu1"))), max_size=12))
def test_claims_that_take_only_what_is_free_are_never_a_problem(steps: list[tuple[str, str]]) -> None:
    books, holds = ClaimBooks(), dict[str, str]()
    for revision, (name, device) in enumerate(steps):
        if device and device in holds.values() and holds.get(name) != device:
            continue
        holds[name] = device
        obj = given_devices(name, "n0", device) if device else device_claim(name)
        books.apply(Mutation(revision, "MODIFIED", "ResourceClaim", "default", name, codec.pack(obj)))
    assert books.new_problems() == []

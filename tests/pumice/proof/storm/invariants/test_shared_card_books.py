"""Who has what of shared cards and NPUs, and which locks nodes have, from objects alone."""

from __future__ import annotations

import json

import pytest

from pumice.core.devices.ascend import CORE
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object
from pumice.proof.storm.invariants.card_books import LockBook, chips_too_full, npus_too_full, shared_too_much
from pumice.storage.codec import pack, unpack
from tests.kit.nodes import node
from tests.kit.pods import pod

CARDS = {"volcano.sh/gpu-number": "2", "volcano.sh/gpu-memory": "2000"}
NPU = {"id": "NPU-0", "count": 2, "devmem": 1000, "devcore": 8, "type": "Ascend310P", "health": True}


def on_card(name: str, **limits: str) -> Object:
    found = pod(name, node="n0", annotations={"volcano.sh/gpu-index": "1"})
    found["spec"]["containers"][0]["resources"]["limits"] = {f"volcano.sh/gpu-{key}": limits[key] for key in limits}
    return found


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([on_card("a", memory="500"), on_card("b", memory="500")], []),
        ([on_card("a", memory="600"), on_card("b", memory="500")], ["shared card 1 has 1100 of 1000 MiB assigned"]),
        ([on_card("a", number="1")], []),
        ([on_card("a", number="1"), on_card("b", memory="1")], ["card 1 is had whole, by 2 pods"]),
    ],
)
def test_a_shared_card_has_no_more_than_it_has(pods: list[Object], words: list[str]) -> None:
    there = node("n0")
    there["status"]["capacity"] = CARDS
    assert list(shared_too_much(there, pods)) == words
    assert not list(shared_too_much(node("n0"), pods))


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((500, 500), []),
        ((600, 500), ["NPU NPU-0 has 2 of 2 pods, 1100 of 1000 MiB"]),
        ((1, 1, 1), ["NPU NPU-0 has 3 of 2 pods, 3 of 1000 MiB"]),
    ],
)
def test_an_npu_has_no_more_than_it_has(sizes: tuple[int, ...], words: list[str]) -> None:
    there = node("n0", annotations={"hami.io/node-register-Ascend310P": json.dumps([NPU])})
    had = "hami.io/Ascend310P-devices-allocated"
    pods = [pod(f"p{size}", node="n0", annotations={had: f"NPU-0,Ascend310P,{size},0:;"}) for size in sizes]
    assert list(npus_too_full(there, pods)) == words


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["0-vir04", "0-vir02_1c", "1", ""], []),
        (["0,1"], []),
        (["0-vir04", "0-vir04_3c", "0-vir01"], ["NPU 0 has 9 of 8 AI cores, 8 of 7 AI CPUs given, to 3 pods"]),
        (["0,1", "1-vir01"], ["NPU 1 has 9 of 8 AI cores, 8 of 7 AI CPUs given, to 2 pods"]),
    ],
)
def test_a_chip_gives_no_more_than_it_has(given: list[str], words: list[str]) -> None:
    there = node("n0", labels={"servertype": "Ascend310P-8"})
    pods = [pod(f"p{at}", node="n0", annotations={CORE: text}) for at, text in enumerate(given)]
    assert list(chips_too_full(there, pods)) == words
    assert not list(chips_too_full(node("n1"), pods))


def locked(revision: int, minute: int | None) -> Mutation:
    notes = {} if minute is None else {"hamivgpu": f"2024-01-01T00:{minute:02}:00Z"}
    return Mutation(revision, "MODIFIED", "Node", "", "n0", pack(node("n0", annotations=notes)))


@pytest.mark.parametrize(
    ("minutes", "again"), [((0, 0), False), ((0, 5), False), ((0, None, 2), False), ((0, 2), True), ((0, 4), True)]
)
def test_a_lock_that_counts_is_not_set_again(minutes: tuple[int | None, ...], again: bool) -> None:
    book = LockBook(unpack)
    found = [words for at, minute in enumerate(minutes) for words in book.see(locked(at, minute))]
    assert bool(found) == again
    assert all("node n0 was locked by hamivgpu since 2024-01-01T00:00:00Z" in words for words in found)

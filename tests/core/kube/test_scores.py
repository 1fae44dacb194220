"""Kubernetes' normalisation, and what an image is worth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.kube.scores import image_scores, normalise, normalised_image
from tests.core.kube import slow
from tests.core.kube.sessions import opened
from tests.kit import node


@given(raw=st.lists(st.integers(0, 2**40), min_size=1), reverse=st.booleans(), weight=st.integers(1, 9))
def test_normalisation_is_the_slow_one(raw: list[int], reverse: bool, weight: int) -> None:
    expected = [weight * score for score in slow.normalised(raw, reverse=reverse)]
    assert normalise(np.array(raw, dtype=np.float64), float(weight), reverse=reverse).tolist() == expected


def test_no_candidates_no_scores() -> None:
    assert normalise(np.zeros(0), 1.0).tolist() == []


@pytest.mark.parametrize(
    ("name", "tagged"),
    [
        ("busybox", "busybox:latest"),
        ("r:5000/busybox", "r:5000/busybox:latest"),
        ("busybox:1", "busybox:1"),
        ("", ":latest"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(name: str, tagged: str) -> None:
    assert normalised_image(name) == tagged


@pytest.mark.parametrize(("mebibytes", "score"), [(23, 0), (33, 1), (511, 49), (512, 50), (1000, 100), (9999, 100)])
def test_large_images_are_worth_a_visit(mebibytes: int, score: int) -> None:
    there = node("n0") | {"status": {"images": [{"names": ["a:1"], "sizeBytes": mebibytes * 2**20}]}}
    session = opened(there)
    scores = image_scores(session.nodes, ["a:1"])
    assert (0 if scores is None else scores.tolist()[0]) == score


def test_an_image_on_half_of_the_nodes_counts_half() -> None:
    there = node("n0") | {"status": {"images": [{"names": ["a:1"], "sizeBytes": 1000 * 2**20}]}}
    scores = image_scores(opened(there, node("n1")).nodes, ["a:1"])
    assert scores is not None
    assert scores.tolist() == [48, 0]

"""resourcequota: room in a namespace's quotas, and what a vote charges."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, job_of, open_world
from tests.kit import node, pod_group, queue

CONFIG = configuration(["resourcequota"])


def quota(hard: dict[str, str], used: dict[str, str], name: str = "q", namespace: str = "default") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used},
    }


def wants(name: str, **minimum: str) -> Object:
    return pod_group(name, queue="q", min_resources={key.replace("_", "."): value for key, value in minimum.items()})


def vote(session: Session, name: str) -> bool:
    return session.points.job_enqueueable(job_of(session, name))


@pytest.mark.parametrize(
    ("quotas", "minimum", "admitted"),
    [
        ([], {"cpu": "99"}, True),
        ([quota({"cpu": "4"}, {"cpu": "2"})], {"cpu": "2"}, True),
        ([quota({"cpu": "4"}, {"cpu": "2"})], {"cpu": "2001m"}, False),
        ([quota({"memory": "1Gi"}, {})], {"cpu": "9"}, True),
        ([quota({"memory": "1Gi"}, {})], {"memory": "1025Mi"}, False),
        ([quota({"cpu": "9"}, {}, "a"), quota({"cpu": "1"}, {}, "b")], {"cpu": "2"}, False),
        ([quota({"cpu": "1"}, {}, namespace="other")], {"cpu": "2"}, True),
        ([quota({"count/pods": "3"}, {"count/pods": "3"})], {"count/pods": "1"}, False),  # names the scheduler ignores
    ],
)
def test_room_in_every_quota(quotas: list[Object], minimum: dict[str, str], admitted: bool) -> None:
    session = open_world(CONFIG, node("n"), queue("q"), quotas, pod_group("j", queue="q", min_resources=minimum))
    assert vote(session, "j") is admitted


def test_a_job_without_minimum_is_not_asked() -> None:
    session = open_world(CONFIG, node("n"), queue("q"), quota({"cpu": "0"}, {}), pod_group("j", queue="q"))
    assert vote(session, "j")


@pytest.mark.parametrize(("fix", "second"), [((), False), (("enqueue-charges-once",), True)])
def test_a_vote_charges_immediately_unless_mended(fix: tuple[str, ...], second: bool) -> None:
    config = configuration(["resourcequota"], fix=fix)
    session = open_world(
        config, node("n"), queue("q"), quota({"cpu": "4"}, {}), wants("a", cpu="3"), wants("b", cpu="3")
    )
    assert vote(session, "a")
    assert vote(session, "b") is second
    session.points.job_enqueued(job_of(session, "a"))
    assert not vote(session, "b")


millis = st.integers(0, 3000)


@given(millis, millis, st.lists(millis.filter(bool), max_size=8))
def test_what_is_admitted_never_exceeds_the_quota(hard: int, used: int, wishes: list[int]) -> None:
    jobs = [wants(f"j{i}", cpu=f"{wish}m") for i, wish in enumerate(wishes)]
    limit = quota({"cpu": f"{hard}m"}, {"cpu": f"{used}m"})
    session = open_world(CONFIG, node("n"), queue("q"), limit, *jobs)
    total: Any = Fraction(used)
    for i, wish in enumerate(wishes):
        fits = total + wish <= hard
        assert vote(session, f"j{i}") is fits
        total += wish if fits else 0
    assert total <= max(hard, used)

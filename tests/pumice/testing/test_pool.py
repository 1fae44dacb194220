"""Clusters that are lent to one test after the other."""

import pytest

from pumice.testing import ClusterOptions
from pumice.testing.cluster import ClusterPool


def test_a_cluster_is_lent_again_to_the_same_options() -> None:
    pool = ClusterPool()
    try:
        first = pool.lend(ClusterOptions(nodes=1))
        second = pool.lend(ClusterOptions(nodes=1))
        assert first is not second, "two at a time are two clusters"
        first.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "left"}})
        pool.take_back(first)
        assert pool.lend(ClusterOptions(nodes=2)) is not first
        again = pool.lend(ClusterOptions(nodes=1))
        assert again is first
        assert again.find("namespace", "left") is None
    finally:
        pool.close()


def test_a_cluster_that_cannot_be_reset_is_not_lent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ClusterPool()
    try:
        first = pool.lend(ClusterOptions(nodes=0))
        monkeypatch.setattr(first, "reset", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            pool.take_back(first)
        assert pool.lend(ClusterOptions(nodes=0)) is not first
    finally:
        pool.close()

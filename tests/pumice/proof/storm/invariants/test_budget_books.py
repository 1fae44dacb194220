"""The monitor's count of what disruption budgets leave."""

from __future__ import annotations

from typing import Any

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object
from pumice.proof.storm.invariants.budget_books import LAG_S, BudgetBooks
from pumice.storage import codec


class Journal:
    """Changes as they would be written, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.revision = 0
        self.blobs: dict[tuple[str, str, str], bytes] = {}
        self.books = BudgetBooks(self.blobs, lambda: self.now)

    def write(self, kind: str, name: str, obj: Object | None) -> list[str]:
        self.revision += 1
        key, blob = (kind, "d", name), codec.pack(obj or {})
        if obj is None:
            self.blobs.pop(key, None)
        else:
            self.blobs[key] = blob
        type_ = "DELETED" if obj is None else "MODIFIED"
        return list(self.books.see(Mutation(self.revision, type_, *key, blob)))

    def budget(self, least: Any, allowed: int = 0) -> None:
        spec = {"minAvailable": least, "selector": {"matchLabels": {"job": "j"}}}
        obj = {"metadata": {"name": "b"}, "spec": spec, "status": {"disruptionsAllowed": allowed}}
        assert self.write("PodDisruptionBudget", "b", obj) == []

    def pod(
        self, number: int, *, ready: bool = True, evicted: bool = False, deleting: bool = False, job: str = "j"
    ) -> list[str]:
        conditions = [{"type": "Ready", "status": str(ready)}]
        if evicted:
            conditions.append({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"})
        meta: Object = {"name": f"p{number}", "uid": f"u{number}", "labels": {"job": job}}
        if deleting:
            meta["deletionTimestamp"] = "2024-01-01T00:00:00Z"
        return self.write("Pod", f"p{number}", {"metadata": meta, "status": {"conditions": conditions}})


def started(least: Any = 2) -> Journal:
    """Three healthy pods under a budget, one of another job."""
    journal = Journal()
    for number in range(3):
        journal.pod(number)
    journal.pod(9, job="other")
    journal.budget(least)
    return journal


def test_evictions_are_granted_as_long_as_the_budget_leaves_some() -> None:
    journal = started()
    assert journal.pod(0, evicted=True) == []
    assert journal.pod(0, evicted=True, deleting=True) == []
    assert journal.pod(1, evicted=True) == ["budget b wants 2 healthy pods and has 1 without d/p1"]


def test_what_else_the_job_lost_counts_once_the_controller_must_have_seen_it() -> None:
    for passed, broken in ((0.0, False), (LAG_S + 1, True)):
        journal = started()
        journal.write("Pod", "p0", None)
        journal.now += passed
        assert bool(journal.pod(1, evicted=True)) is broken


def test_grants_count_against_an_old_count_too() -> None:
    """Of three pods one went by itself, unseen, and one was evicted: no count ever allowed a second eviction."""
    journal = started()
    journal.write("Pod", "p0", None)
    assert journal.pod(1, evicted=True) == []
    assert journal.pod(2, evicted=True) != []


def test_pods_that_do_not_count_may_go() -> None:
    journal = started(least=3)
    assert journal.pod(9, job="other", evicted=True) == []
    journal.pod(3, ready=False)
    assert journal.pod(3, ready=False, evicted=True) == []
    journal.pod(4, deleting=True)
    assert journal.pod(4, deleting=True, evicted=True) == []


def test_a_pod_that_becomes_ready_again_is_counted_again() -> None:
    journal = started()
    journal.pod(0, ready=False)
    journal.now += LAG_S + 1
    journal.pod(0)
    assert journal.pod(1, evicted=True) == []


def test_shares_are_not_judged() -> None:
    journal = started(least="100%")
    assert journal.pod(0, evicted=True) == []


def test_a_victim_is_forbidden_when_its_budget_allowed_nothing_since_the_scheduler_looked() -> None:
    journal = started()
    budget_came = journal.revision
    pod = ("d", "p0")
    assert journal.books.forbid(pod, "u0", budget_came)
    assert not journal.books.forbid(pod, "u0", budget_came - 1)  # it was not there yet
    assert not journal.books.forbid(("d", "p9"), "u9", budget_came)
    journal.budget(2, allowed=1)
    assert not journal.books.forbid(pod, "u0", budget_came)
    journal.budget(2, allowed=0)
    assert not journal.books.forbid(pod, "u0", budget_came)
    assert journal.books.forbid(pod, "u0", journal.revision)
    assert not journal.books.forbid(pod, "another", journal.revision)


def test_books_begin_with_what_is_there() -> None:
    journal = started()
    books = BudgetBooks(journal.blobs, lambda: 0.0)
    books.begin(journal.revision)
    assert [(name, book.healthy, book.spare) for name, book in books.by_name.items()] == [(("d", "b"), 3, 1)]
    journal.write("PodDisruptionBudget", "b", None)
    assert not journal.books.by_name

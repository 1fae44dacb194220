# SPDX-License-Identifier: Apache-2.0
"""Answers for those who may see some namespaces only: objects of others are left out, neither named nor counted.

The rule is about every answer alike: a name `NAMESPACE/NAME` of another namespace may stand anywhere in it, so that a
new key of an answer is covered from its first day. Numbers about all pods are left out by their keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from pumice.cluster.api.kinds import KINDS
from pumice.core.objects.metadata import Object, is_list, is_mapping
from pumice.questions.adviser.waiting_jobs import WaitingJobs
from pumice.questions.whatif.naming import MORE as MORE_KINDS

ANOTHER: Final = "another namespace's"
MORE: Final = "more"
"""The key that says that something was left out."""
_KINDS: Final = "|".join(sorted({*MORE_KINDS, *(row.singular for row in KINDS.values())}))
_NAME: Final = re.compile(
    rf"(?<![\w./-])(?:(?:{_KINDS})/(?=[^\s/]+/[^\s/]))?"  # `job/` of `job/NAMESPACE/NAME`
    r"([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([A-Za-z0-9](?:[-.\w:]*\w)?)"
)
_COUNTED: Final = {"from"}
"""Keys of an estimate that count the pods of all namespaces."""
_OURS: Final = ("schema",)
"""Keys whose values only look like names of objects: `queue/1`."""
_UNKNOWN: Final = "it depends on pods of other namespaces"
_SUMMED: Final = {"queues", "utilisation", "unknown", "cycles"}
"""Keys of a what-if that are sums over all jobs."""
_LISTS: Final = ("evicted", "spared", "loops", "loops_ended", "moved_pods")
_OF_ALL: Final = {"digest", "took"}


@dataclass
class Withholding:
    """Leaves out what is of no namespace among `seen`. `any`: something was left out."""

    seen: Collection[str]
    any: bool = False

    def answer(self, found: Object) -> Object:
        """Return an answer without what is of other namespaces, with `more` when there was any."""
        told = {key: found[key] for key in _OURS if key in found}
        kept: Object = self._kept({key: value for key, value in found.items() if key not in told})
        if is_mapping(kept.get("estimates")):
            kept["estimates"] = {job: _uncounted(each) for job, each in kept["estimates"].items()}
        return {**told, **kept, MORE: self.any}

    def sees(self, namespace: str) -> bool:
        """Return whether objects of a namespace are shown; note that there are others."""
        found = namespace in self.seen
        self.any = self.any or not found
        return found

    def changes(self, found: Object) -> Object:
        """Return the answer to a what-if, about jobs and pods of the namespaces alone: whether these differ, and how
        many of them move. What is summed over all jobs is left out, and evictions do not tell whose job gets the room.
        """
        kept = {key: value for key, value in found.items() if key not in _SUMMED}
        kept["evicted"] = [self._evicted(row) for row in found["evicted"] if self._sees(row["pod"])]
        kept["pending"] = {job: self._kept(sides) for job, sides in found["pending"].items() if self._sees(job)}
        kept["moved_pods"] = {pod: sides for pod, sides in found["moved_pods"].items() if self._sees(pod)}
        kept["moved"] = len(kept["moved_pods"])
        kept["jobs"] = {job: change for job, change in found["jobs"].items() if self._sees(job)}
        for key in ("loops", "loops_ended"):
            kept[key] = [{**loop, "votes": {}} for loop in found[key] if self._is_own_loop(loop)]
        kept["spared"] = [pod for pod in found["spared"] if self._sees(pod)]
        differs = [key for key in ("jobs", "spared", "loops_ended", "moved_pods") if kept[key]]
        kept["same"] = not differs and not any(row["new"] for row in kept["evicted"]) and _is_even(kept["pending"])
        self.any = self.any or any(len(kept[key]) < len(found[key]) for key in ("jobs", "pending", *_LISTS))
        return kept

    def cycle(self, found: Object) -> Object:
        """Return a decided cycle, as far as it is about jobs and pods of the namespaces. What queues hold is left out,
        and so are the digest and the times, which are of all decisions.
        """
        kept = {key: value for key, value in found.items() if key not in _OF_ALL}
        kept["binds"] = [bind for bind in found["binds"] if bind["namespace"] in self.seen]
        kept["evicts"] = [self._evicted(evict) for evict in found["evicts"] if evict["namespace"] in self.seen]
        self.any = self.any or any(len(kept[key]) < len(found[key]) for key in ("binds", "evicts"))
        kept["turns"] = [_without(turn, "share") for turn in found["turns"]]
        kept["endings"] = {job: [_without(each, "held") for each in ends] for job, ends in found["endings"].items()}
        return kept

    def measures(self, found: Object) -> Object:
        """Return measures of the namespaces, which were measured as if there were no others, without the weights of
        queues.
        """
        summary = _without(found["summary"], "jain_of_queues")
        return {**found, "summary": summary, "queues": [_without(row, "weight") for row in found["queues"]]}

    def _evicted(self, row: Object) -> Object:
        """Return an eviction of one's own pod, without the name of another's job that gets the room, and without what
        plugins said about that job's queue.
        """
        kept = {key: self.text(value) if isinstance(value, str) else value for key, value in row.items()}
        return {**kept, "votes": []} if "votes" in kept else kept

    def _is_own_loop(self, loop: Object) -> bool:
        return not loop["queues"] and all(self._sees(job) for job in (*loop["jobs"], *loop["by"]))

    def waiting(self, jobs: WaitingJobs) -> WaitingJobs:
        """Return the waiting jobs of the namespaces, counted anew. Queues, whose amounts are those of all, are left
        out.
        """
        shown = [job for job in jobs.waiting if self._sees(job.job)]
        self.any = self.any or len(shown) < len(jobs.waiting)
        ranks = {job.job: rank for rank, job in enumerate((each for each in shown if each.position is not None), 1)}
        # The rank among those that are shown: the one among all would count the others.
        waiting = [replace(job, position=ranks.get(job.job)) for job in shown]
        return replace(jobs, queues={}, waiting=waiting)

    def refusal(self, said: str) -> str:
        """Return a message without objects of other namespaces, and without names that are near: one may be of them."""
        return self.text(said.partition("; near")[0])

    def text(self, said: str) -> str:
        """Return a text in which objects of other namespaces have no name."""
        return _NAME.sub(self._renamed, said)

    def _renamed(self, match: re.Match[str]) -> str:
        if self._sees(f"{match[1]}/{match[2]}"):
            return match[0]
        self.any = True
        return ANOTHER

    def _sees(self, name: str) -> bool:
        namespace, _, rest = name.partition("/")
        # `0/3 nodes`: numbers, not names.
        return namespace in self.seen or (namespace.isdigit() and rest.isdigit())

    def _kept(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if is_list(value):
            return [self._kept(each) for each in value if not self._is_hidden(each)]
        if is_mapping(value):
            return {
                key: None if is_mapping(each) and self._is_hidden(each) else self._kept(each)
                for key, each in value.items()
                if not self._is_hidden(key)
            }
        return value

    def _is_hidden(self, value: Any) -> bool:
        """Return whether a value names an object of another namespace: by itself, or by one of its own fields. A row
        that has a `namespace` is about that one.
        """
        if isinstance(value, str):
            found = self.text(value) != value
        elif is_mapping(value):
            found = any(isinstance(each, str) and self._names_another(each) for each in value.values())
            found = found or value.get("namespace", "") not in ("", *self.seen)
        else:
            found = False
        self.any = self.any or found
        return found

    def _names_another(self, text: str) -> bool:
        match = _NAME.fullmatch(text.rpartition(" ")[2])
        return match is not None and not self._sees(f"{match[1]}/{match[2]}")


def _without(row: Object, key: str) -> Object:
    return {name: value for name, value in row.items() if name != key}


def _is_even(pending: Object) -> bool:
    """Return whether jobs wait alike in both futures."""
    return all(sides["before"] == sides["after"] for sides in pending.values())


def _uncounted(estimate: Object) -> Object:
    """Return an estimate without numbers of pods."""
    kept = {key: value for key, value in estimate.items() if key not in _COUNTED}
    return kept if kept.get("known") else {**kept, "why": _UNKNOWN}

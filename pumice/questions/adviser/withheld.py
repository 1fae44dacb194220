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

from pumice.core.objects.metadata import Object, is_list, is_mapping
from pumice.questions.adviser.waiting_jobs import WaitingJobs

ANOTHER: Final = "another namespace's"
MORE: Final = "more"
"""The key that says that something was left out."""
_NAME: Final = re.compile(r"(?<![\w./-])([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([A-Za-z0-9](?:[-.\w:]*\w)?)")
_COUNTED: Final = {"from"}
"""Keys of an estimate that count the pods of all namespaces."""
_OURS: Final = ("schema",)
"""Keys whose values only look like names of objects: `queue/1`."""
_UNKNOWN: Final = "it depends on pods of other namespaces"


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
        if self._sees(match[0]):
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
        """Return whether a value names an object of another namespace: by itself, or by one of its own fields."""
        if isinstance(value, str):
            found = self.text(value) != value
        elif is_mapping(value):
            found = any(isinstance(each, str) and self._names_another(each) for each in value.values())
        else:
            found = False
        self.any = self.any or found
        return found

    def _names_another(self, text: str) -> bool:
        match = _NAME.fullmatch(text.rpartition(" ")[2])
        return match is not None and not self._sees(match[0])


def _uncounted(estimate: Object) -> Object:
    """Return an estimate without numbers of pods."""
    kept = {key: value for key, value in estimate.items() if key not in _COUNTED}
    return kept if kept.get("known") else {**kept, "why": _UNKNOWN}

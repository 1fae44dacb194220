# SPDX-License-Identifier: Apache-2.0
"""ClusterRoles that collect the rules of others by their labels (Kubernetes' clusterrole-aggregation-controller)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pumice.cluster.machine import Machine
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.messages.commands import ApiRequest, Patch
from pumice.core.objects.metadata import Object, labels_of, section
from pumice.storage.codec import pack

ROLE: Final = "ClusterRole"
USER: Final = "clusterrole-aggregation-controller"


class AggregationMachine(Machine):
    """Keeps the rules of collecting roles up to date."""

    kinds = (ROLE,)

    def __init__(self) -> None:
        self._roles: dict[str, Object] = {}
        self._stale = False

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        self._roles.pop(obj["metadata"]["name"], None)
        if not deleted:
            self._roles[obj["metadata"]["name"]] = obj
        self._stale = True

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        if not self._stale:
            return ()
        self._stale = False
        requests: list[ApiRequest] = []
        for name, role in sorted(self._roles.items()):
            selectors: list[Object] = section(role, "aggregationRule").get("clusterRoleSelectors") or []
            if selectors and (rules := self._collected(name, selectors)) != (role.get("rules") or []):
                requests.append(Patch(ROLE, "", name, pack({"rules": rules}), user=USER, manager=USER))
        return requests

    def _collected(self, name: str, selectors: Sequence[Object]) -> list[Object]:
        """Return the rules of the selected roles in the order of their names, each once."""
        chosen = [
            role
            for selector in selectors
            for other, role in sorted(self._roles.items())
            if other != name and _selects(selector, labels_of(role))
        ]
        found: list[Object] = []
        for rule in [rule for role in chosen for rule in role.get("rules") or ()]:
            if rule not in found:
                found.append(rule)
        return found


def _selects(selector: Any, labels: dict[str, str]) -> bool:
    try:
        return label_selector(selector).matches(labels)
    except SelectorError:
        return False

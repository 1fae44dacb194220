# SPDX-License-Identifier: Apache-2.0
"""The number of members in the status of HyperNodes, as a pure machine (source: Volcano's `controllers/hypernode`).

What the nodes' labels or a fabric manager say of the topology is not made into HyperNodes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.machine import Machine
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.messages.commands import ApiRequest, UpdateStatus
from pumice.core.objects.metadata import Object, rows, section, text_map
from pumice.core.state.hypernodes import MatchedNames
from pumice.storage.codec import pack

USER: Final = "hypernode-controller"
KIND: Final = "HyperNode"


class HyperNodeMachine(Machine):
    """Counts the members of each HyperNode when the HyperNode has come or changed: nodes that come later count from its
    next change on, as in Volcano.
    """

    kinds = ("Node", KIND)

    def __init__(self) -> None:
        self._labels: dict[str, dict[str, str]] = {}  # of nodes
        self._fresh: dict[str, Object] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        name = obj["metadata"]["name"]
        known = self._fresh if kind == KIND else self._labels
        known.pop(name, None)
        if not deleted:
            known[name] = obj if kind == KIND else text_map(obj["metadata"].get("labels"))

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        fresh, self._fresh = self._fresh, {}
        requests: list[ApiRequest] = []
        for name, hyper_node in fresh.items():
            selectors = [section(member, "selector") for member in rows(section(hyper_node, "spec"), "members")]
            count = len(set[str]().union(*map(self._members, selectors)))
            if count != section(hyper_node, "status").get("nodeCount", 0):
                requests.append(UpdateStatus(KIND, "", name, pack({"nodeCount": count}), user=USER))
        return requests

    def _members(self, selector: Object) -> set[str]:
        """Return the names of members (GetMembers): a name counts whether there is such a node or HyperNode or not."""
        if name := section(selector, "exactMatch").get("name"):
            return {name}
        pattern = section(selector, "regexMatch").get("pattern")
        if pattern is not None:
            return MatchedNames().found([pattern], self._labels.keys())[pattern]
        labels = section(selector, "labelMatch")
        if not (labels.get("matchLabels") or labels.get("matchExpressions")):
            return set()
        try:
            wanted = label_selector(labels)
        except SelectorError:
            return set()
        return {node for node, held in self._labels.items() if wanted.matches(held)}

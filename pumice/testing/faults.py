# SPDX-License-Identifier: Apache-2.0
"""Faults that clients of a cluster for tests meet: `cluster.faults.lose_answer(verb="create", kind="Pod", times=1)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack

import msgspec

from pumice.cluster.faults.profiles import read_profile, read_profile_text, rule_of
from pumice.cluster.faults.rules import FaultProfile, Verb
from pumice.config.read import ValuePlace
from pumice.config.yaml_tree import Document
from pumice.runtime.serving import only_client_faults

if TYPE_CHECKING:
    from pumice.testing.hosting import Host

WHERE: Final = "faults"
Profile = str | Path | Mapping[str, Any]
"""Names of packaged profiles and paths of files, joined by "+"; the text of a profile; or its parsed form."""


def profile_of(given: Profile | None) -> FaultProfile:
    """Return the profile; one without rules for None. Raises ConfigError."""
    if given is None:
        return FaultProfile()
    if isinstance(given, Mapping):
        return read_profile(ValuePlace(Document(WHERE, given)), dict(given))
    text = str(given)
    return read_profile_text(text, WHERE) if ":" in text else only_client_faults(text, WHERE)


class Selected(TypedDict, total=False):
    """Whom a fault strikes, and when: the keys of a rule (docs/reference/faults.md)."""

    rule: str
    client: str
    user: str
    verb: Verb | Sequence[Verb]
    kind: str | Sequence[str]
    subresource: str
    namespace: str
    name: str
    labels: str
    probability: float
    nth: int | Sequence[int]
    skip: int
    times: int
    from_s: float
    until_s: float


class SelectedNodes(TypedDict, total=False):
    """Which nodes a fault strikes, and when."""

    rule: str
    name: str
    labels: str
    probability: float
    from_s: float
    until_s: float


class AddedFault:
    """A fault in force. `rule`: its name in the journal."""

    def __init__(self, host: Host, rule: str) -> None:
        self.rule = rule
        self._host = host

    @property
    def struck(self) -> int:
        """Return how many requests, or nodes, it has struck."""
        return self._host.faults_struck().get(self.rule, 0)


class ClusterFaults:
    """The faults of a cluster; a reset takes back what was added. Requests of the cluster's own methods and of its
    `client` meet none.

    Each method adds a fault and returns it; several may be in force, and of those that would strike a request the first
    does. docs/reference/faults.md says what each does. All raise ConfigError for values that do not go together.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def begin(self, profile: Profile) -> None:
        """Put a profile in force, in place of all faults before: "rough", "mine.yaml", or its content."""
        self._host.begin_faults(profile_of(profile))

    def stop(self) -> None:
        """End all faults."""
        self._host.begin_faults(FaultProfile())

    @property
    def struck(self) -> dict[str, int]:
        """Return how many requests, or nodes, each rule in force has struck, without those that have struck none."""
        return self._host.faults_struck()

    def refuse(
        self,
        *,
        code: Literal[409, 429, 500, 503, 504] = 503,
        retry_after_s: int | None = None,
        **selected: Unpack[Selected],
    ) -> AddedFault:
        """Refuse requests, and do not carry them out."""
        return self._add("refuse", selected, code=code, retry_after_s=retry_after_s)

    def arrive_late(self, *, delay_s: float = 1.0, **selected: Unpack[Selected]) -> AddedFault:
        """Carry requests out so much later, in real seconds."""
        return self._add("arrive-late", selected, delay_s=delay_s)

    def answer_late(self, *, delay_s: float = 1.0, **selected: Unpack[Selected]) -> AddedFault:
        """Carry requests out, and answer so much later, in real seconds."""
        return self._add("answer-late", selected, delay_s=delay_s)

    def lose_answer(self, *, answer: Literal["cut", 500, 504] = "cut", **selected: Unpack[Selected]) -> AddedFault:
        """Carry requests out, and lose the answer."""
        return self._add("lose-answer", selected, answer=answer)

    def repeat(self, **selected: Unpack[Selected]) -> AddedFault:
        """Carry writes out twice, as a proxy does that asks again."""
        return self._add("repeat", selected)

    def cut_answer(self, *, size: int = 1, **selected: Unpack[Selected]) -> AddedFault:
        """Carry requests out, and end the connection after so many bytes of the answer."""
        return self._add("cut-answer", selected, bytes=size)

    def cut_watch(self, *, events: int = 1, within: bool = False, **selected: Unpack[Selected]) -> AddedFault:
        """End the connection of watches after so many events, before or `within` the next one."""
        return self._add("cut-watch", selected, events=events, within=within)

    def delay_watch(
        self, *, delay_s: float = 1.0, behind: str | None = None, **selected: Unpack[Selected]
    ) -> AddedFault:
        """Delay the events of watches, in real seconds; or until the client's watch of another kind is ahead."""
        return self._add("delay-watch", selected, delay_s=delay_s, behind=behind)

    def expire(self, *, events: int = 0, **selected: Unpack[Selected]) -> AddedFault:
        """End watches with 410 after so many events, and refuse with it lists that go on."""
        return self._add("expire", selected, events=events)

    def stale(self, *, changes: int = 1, **selected: Unpack[Selected]) -> AddedFault:
        """Answer lists at resourceVersion=0 with the state of so many changes ago."""
        return self._add("stale", selected, changes=changes)

    def restart(self, *, down_s: float = 1.0, carried_out: bool = False, **selected: Unpack[Selected]) -> AddedFault:
        """Take the server down at a request, for so many real seconds; give `times`, or it never stays up."""
        return self._add("restart", selected, down_s=down_s, carried_out=carried_out)

    def late_webhook(self, *, delay_s: float = 1.0, webhook: str = "*", **selected: Unpack[Selected]) -> AddedFault:
        """Ask admission webhooks so much later, in real seconds, within their time."""
        return self._add("late-webhook", selected, delay_s=delay_s, webhook=webhook)

    # --- nodes

    def dead_kubelet(self, *, grace_s: float = 40.0, **selected: Unpack[SelectedNodes]) -> AddedFault:
        """Silence the kubelets of nodes; after so long the nodes are Unknown, and tainted."""
        return self._add("dead-kubelet", selected, grace_s=grace_s)

    def slow_kubelet(self, *, delay_s: float = 5.0, **selected: Unpack[SelectedNodes]) -> AddedFault:
        """Delay what the kubelets of nodes report, in the cluster's time."""
        return self._add("slow-kubelet", selected, delay_s=delay_s)

    def skewed_clock(self, *, ahead_s: float = 30.0, **selected: Unpack[SelectedNodes]) -> AddedFault:
        """Set the clocks of nodes ahead, or behind."""
        return self._add("skewed-clock", selected, ahead_s=ahead_s)

    def lost_node(self, **selected: Unpack[SelectedNodes]) -> AddedFault:
        """Remove nodes, as a cloud does whose machines are gone."""
        return self._add("lost-node", selected)

    def _add(self, fault: str, selected: Selected | SelectedNodes, **own: Any) -> AddedFault:
        given = msgspec.to_builtins({**selected, **own})
        return AddedFault(self._host, self._host.add_fault(rule_of(WHERE, fault, given)))

"""Machines on an API: when a host looks at it, and when all hosts rest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pumice.cluster.kernel.machine_host import MachineHost, rest
from pumice.cluster.kernel.turns import Turns
from pumice.core.messages.commands import ApiRequest
from pumice.core.messages.replies import Accepted
from tests.cluster.kernel.test_turns import Asking


class Api:
    """Has objects of some kinds, which never change; notes who asked."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = frozenset(kinds)
        self.asked: list[str] = []

    def has(self, kinds: Sequence[str]) -> bool:
        return not self.kinds.isdisjoint(kinds)

    def tell_all(self, turns: Turns) -> int:
        return self.tell_news(turns, 0)

    def tell_news(self, turns: Turns, since: int) -> int:
        return 1

    def apply(self, request: ApiRequest, now: float) -> Accepted:
        self.asked.append(getattr(request, "name", ""))
        return Accepted(1)


def test_hosts_have_turns_until_none_has_anything_to_ask() -> None:
    api = Api()
    rest([MachineHost(api, [Asking(name, times, "Pod")], rounds=1) for name, times in (("a", 1), ("b", 2))], 1.0, 10)
    assert api.asked == ["a", "b", "b"]


@pytest.mark.parametrize(("due", "steps"), [(None, 1), (5.0, 1), (1.0, 4)])
def test_a_machine_that_is_due_now_has_further_turns(due: float | None, steps: int) -> None:
    machine = Asking("a", 0, "Pod", due=due)
    rest([MachineHost(Api(), [machine])], 1.0, 4)
    assert machine.steps == steps


@pytest.mark.parametrize(("there", "steps"), [((), 0), (("Queue",), 1)])
def test_a_host_waits_for_a_kind(there: tuple[str, ...], steps: int) -> None:
    machine = Asking("a", 0, "Pod", "Queue")
    MachineHost(Api(*there), [machine], ("Queue",)).turn(1.0)
    assert machine.steps == steps

"""A pod without a PodGroup gets the name of its group once, and again when the name was refused or taken away."""

from __future__ import annotations

from pumice.cluster.controllers.groups import PodGroupMachine
from pumice.core.messages.commands import ApiRequest, Create, Patch
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object
from tests.kit.pods import pod

LATE = Refused(504, "Timeout", "it took too long")


def joining(reply: ApiReply | None) -> tuple[PodGroupMachine, Object]:
    """A machine that has asked for the group and for its name on the pod, with the answer to the latter."""
    machine, alone = PodGroupMachine(), pod("p")
    machine.observe("Pod", alone, 1)
    create, patch = asked(machine, Accepted(2, b"")), asked(machine, reply)
    assert (type(create), type(patch)) == (Create, Patch)
    return machine, alone


def asked(machine: PodGroupMachine, reply: ApiReply | None) -> ApiRequest:
    (request,) = machine.step(0.0)
    if reply is not None:
        machine.answered(request, reply, 0.0)
    return request


def test_a_report_before_the_answer_asks_for_nothing() -> None:
    machine, alone = joining(None)
    machine.observe("Pod", alone, 3)
    assert machine.step(0.0) == []


def test_a_report_older_than_the_name_asks_for_nothing() -> None:
    machine, alone = joining(Accepted(4, b""))
    machine.observe("Pod", alone, 3)
    assert machine.step(0.0) == []


def test_a_name_that_is_gone_later_is_given_again() -> None:
    machine, alone = joining(Accepted(4, b""))
    machine.observe("Pod", alone, 5)
    assert isinstance(asked(machine, None), Patch)


def test_a_refused_name_is_given_again() -> None:
    machine, alone = joining(LATE)
    machine.observe("Pod", alone, 5)
    assert isinstance(asked(machine, None), Patch)


def test_a_pod_that_has_its_name_is_forgotten() -> None:
    machine, alone = joining(None)
    machine.observe("Pod", alone, 4, deleted=True)  # of the pods without a group
    machine.observe("Pod", alone, 5)
    assert isinstance(asked(machine, None), Patch)

"""Host ports: one address stands for all."""

from typing import Any

import pytest

from pumice.core.kube.placed import placed_pods
from pumice.core.plugins.predicates.ports import PortsInUse
from tests.core.kube.sessions import opened, put, take, task_named
from tests.kit import node, pod


def using(name: str, address: str, protocol: str, port: int, **where: Any) -> dict[str, Any]:
    one = pod(name, **where)
    one["spec"]["containers"][0]["ports"] = [{"hostPort": port, "hostIP": address, "protocol": protocol}]
    return one


@pytest.mark.parametrize(
    ("used", "wanted", "clash"),
    [
        (("", "TCP", 80), ("", "TCP", 80), True),
        (("", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("", "TCP", 80), ("", "UDP", 80), False),
        (("", "TCP", 80), ("", "TCP", 81), False),
    ],
)
def test_when_ports_clash(used: tuple[str, str, int], wanted: tuple[str, str, int], clash: bool) -> None:
    session = opened(node("n0"), node("n1"), using("r", *used, node="n0"), using("p", *wanted))
    ports, waiting = placed_pods(session).reader(PortsInUse), task_named(session, "default/p")
    (port,) = waiting.template.host_ports
    assert ports.rivals(port).tolist() == [int(clash), 0]


def test_ports_come_and_go_with_pods() -> None:
    session = opened(node("n0"), using("p", "", "TCP", 80))
    placed, waiting = placed_pods(session), task_named(session, "default/p")
    ports = placed.reader(PortsInUse)
    assert ports is placed_pods(session).reader(PortsInUse)
    (port,) = waiting.template.host_ports
    early = ports.rivals(port)
    put(session, waiting, 0)
    ports.catch_up()
    assert early.tolist() == [1] == ports.rivals(port).tolist() == ports.rivals(("0.0.0.0", "TCP", 80)).tolist()
    take(session, waiting, 0)
    ports.catch_up()
    assert early.tolist() == [0]

"""Looking again at what failed: Volcano's delays, in the order of their time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.scheduling.resync import Awaited, ResyncQueue, delay_s
from pumice.core.messages.decisions import Bind, BindContext, ClaimedDevices


def test_delays_double_from_5_ms_up_to_1000_s() -> None:
    assert [delay_s(n) for n in range(5)] == [0.005, 0.01, 0.02, 0.04, 0.08]
    assert delay_s(17) == pytest.approx(655.36)
    assert delay_s(18) == delay_s(10_000) == 1000.0


def test_a_success_starts_from_the_beginning() -> None:
    queue = ResyncQueue()
    assert [queue.failed(0.0, "ns", "a", "u1") for _ in range(3)] == [0.005, 0.01, 0.02]
    assert queue.failed(0.0, "ns", "b", "u2") == 0.005
    queue.succeeded("u1")
    assert queue.failed(0.0, "ns", "a", "u1") == 0.005
    queue.succeeded("never failed")


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 5)), max_size=40), st.floats(0, 1200))
def test_all_that_is_due_and_nothing_else_comes_out_in_order(failures: list[tuple[float, int]], now: float) -> None:
    queue = ResyncQueue()
    due_at = [at + queue.failed(at, "ns", f"p{pod}", f"u{pod}", evicting=pod % 2 == 0) for at, pod in failures]
    assert queue.next_at == min(due_at, default=float("inf"))
    taken = queue.take_due(now)
    assert [item.at for item in taken] == sorted(at for at in due_at if at <= now)
    assert all(item.evicting == (int(item.uid[1:]) % 2 == 0) for item in taken)
    assert len(queue) == len(due_at) - len(taken)


def bind(uid: str, pre_bind: BindContext | None = None) -> Bind:
    return Bind("ns", uid, uid, "n1", "ns/j", pre_bind)


def test_a_bind_that_waits_for_volumes_is_awaited_so_much_longer() -> None:
    awaited = Awaited(10.0)
    slow, devices = BindContext(provisions=("ns/c",), timeout_s=100.0), BindContext(devices=(ClaimedDevices("ns/d"),))
    for uid, needs in (("slow", slow), ("quick", None), ("devices", devices)):
        awaited.add(0.0, bind(uid, needs))
    assert len(awaited) == 3
    assert {each.uid: each.pre_bind for each in awaited} == {"quick": None, "slow": slow, "devices": devices}
    assert awaited.next_at == 10.0
    assert sorted(each.uid for each in awaited.take_overdue(50.0)) == ["devices", "quick"]
    assert awaited.next_at == 110.0
    awaited.came("slow")
    assert (len(awaited), awaited.next_at) == (0, float("inf"))


def test_what_is_put_off_is_overdue_so_much_later_and_in_the_same_order() -> None:
    awaited = Awaited(30.0)
    awaited.add(0.0, Bind("d", "a", "a", "n", "j"))
    awaited.add(1.0, Bind("d", "b", "b", "n", "j", BindContext(provisions=("d/c",), timeout_s=5.0)))
    awaited.add(2.0, Bind("d", "c", "c", "n", "j"))
    awaited.put_off(130.0, 100.0)
    assert awaited.next_at == 130.0
    assert awaited.take_overdue(129.9) == []
    assert [each.name for each in awaited.take_overdue(131.9)] == ["a"]
    assert [each.name for each in awaited.take_overdue(136.0)] == ["c", "b"]


def test_what_is_sent_after_a_long_halt_is_not_put_off_by_it() -> None:
    """It would be held for as long as the process stood still, and whatever is sent after it with it."""
    awaited = Awaited(30.0)
    awaited.add(0.0, bind("before"))
    awaited.add(1000.0, bind("since"))
    awaited.put_off(1000.0, 970.0)
    awaited.add(1001.0, bind("later"))
    assert awaited.next_at == 1000.0
    assert [each.uid for each in awaited.take_overdue(1000.5)] == ["before"]
    assert awaited.next_at == 1030.0
    assert [each.uid for each in awaited.take_overdue(1031.0)] == ["since", "later"]

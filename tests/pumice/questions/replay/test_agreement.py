"""Two schedulers on the same cycles: what counts as the same, and what is only a matter of when one looks."""

from pumice.core.messages.decisions import Bind, CycleResult, Decision, Evict
from pumice.core.messages.events import CycleRecord
from pumice.core.shadow.guide import Guide, OtherChoice
from pumice.questions.replay.agreement import Agreement, differences
from pumice.storage.history import RecordedCycle


def cycle(number: int, *decisions: Decision) -> RecordedCycle:
    record = CycleRecord(number, 1.0, 0, 1, 1, "conf", "", len(decisions), observed=True)
    return RecordedCycle(number, 1.0, record, decisions, (), (), None)


def here(number: int, *decisions: Decision) -> CycleResult:
    binds = tuple(each for each in decisions if isinstance(each, Bind))
    evicts = tuple(each for each in decisions if isinstance(each, Evict))
    return CycleResult(number, "digest", binds, evicts)


def bind(name: str, node: str = "n1") -> Bind:
    return Bind("ns", name, f"u-{name}", node, "ns/g")


def evict(name: str) -> Evict:
    return Evict("ns", name, f"u-{name}", "n1", "ns/g", "preempt")


def told(found: Agreement) -> tuple[int, int, int, int, int]:
    return found.decisions, found.same, found.other_node, found.only_there, len(found.only_here)


def test_the_order_and_the_words_of_decisions_do_not_count() -> None:
    assert differences(cycle(1, bind("a"), bind("b"), evict("c")), here(1, bind("b"), bind("a"), evict("c"))) == []


def test_each_sort_of_difference_is_counted_and_named() -> None:
    found = Agreement()
    found.note(cycle(1, bind("a"), bind("b"), bind("c")), here(1, bind("a"), bind("b", "n2"), bind("d")))
    assert told(found) == (3, 1, 1, 1, 1)
    assert [each.task for each in (*found.differences, *found.only_here)] == ["ns/b", "ns/c", "ns/d"]
    assert found.share == 1 / 3


def test_what_the_other_decides_in_another_cycle_is_not_held_against_it() -> None:
    found = Agreement()
    found.note(cycle(1), here(1, bind("a"), evict("b")))
    assert told(found) == (0, 0, 0, 0, 2)
    found.note(cycle(2, bind("a")), here(2, bind("a")))
    assert told(found) == (1, 1, 0, 0, 1)


def test_shares_of_a_journal_add_up() -> None:
    whole, first, second = Agreement(), Agreement(), Agreement()
    cycles = [(cycle(1), here(1, bind("a"))), (cycle(2, bind("a"), bind("b")), here(2, bind("b", "n2")))]
    for number, each in enumerate(cycles):
        whole.note(*each)
        (first, second)[number].note(*each)
    first.add(second)
    assert first.told() == whole.told()


def test_without_decisions_there_is_no_share() -> None:
    assert Agreement().told().share is None


def test_equally_good_nodes_are_the_same_and_what_a_guide_went_along_with_is_not() -> None:
    seen = cycle(1, bind("a", "n2"), bind("b", "n2"), bind("c", "n2"))
    guide = Guide({})
    guide.choices["u-a"] = OtherChoice("n1", "n2", (3.0, 3.0), tie=True)
    guide.choices["u-b"] = OtherChoice("n1", "n2", (3.0, 2.0))
    found = Agreement()
    found.note(seen, here(1, *seen.decisions), guide)
    assert (*told(found), found.ties) == (3, 2, 1, 0, 0, 1)
    (other,) = found.differences
    assert (other.task, other.decided and other.decided["node"]) == ("ns/b", "n1")
    assert other.decided is not None
    assert other.decided["why"] == "n1 scores 3, n2 2"

"""Who may be asked to go: how plain answers are merged, and that masks over many nodes say what each node by itself
says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.session.points.victims import Mask
from pumice.core.session.points.votes import Vote
from tests.core.plugins.world import configuration, open_world
from tests.core.session.points.answers import constant, given_answers, points
from tests.kit import gang, node, queue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import BoolArray, TaskBatch

PERMIT, ABSTAIN, REJECT = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT


class Victim(NamedTuple):
    """Enough of a task to be a victim."""

    uid: str


def victims(letters: str) -> list[Victim]:
    return [Victim(letter) for letter in letters]


def intersection(tiers: Sequence[str], answers: dict[str, tuple[str, Vote]], fix: tuple[str, ...] = ()) -> str:
    told = {name: (victims(letters), vote) for name, (letters, vote) in answers.items()}
    made = given_answers("Preemptable", tiers, told, fix=fix)
    candidates: Any = victims("uvwxyz")
    return "".join(task.uid for task in made(None, candidates))


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({}, ""),
        ({"a": ("xyz", PERMIT)}, "xyz"),
        ({"a": ("zyx", PERMIT), "b": ("xz", PERMIT)}, "zx"),  # in the order of the first
        ({"a": ("xy", ABSTAIN), "b": ("z", PERMIT)}, "z"),
        ({"a": ("", PERMIT), "c": ("z", PERMIT)}, "z"),  # an empty answer ends its tier only
        ({"a": ("x", PERMIT), "b": ("", PERMIT), "c": ("z", PERMIT)}, "z"),
        ({"a": ("", REJECT), "c": ("z", PERMIT)}, "z"),  # reject with nobody is permit with nobody
        ({"a": ("x", PERMIT), "c": ("yz", PERMIT)}, "x"),  # the first tier with victims decides
        ({"a": ("x", PERMIT), "b": ("y", PERMIT)}, ""),
        ({"a": ("x", PERMIT), "b": ("y", PERMIT), "c": ("z", PERMIT)}, "z"),
    ],
)
def test_the_plugins_of_a_tier_must_agree_on_victims(answers: dict[str, tuple[str, Vote]], found: str) -> None:
    assert intersection(["ab", "cd"], answers) == found


def test_an_intersection_that_became_empty_starts_anew_unless_mended() -> None:
    answers = {"a": ("x", PERMIT), "b": ("y", PERMIT), "c": ("z", PERMIT), "d": ("w", PERMIT)}
    assert intersection(["abc", "d"], answers) == "z"
    assert intersection(["abc", "d"], answers, fix=("intersection-stays-empty",)) == "w"


def test_an_empty_answer_is_a_veto_when_mended() -> None:
    answers = {"a": ("", PERMIT), "c": ("z", PERMIT)}
    assert intersection(["ab", "cd"], answers, fix=("empty-answer-vetoes",)) == ""
    assert intersection(["ab", "cd"], {"a": ("", ABSTAIN), "c": ("z", PERMIT)}, fix=("empty-answer-vetoes",)) == "z"


letters = st.text("uvwxyz", max_size=4).map(lambda text: "".join(dict.fromkeys(text)))


@given(st.dictionaries(st.sampled_from("abcd"), st.tuples(letters, st.sampled_from([PERMIT, ABSTAIN]))))
def test_victims_are_somebodys_answer_and_a_veto_takes_all_or_nothing(answers: dict[str, tuple[str, Vote]]) -> None:
    found = intersection(["ab", "cd"], answers)
    assert set(found) <= {letter for said, _ in answers.values() for letter in said}
    assert intersection(["ab", "cd"], answers, fix=("empty-answer-vetoes",)) in ("", found)


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({}, ""),
        ({"a": ["xy", "z"], "b": ["y"]}, "xyz"),
        ({"a": [""], "c": ["z"]}, "z"),
        ({"a": ["x"], "c": ["z"]}, "x"),
    ],
)
def test_victims_to_shuffle_are_a_union_within_a_tier(answers: dict[str, list[str]], found: str) -> None:
    made: Any = points("ab", "cd").victim_tasks
    for name, parts in answers.items():
        made.add(name, [constant(victims(letters)) for letters in parts])
    assert "".join(task.uid for task in made([])) == found


# --- masks
# --------------------------------------------------------------------------------------------------------------------


def of_bits(bits: int) -> Mask[Task]:
    """Lets those tasks go whose bit is set, by their row."""

    def ask(_: Task, batch: TaskBatch) -> BoolArray:
        mask: BoolArray = (bits >> batch.rows) & 1 > 0
        return mask

    return Mask(ask)


@given(st.lists(st.integers(0, 2**9 - 1), min_size=1, max_size=4), st.booleans(), st.sets(st.integers(0, 3)))
def test_many_nodes_are_told_what_each_by_itself_is_told(said: list[int], one_tier: bool, listed: set[int]) -> None:
    """A mask is asked of one node or of all; a plain rule among masks is merged as if it were one."""
    gangs = [gang(f"j{i}", queue="q", pods=3, nodes=[f"n{i}"] * 3) for i in range(3)]
    session = open_world(configuration(["gang"]), [node(f"n{i}") for i in range(3)], queue("q"), *gangs)
    tiers = ["abcd"] if one_tier else ["ab", "cd"]
    masks, mixed = (points(*tiers, as_batch=session.residents.batch).preemptable for _ in range(2))
    for place, (name, bits) in enumerate(zip("abcd", said, strict=False)):
        masks.add(name, of_bits(bits))
        mixed.add(name, plain(bits) if place in listed else of_bits(bits))
    assert masks.by_columns
    assert mixed.by_columns is not any(place < len(said) for place in listed)
    batch, preemptor = session.residents.on(range(3)), session.nodes.tasks_on(0)[0]
    in_batch = {task.key for task in session.residents.tasks(batch.rows[masks.over(preemptor, batch)])}
    for point in (masks, mixed):
        each = [point(preemptor, session.nodes.tasks_on(row)) for row in range(3)]
        assert {task.key for of_node in each for task in of_node} == in_batch


def plain(bits: int) -> Callable[[Task, Sequence[Task]], tuple[list[Task], Vote]]:
    """The mask as a plain rule."""
    return lambda _, candidates: ([task for task in candidates if bits >> task.row & 1], PERMIT)


def test_with_a_fix_nodes_are_asked_one_by_one() -> None:
    for fix in ("empty-answer-vetoes", "intersection-stays-empty"):
        made = points("a", fix=(fix,)).preemptable
        made.add("a", of_bits(1))
        assert not made.by_columns

# SPDX-License-Identifier: Apache-2.0
"""Orphans and the owners that adopt them find each other as a walk over all of them would, and without one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.controllers.pods_of import Belongs, Key, Orphans, by_selector
from pumice.core.objects.metadata import Object

KEYS = st.tuples(st.sampled_from("mn"), st.sampled_from("abcd"))
LABELS = st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"))
EXPRESSIONS = st.sampled_from(
    [
        {"key": "y", "operator": "Exists"},
        {"key": "x", "operator": "In", "values": ["1", "2"]},
        {"key": "x", "operator": "In", "values": ["2"]},
        {"key": "x", "operator": "DoesNotExist"},
    ]
)
SELECTORS = st.one_of(
    st.none(),
    st.just({"matchLabels": {"not valid!": "1"}}),
    st.fixed_dictionaries({"matchLabels": LABELS}),
    st.fixed_dictionaries({"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSIONS, max_size=2)}),
)
STEPS = st.one_of(
    st.tuples(st.just("owner"), KEYS, SELECTORS),
    st.tuples(st.just("orphan"), KEYS, LABELS),
    st.tuples(st.sampled_from(["lose owner", "lose", "take"]), KEYS, st.none()),
)


def pod(key: Key, labels: dict[str, str]) -> Object:
    return {"kind": "Pod", "metadata": {"namespace": key[0], "name": key[1], "labels": labels}}


class Walks:
    """The same by a walk over all."""

    def __init__(self) -> None:
        self.owners: dict[Key, Belongs] = {}
        self.orphans: dict[Key, Object] = {}

    def note(self, key: Key, orphan: Object) -> list[Key]:
        self.orphans[key] = orphan
        return [owner for owner, belongs in self.owners.items() if owner[0] == key[0] and belongs(orphan)]

    def take(self, owner: Key) -> list[Object]:
        belongs = self.owners[owner]
        found = {key: each for key, each in self.orphans.items() if key[0] == owner[0] and belongs(each)}
        for key in found:
            del self.orphans[key]
        return [*found.values()]


@given(st.lists(STEPS, max_size=40))
def test_they_find_each_other_as_by_a_walk(steps: list[tuple[str, Key, Any]]) -> None:
    orphans, walks = Orphans(), Walks()
    for step, key, said in steps:
        match step:
            case "owner":
                walks.owners[key] = by_selector(said)
                orphans.adopt_by(key, by_selector(said))
            case "orphan":
                assert orphans.note(key, pod(key, said)) == walks.note(key, pod(key, said))
            case "lose owner":
                walks.owners.pop(key, None)
                orphans.lose_owner(key)
            case "lose":
                walks.orphans.pop(key, None)
                orphans.lose(key)
            case _ if key in walks.owners:
                assert orphans.take(key) == walks.take(key)
            case _:
                assert orphans.test_of(key) is None


def test_owners_of_other_labels_are_not_asked() -> None:
    asked = list[str]()

    def test(name: str) -> Belongs:
        def picks(_child: Object) -> bool:
            asked.append(name)
            return True

        return Belongs(picks, ("uid", name))

    orphans = Orphans()
    for number in range(100):
        orphans.adopt_by(("n", f"j{number}"), test(f"u{number}"))
        orphans.note(("n", f"p{number}"), pod(("n", f"p{number}"), {"app": "plain"}))
    assert asked == []
    assert orphans.note(("n", "p"), pod(("n", "p"), {"app": "plain", "uid": "u7"})) == [("n", "j7")]
    assert [each["metadata"]["name"] for each in orphans.take(("n", "j7"))] == ["p"]
    assert set(asked) == {"u7"}

"""The tree of HyperNodes."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.kube.patterns import Patterns
from pumice.core.objects.hyper_node import read_hyper_node
from pumice.core.objects.node import read_node
from pumice.core.state.hypernodes import TOP, HyperNodeTree, MatchedNames, build_tree, replaced_tree
from tests.kit.hyper_nodes import hyper_node
from tests.kit.nodes import node

NODES = [read_node(node(f"n{i}", labels={"rack": f"r{i // 2}"})) for i in range(6)]


def tree(*objects: dict[str, Any]) -> HyperNodeTree:
    return build_tree([read_hyper_node(obj) for obj in objects], NODES)


def selecting(name: str, **selector: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"tier": 1, "members": [{"type": "Node", "selector": selector}]}}


def rows(found: HyperNodeTree, name: str) -> list[int]:
    members: list[int] = found.domains[name].rows.tolist()
    return members


def test_without_hyper_nodes_the_top_alone_holds_the_cluster() -> None:
    found = tree()
    assert found.is_trivial
    assert (found.top.tier, rows(found, TOP)) == (1, [0, 1, 2, 3, 4, 5])
    assert found.lowest_of(0) == TOP


def test_members_by_name_by_pattern_and_by_label() -> None:
    assert rows(tree(hyper_node("s", 1, nodes=["n1", "n5", "absent"])), "s") == [1, 5]
    assert rows(tree(selecting("s", regexMatch={"pattern": "n[0-2]$"})), "s") == [0, 1, 2]
    assert rows(tree(selecting("s", labelMatch={"matchLabels": {"rack": "r1"}})), "s") == [2, 3]
    assert rows(tree(selecting("s", labelMatch={})), "s") == []
    assert rows(tree(selecting("s", regexMatch={"pattern": "("})), "s") == []


def test_a_selector_that_cannot_be_read_selects_nothing_and_the_others_count() -> None:
    unread = {"matchExpressions": [{"key": "rack", "operator": "Around", "values": ["r1"]}]}
    members = [{"type": "Node", "selector": each} for each in ({"labelMatch": unread}, {"exactMatch": {"name": "n5"}})]
    assert rows(tree({"metadata": {"name": "s"}, "spec": {"tier": 1, "members": members}}), "s") == [5]


def test_patterns_are_tried_on_names_they_have_not_seen_and_on_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    those_in = Patterns.those_in

    def spied(self: Patterns, text: str) -> list[int]:
        tried.append(text)
        return those_in(self, text)

    monkeypatch.setattr(Patterns, "those_in", spied)
    matched = MatchedNames()
    assert matched.found(["1$", "(", "n"], {"n1", "m1"}) == {"1$": {"n1", "m1"}, "(": set(), "n": {"n1"}}
    assert sorted(tried) == ["m1", "n1"]
    tried.clear()
    assert matched.found(["1$", "n"], {"n1", "n2", "n11"}) == {"1$": {"n1", "n11"}, "n": {"n1", "n2", "n11"}}
    assert sorted(tried) == ["n11", "n2"]
    tried.clear()
    assert matched.found(["1$", "n", "2"], {"n1", "n2", "n11"})["2"] == {"n2"}
    assert sorted(tried) == ["n1", "n11", "n2"]
    assert matched.found(["n"], {"n2"}) == {"n": {"n2"}}
    assert matched.found(["1$"], {"n2", "n1"}) == {"1$": {"n1"}}, "a pattern that was gone for a while is a new one"


def test_many_patterns_match_what_each_of_them_matches() -> None:
    names = [f"n{number}" for number in range(50)]
    patterns = [f"^(n)+{number}$" for number in range(100)]
    expected = {text: {text[4:].strip("+$").join(("n", ""))} & set(names) for text in patterns}
    assert MatchedNames().found(patterns, set(names)) == expected


def racks_and_spines() -> HyperNodeTree:
    return tree(
        hyper_node("spine", 2, children=["a", "b"], tier_name="spine"),
        hyper_node("a", 1, nodes=["n0", "n1"]),
        hyper_node("b", 1, nodes=["n2", "n3"]),
        hyper_node("c", 1, nodes=["n4"]),
    )


def test_a_parent_holds_what_its_children_hold_and_the_top_is_above_all_roots() -> None:
    found = racks_and_spines()
    assert rows(found, "spine") == [0, 1, 2, 3]
    assert found.top.children == ["c", "spine"]
    assert found.tiers == [1, 2, 3]
    assert found.tier_by_name == {"spine": 2}
    assert [found.lowest_of(row) for row in range(6)] == ["a", "a", "b", "b", "c", ""]


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [("a", "b", "spine"), ("a", "a", "a"), ("a", "c", TOP), ("spine", "b", "spine"), ("", "b", "b"), ("a", "", "a")],
)
def test_lowest_common_ancestor(left: str, right: str, common: str) -> None:
    assert racks_and_spines().lowest_common(left, right) == common


def test_two_parents_and_cycles_make_the_tree_unfit_and_are_named() -> None:
    two = tree(hyper_node("x", 2, children=["a"]), hyper_node("y", 2, children=["a"]), hyper_node("a", 1, nodes=["n0"]))
    assert two.problem == "HyperNode a already has a parent x, and cannot set another parent y"
    circle = tree(hyper_node("x", 2, children=["y"]), hyper_node("y", 3, children=["x"]))
    assert "cyclic dependency" in circle.problem


def test_a_member_that_nobody_has_described_is_an_empty_domain() -> None:
    found = tree(hyper_node("x", 2, children=["later"]))
    assert found.problem == ""
    assert rows(found, "later") == []


def test_a_member_that_nobody_describes_is_an_orphan_without_nodes() -> None:
    found = tree(hyper_node("s", 2, children=["ghost"]))
    assert (found.orphans, rows(found, "ghost")) == (["ghost"], [])
    assert tree(hyper_node("s", 1, nodes=["n1"])).orphans == []


def test_in_a_tree_that_is_given_nobody_has_a_child_that_is_not_described() -> None:
    described = [read_hyper_node(hyper_node("s", 2, children=["a", "ghost"])), read_hyper_node(hyper_node("a", 1))]
    found = replaced_tree(described, {1: ["a"], 2: ["s"]}, {"a": ["n1"], "s": ["n0", "n1", "gone"]}, {"n0": 0, "n1": 1})
    assert (sorted(found.domains), found.domains["s"].children) == ([TOP, "a", "s"], ["a"])
    assert (rows(found, "a"), rows(found, "s")) == ([1], [0, 1])

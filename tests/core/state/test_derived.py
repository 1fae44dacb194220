"""Derived columns: whatever changes, what a session is handed equals what would be worked out anew."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import Carry, CycleClock, close_session, open_session, run_action, run_cycle
from pumice.core.errors import DerivedError
from pumice.core.objects.metadata import Object, parse_time
from pumice.core.resources import Resource
from pumice.core.state.derived import DerivedColumns, Keeper, Like, Material, derived, itself, memory
from pumice.core.state.snapshot import Snapshot
from pumice.core.state.sources import ALLOCATABLE, NODES, Allocatable, NodeSpecs
from pumice.core.state.view import View
from tests.core.plugins.world import configuration, view_of
from tests.core.state.changing import BEGINNING, EVENTS, NOW, a_metrics, a_node, a_pod, a_queue, a_rack
from tests.kit import pod

CLOCK = CycleClock(1, parse_time(NOW))
COMMON = ["gang", "predicates", "nodeorder", "binpack", "usage", "nodegroup", "task-topology", "network-topology-aware"]
CONFIGS = [configuration([*COMMON, "proportion"]), configuration([*COMMON, "capacity"])]


def fresh(snapshot: Snapshot) -> DerivedColumns:
    """No columns yet, over the same snapshot."""
    material = Material(snapshot.nodes, snapshot.queues, snapshot.dimensions, snapshot.objects)
    return Keeper().lend(material, {})


def twin(snapshot: Snapshot) -> Snapshot:
    """The snapshot with columns of its own, none of them derived."""
    parts = {name: _copied(getattr(snapshot, name)) for name in ("tasks", "nodes", "jobs")}
    return replace(snapshot, **parts, derived=fresh(snapshot))


def _copied(part: Any) -> Any:
    columns = {name: getattr(part, name) for name in part.__struct_fields__}
    return replace(part, **{name: each.copy() for name, each in columns.items() if isinstance(each, np.ndarray)})


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in every part."""
    kind: Any = one.__class__
    if kind is not type(other):
        return False
    if issubclass(kind, np.ndarray | memoryview):
        left: Any = np.asarray(one)
        right: Any = np.asarray(other)
        return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    if issubclass(kind, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if issubclass(kind, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if kind.__module__.startswith("pumice.core.") and not issubclass(kind, Enum):
        return same(parts_of(one), parts_of(other))
    return bool(one == other)


def parts_of(thing: Any) -> dict[str, Any]:
    """What an object of ours holds."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*getattr(thing, "__struct_fields__", slots), *getattr(thing, "__dict__", ())]
    return {name: getattr(thing, name, None) for name in names if not name.startswith("_")}


@given(rounds=st.lists(st.lists(EVENTS, max_size=4), min_size=1, max_size=4), config=st.sampled_from(CONFIGS))
@settings(max_examples=40)
def test_a_column_that_is_handed_on_equals_one_freshly_built(rounds: list[list[Any]], config: SchedulerConfig) -> None:
    view = view_of(BEGINNING)
    run_cycle(view.snapshot(), config, CLOCK, Carry())
    for events in rounds:
        for make, number, variant, event in events:
            view.apply(event, make(number, variant))
        snapshot = view.snapshot()
        anew = fresh(snapshot)
        for column, args, value in snapshot.derived.values():
            if not column.memory:
                assert same(value, column.build(column.source.read(anew), *args)), (column.__name__, args)
        run_cycle(snapshot, config, CLOCK, Carry())


@given(rounds=st.lists(st.lists(EVENTS, max_size=4), min_size=1, max_size=4), config=st.sampled_from(CONFIGS))
@settings(max_examples=40)
def test_a_session_that_is_handed_columns_decides_like_one_that_starts_without(
    rounds: list[list[Any]], config: SchedulerConfig
) -> None:
    """Memories too: what they say is compared item by item, so a cycle cannot tell whether there are any."""
    view = view_of(BEGINNING)
    for events in rounds:
        for make, number, variant, event in events:
            view.apply(event, make(number, variant))
        snapshot = view.snapshot()
        one, other = (run_cycle(each, config, CLOCK, Carry(), report=True) for each in (twin(snapshot), snapshot))
        assert msgspec.json.encode(one) == msgspec.json.encode(other)


@given(events=st.lists(EVENTS, max_size=8), config=st.sampled_from(CONFIGS))
@settings(max_examples=20)
def test_a_cycle_leaves_the_view_as_it_was(events: list[Any], config: SchedulerConfig) -> None:
    worked, untouched = view_of(BEGINNING), view_of(BEGINNING)
    for make, number, variant, event in events:
        for view in (worked, untouched):
            view.apply(event, make(number, variant))
    untouched.snapshot()
    run_cycle(worked.snapshot(), config, CLOCK, Carry())
    ours, theirs = worked.snapshot(), untouched.snapshot()
    for name in ("version", "dimensions", "tasks", "nodes", "jobs", "queues", "node_tasks", "objects", "promised"):
        assert same(getattr(ours, name), getattr(theirs, name)), name
    assert worked.check() == []


def test_what_is_kept_is_much_of_what_there_is() -> None:
    """Else the properties above would compare nothing."""
    view = view_of(BEGINNING, a_rack(0, 5), a_metrics(0, 1))
    for config in CONFIGS:
        result = run_cycle(view.snapshot(), config, CLOCK, Carry())
        assert result.binds
    before = view.snapshot()
    kept = {column.__name__ for column, _, _ in before.derived.values()}
    assert {"label_column", "capacity", "capacity_of", "taint_sets", "total", "limits_of", "kept_limits"} <= kept
    assert {"_refused", "_refused_by_content", "_count", "_preference", "_scores", "groups_of"} <= kept
    assert {"_tree_of_objects", "_pour", "_opening", "_pod_classes", "_told", "_read"} <= kept


@pytest.mark.parametrize("config", CONFIGS)
def test_where_nothing_has_changed_nothing_is_built_again(config: SchedulerConfig) -> None:
    view = view_of(BEGINNING)
    run_cycle(view.snapshot(), config, CLOCK, Carry())
    before = view.snapshot()
    known = {(column, args): value for column, args, value in before.derived.values()}
    run_cycle(before, config, CLOCK, Carry())
    now = {(column, args): value for column, args, value in view.snapshot().derived.values()}
    assert now.keys() == known.keys()
    assert [key for key, value in now.items() if known[key] is not value] == []


# --- who owns them


def test_a_session_has_its_columns_to_itself_until_it_closes() -> None:
    view = view_of(BEGINNING)
    first, second = (open_session(view.snapshot(), CONFIGS[0], CLOCK, Carry()) for _ in range(2))
    assert not set(first.derived.tables) - set(second.derived.tables), "both worked out the same"
    values = {id(value) for _, _, value in first.derived.values() if type(value) in (np.ndarray, Resource)}
    assert values
    assert not values & {id(value) for _, _, value in second.derived.values()}
    for session in (first, second):
        for action in CONFIGS[0].actions:
            run_action(session, action)
        close_session(session)
    assert list(view.snapshot().derived.values()), "what the last one gave back"
    assert not list(view.snapshot().derived.values()), "the one before has not given anything back"


def test_a_resource_that_a_session_is_the_first_to_name_is_its_own() -> None:
    """A plugin's argument may name it: what is named after that in the view keeps the place that it would have had."""
    view = view_of(BEGINNING)
    session = open_session(view.snapshot(), CONFIGS[0], CLOCK, Carry())
    place = session.dims.index("example.com/only-an-argument")
    view.apply("ADDED", pod("p9", extra={"example.com/new": "1"}))
    assert view.dimensions.index("example.com/new") == place
    assert "example.com/only-an-argument" not in view.dimensions.names


def test_what_a_session_that_is_over_still_does_reaches_nobody() -> None:
    view = view_of(BEGINNING)
    columns = view.snapshot().derived
    number_of(columns)
    columns.give_back()
    with pytest.raises(DerivedError, match="after its session was closed"):
        number_of(columns)
    columns.give_back()
    after = view.snapshot().derived
    assert [(column, value) for column, _, value in after.values()] == [(number_of, 3)]
    assert columns.tables is not after.tables


# --- the rule


@derived(ALLOCATABLE)
def number_of(nodes: Allocatable) -> int:
    """How many nodes there are."""
    return len(nodes.max_pods)


@derived(NODES, bound=2)
def labelled(nodes: NodeSpecs, labels: Like[list[str]]) -> int:
    """How many nodes have all these labels."""
    return sum(all(label in spec.labels for label in labels.subject) for spec in nodes.specs)


@memory(NODES)
def seen(nodes: NodeSpecs) -> dict[str, int]:
    """Something that learns."""
    return {}


@derived(ALLOCATABLE)
def too_short(nodes: Allocatable, columns: Like[DerivedColumns]) -> int:
    """Made of what changes more often than what it is derived from."""
    return labelled(columns.subject, Like("zone", ["zone"]))


ALL = {"number_of", "labelled", "seen"}
HEARTBEAT: Object = {**a_node(1, 1), "status": {**a_node(1, 1)["status"], "conditions": []}}
RELABELLED: Object = a_node(1, 1) | {"metadata": {"name": "n1", "labels": {"zone": "other"}}}


@pytest.mark.parametrize(
    ("obj", "event", "kept"),
    [
        (a_node(1, 1), "MODIFIED", ALL),
        (HEARTBEAT, "MODIFIED", ALL),
        (RELABELLED, "MODIFIED", {"number_of"}),
        (a_node(1, 0), "MODIFIED", set[str]()),
        (a_node(9, 0), "ADDED", set[str]()),
        (a_node(1, 1), "DELETED", set[str]()),
        (a_pod(0, 5), "MODIFIED", ALL),
        (a_queue(0, 5), "MODIFIED", ALL),
    ],
)
def test_a_column_is_kept_while_its_source_has_not_changed(obj: Object, event: str, kept: set[str]) -> None:
    view = view_of(BEGINNING)
    columns = view.snapshot().derived
    assert (number_of(columns), labelled(columns, Like("zone", ["zone"])), seen(columns)) == (3, 3, {})
    columns.give_back()
    view.apply(event, obj)
    assert {column.__name__ for column, _, _ in view.snapshot().derived.values()} == kept


def test_arguments_count_by_content_or_by_identity() -> None:
    columns = view_of(BEGINNING).snapshot().derived
    assert labelled(columns, Like("zone", ["zone"])) == 3
    assert labelled(columns, Like("zone", ["nothing has this"])) == 3, "the content says that it is the same"
    one, other = ["nothing has this"], ["nothing has this"]
    assert labelled(columns, itself(one)) == 0
    assert [len(table) for table in columns.tables.values()] == [2]
    assert labelled(columns, itself(other)) == 0
    assert [len(table) for table in columns.tables.values()] == [1], "it starts afresh when there are too many"


def test_a_source_is_read_once_for_all_columns_of_a_session_and_anew_in_the_next() -> None:
    view = view_of(BEGINNING)

    @derived(NODES)
    def given(nodes: NodeSpecs, key: int) -> tuple[NodeSpecs, int]:
        return nodes, key

    one, other = (view.snapshot().derived for _ in range(2))
    assert given(one, 1)[0] is given(one, 2)[0]
    assert given(other, 3)[0] is not given(one, 1)[0]


def test_a_column_cannot_be_made_of_one_that_changes_more_often() -> None:
    columns = view_of(BEGINNING).snapshot().derived
    with pytest.raises(DerivedError, match="labelled is derived from specs"):
        too_short(columns, itself(columns))
    assert not columns.tables


def test_a_view_without_anything_has_columns_too() -> None:
    columns = View().snapshot().derived
    assert number_of(columns) == 0
    assert labelled(columns, Like("", [])) == 0

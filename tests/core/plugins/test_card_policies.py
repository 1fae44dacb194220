"""The policies of cards in whole cycles, and their scores as kept against scores as worked out anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import run_action
from pumice.core.objects.metadata import Object
from pumice.core.plugins import PLUGINS
from pumice.core.plugins.card_policies import CLASSES, CardColumns, CardPolicy, CardScorer, Fgd, KeptScores
from pumice.load.openb import OpenbRow
from pumice.load.openb_cards import card_node, card_pod, class_of, typical_pods
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import queue

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.session.session import Session
    from tests.core.plugins.world import Option

BINPACK = {"deviceshare.VGPUEnable": True, "deviceshare.SchedulePolicy": "binpack"}
SHARING: Object = {"name": "deviceshare", "arguments": BINPACK}
HERE = Path("trace.csv")
KINDS = ((300, 1), (460, 1), (1000, 1), (1000, 2), (0, 0))


def cells(**columns: object) -> OpenbRow:
    return OpenbRow({name: str(value) for name, value in columns.items()}, HERE, 1)


def a_node(name: str, gpu: int, cpu: int = 64_000, model: str = "G2") -> Object:
    return card_node(cells(cpu_milli=cpu, memory_mib=262_144, gpu=gpu, model=model), name)


def a_pod(name: str, arrival: int, milli: int, *, cards: int = 1, cpu: int = 1000, spec: str = "") -> list[Object]:
    row = cells(cpu_milli=cpu, memory_mib=1024, num_gpu=cards, gpu_milli=milli, gpu_spec=spec)
    pod = card_pod(row, name, arrival)
    meta = {"name": name, "namespace": "default", "creationTimestamp": pod["metadata"]["creationTimestamp"]}
    pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = name
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta}
    return [{**group, "spec": {"minMember": 1, "queue": "q"}, "status": {"phase": "Inqueue"}}, pod]


def opened(policy: str, *parts: Any, **arguments: Any) -> Session:
    named = {f"{policy}.{name}": value for name, value in arguments.items()}
    tier: list[Option] = ["predicates", {"name": policy, "arguments": named}, SHARING]
    return open_world(configuration(tier), queue("q"), *parts)


def placed(policy: str, *parts: Any, **arguments: Any) -> dict[str, str]:
    """The cards of each pod."""
    session = opened(policy, *parts, **arguments)
    run_action(session, "allocate")
    ids = {bind.name: bind.annotations["volcano.sh/vgpu-ids-new"] for bind in session.binds}
    return {name: " ".join(part.split(",")[0] for part in text.split(":")[:-1]) for name, text in ids.items()}


def test_fgd_leaves_what_typical_pods_can_use() -> None:
    """Of 500 and 400 thousandths the fuller card is left with 100, of which pods that ask for 200 have no use."""
    node, pods = a_node("n0", 2), [*a_pod("a", 0, 500), *a_pod("b", 1, 600), *a_pod("c", 2, 300)]
    assert placed("bestfit", node, pods) == {"a": "n0-0", "b": "n0-1", "c": "n0-1"}
    asked = [{"cpu": 1000, "milli": 200, "cards": 1, "pods": 9}]
    assert placed("fgd", node, pods, typicalPods=asked) == {"a": "n0-0", "b": "n0-1", "c": "n0-0"}


def test_without_a_list_the_pods_that_are_there_are_typical() -> None:
    """A third of them can use nothing: of 2,000 thousandths before, and of 1,500 after."""
    pods = [*a_pod("a", 0, 500), *a_pod("b", 1, 300, spec="G2|T4"), *a_pod("c", 2, 0, cards=0)]
    session = opened("fgd", a_node("n0", 2), pods)
    search = session.search_for(task_of(session, "a"))
    assert search.scoring.totals(np.array([0])).tolist() == [54.0]
    assert sorted(CardColumns(session).classes()) == [(1000, 0, 0, ""), (1000, 300, 1, "G2|T4"), (1000, 500, 1, "")]


@pytest.mark.parametrize("policy", ["fgd", "bestfit", "dotprod", "gpuclustering", "gpupacking"])
def test_kept_scores_are_those_of_a_fresh_look(policy: str) -> None:
    nodes = [a_node(f"n{i}", (2, 4, 8)[i % 3], cpu=4000 * (1 + i % 4), model=("G2", "T4")[i % 2]) for i in range(12)]
    pods = list[Object]()
    for i in range(60):
        milli, cards = KINDS[i % 5]
        pods += a_pod(f"p{i:02}", i, milli, cards=cards, cpu=500 * (i % 7))
    session = opened(policy, nodes, pods)
    run_action(session, "allocate")
    assert len(session.binds) > 40
    (scorer,) = session.points.node_order.rules[0]
    plugin = PLUGINS[policy]({})
    assert isinstance(scorer, CardScorer)
    assert isinstance(plugin, CardPolicy)
    for number in range(5):
        wish = scorer.columns.wish_of(task_of(session, f"p0{number}"))
        fresh = KeptScores(session, scorer.columns, plugin.policy(session, CardColumns(session)))
        assert scorer.kept.of(wish).tolist() == fresh.of(wish).tolist()


def test_cards_of_other_sizes_are_shared_by_their_own_thousandths() -> None:
    small, large = a_node("n0", 1), a_node("n1", 1)
    register = "volcano.sh/node-vgpu-register"
    large["metadata"]["annotations"][register] = large["metadata"]["annotations"][register].replace(
        ",1000,1000,", ",9,4000,"
    )
    session = opened("gpupacking", small, large, a_pod("a", 0, 500))
    columns = CardColumns(session)
    wish = columns.wish_of(task_of(session, "a"))
    assert [wish.of(size).milli for size in columns.sizes.tolist()] == [500, 125]
    assert columns.states(slice(None)).left.tolist() == [[1000], [1000]]


def test_clusters_without_cards_are_scored_too() -> None:
    pods = a_pod("a", 0, 0, cards=0)
    session = open_world(configuration(["predicates", "fgd", "gpuclustering"]), queue("q"), a_node("n0", 0), pods)
    run_action(session, "allocate")
    assert [bind.node for bind in session.binds] == ["n0"]


def test_classes_are_listed_as_they_are_read() -> None:
    classes = {class_of(cells(cpu_milli=1, num_gpu=0, gpu_milli=500, memory_mib=0, gpu_spec="A|B")): 3}
    assert CLASSES.kind.read(typical_pods(classes)) == classes
    assert next(iter(classes)).milli == 0
    assert not CLASSES.kind.holds([{"cpu": "x"}, 7, {"cpu": -1}])
    assert not CLASSES.kind.holds([{"cpu": 1}, {"cpu": 1, "gpus": 1}]), "one that cannot be read leaves out all"
    assert not CLASSES.kind.holds("x")


def parsed(arguments: dict[str, Any]) -> SchedulerConfig:
    tiers = [{"plugins": [{"name": "fgd", "arguments": arguments}]}]
    return parse_scheduler_config(json.dumps({"actions": "allocate", "tiers": tiers}), source="s.conf")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("fgd.weight", "much"),
        ("fgd.coverage", 0),
        ("fgd.coverage", 101),
        ("fgd.coverage", True),
        ("fgd.typicalPods", []),
        ("fgd.typicalPods", [{"cpu": 1.5}]),
        ("fgd.typicalPods", [{"models": 5}]),
        ("fgd.typicalPods", [{"pod": 1}]),
    ],
)
def test_an_argument_of_another_kind_is_told_and_the_default_stays(argument: str, value: object) -> None:
    config = parsed({argument: value})
    assert [("the default stays" in said, argument in said) for said in map(str, config.warnings)] == [(True, True)]
    assert vars(Fgd({argument: value})) == vars(Fgd({}))


def test_arguments_of_the_right_kind_are_read() -> None:
    asked = [{"cpu": 1000, "milli": 500, "cards": 1, "models": "A|B", "pods": 2}]
    arguments = {"fgd.weight": 2, "fgd.coverage": 50.5, "fgd.typicalPods": asked}
    config = parsed(arguments)
    assert not config.warnings
    assert vars(Fgd(arguments)).keys() == vars(Fgd({})).keys()
    assert all(value != vars(Fgd({}))[name] for name, value in vars(Fgd(arguments)).items())

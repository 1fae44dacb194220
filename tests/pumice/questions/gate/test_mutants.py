"""Standard bad changes: each kind, and what is said of those that nothing notices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pumice.core.objects.metadata import Object
from pumice.lab.builders import gang, nodes, queue
from pumice.questions.gate.expectations import expectation_of
from pumice.questions.gate.mutants import mutants, mutated
from pumice.questions.gate.policy import GatePolicy, Workload
from pumice.questions.gate.runner import KeptRuns, Runner
from pumice.questions.gate.sides import Side, read_side
from pumice.questions.gate.workloads import Trial
from tests.quality.gate.parts import CLASSES, GANG, budget, conf, named, policy, quota, switch

ARGUED = {"name": "binpack", "arguments": {"binpack.weight": 10}}


def side(folder: Path, config: str, objects: Sequence[Object] = ()) -> Side:
    folder.mkdir()
    for name, text in policy(config, *objects).items():
        (folder / name).write_text(text)
    return read_side("head", folder)


def changes(folder: Path, config: str, *objects: Object) -> dict[str, Side]:
    return dict(mutants(side(folder / "p", config, objects)))


@pytest.mark.parametrize(
    ("change", "actions", "plugins"),
    [
        ("action preempt is taken out", ["allocate"], None),
        ("action enqueue comes first", ["enqueue", "allocate", "preempt"], None),
        ("plugin gang is taken out", None, [["priority"], ["binpack"]]),
        ("plugin priority moves to tier 2", None, [["gang"], ["binpack", "priority"]]),
        ("plugin binpack moves to tier 1", None, [["priority", "gang", "binpack"], []]),
    ],
)
def test_a_mutant_changes_one_thing_of_the_configuration(
    change: str, actions: list[str] | None, plugins: list[list[str]] | None, tmp_path: Path
) -> None:
    config = conf("allocate, preempt", first=("priority", GANG), second=(ARGUED,))
    found = changes(tmp_path, config)[change].settings
    assert list(found.actions) == (actions or ["allocate", "preempt"])
    assert [[each.name for each in tier.plugins] for tier in found.tiers] == (
        plugins or [["priority", "gang"], ["binpack"]]
    )


def test_a_mutant_turns_a_flag_and_drops_arguments(tmp_path: Path) -> None:
    found = changes(tmp_path, conf("allocate, preempt", first=("priority", GANG), second=(ARGUED,)))
    gang_plugin = found["enablePreemptable of plugin gang becomes true"].settings.plugin("gang")
    packing = found["plugin binpack loses its arguments"].settings.plugin("binpack")
    assert gang_plugin is not None
    assert packing is not None
    assert gang_plugin.is_enabled("Preemptable")
    assert not packing.arguments


def test_a_mutant_changes_one_object(tmp_path: Path) -> None:
    full = queue("full", weight=4, capability={"cpu": 9}, deserved={"cpu": 2}, guarantee={"cpu": 1})
    full["spec"]["affinity"] = {"nodeGroupAffinity": {}}
    limits = named("LimitRange", "most", namespace="default", spec={"limits": []})
    given = [*CLASSES, full, queue("plain"), quota(4), budget(1, "web"), switch("s0", 1, "node-0"), limits]
    found = changes(tmp_path, conf("allocate"), *given)

    def spec(change: str, name: str) -> Object:
        return next(obj.get("spec", obj) for obj in found[change].objects if obj["metadata"]["name"] == name)

    assert spec("queue full has weight 1", "full")["weight"] == 1
    assert spec("queue full is not reclaimable", "full")["reclaimable"] is False
    for key in ("capability", "deserved", "guarantee"):
        assert key not in spec(f"queue full loses its {key}", "full")
    assert not any("affinity" in obj.get("spec", {}) for obj in found["queue full loses its affinity"].objects)
    assert (spec("PriorityClass low and high change places", "low")["value"]) == 1000
    assert (spec("Queue plain and full change places", "plain")["weight"]) == 4
    for kind, name in (("ResourceQuota", "team"), ("PodDisruptionBudget", "web"), ("LimitRange", "most")):
        left = found[f"{kind} {name} is taken out"].objects
        assert (kind, len(left)) not in [(obj["kind"], len(given)) for obj in left]
    assert [obj["kind"] for obj in found["HyperNode s0 is taken out"].objects].count("HyperNode") == 0
    assert "queue plain has weight 1" not in found, "it has that weight already"


def test_mutants_that_nothing_notices_are_named(tmp_path: Path) -> None:
    work = [
        *nodes(1, cpu=4),
        gang("usual", 2, cpu=2, duration="10m", priority="low"),
        gang("urgent", 1, cpu=2, duration="1m", priority="high", arrival="30s"),
    ]
    head = side(
        tmp_path / "head",
        conf("allocate, preempt", first=("priority", GANG), second=("predicates", "nodeorder")),
        CLASSES,
    )
    expected = (expectation_of("urgent", "wait.max[name=urgent]", "<=", "10s"),)
    trial = Trial(Workload("w", (), until_s=120.0), work, expected)
    heard = list[int]()
    found = mutated([trial], head, GatePolicy(), Runner(KeptRuns(tmp_path / "kept")), lambda: heard.append(1))
    noticed = {each.change: each.noticed_by for each in found.mutants}
    assert noticed["action preempt is taken out"] == ("urgent", "nothing-unstarted-that-base-starts")
    assert "urgent" in noticed["PriorityClass low and high change places"]
    assert noticed["plugin predicates moves to tier 1"] == ()
    assert "plugin predicates moves to tier 1" in found.missed
    assert (len(heard), found.noticed + len(found.missed)) == (len(found.mutants), len(found.mutants))
    assert 0 < found.silent <= len(found.missed)

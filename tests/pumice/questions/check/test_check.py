"""What a configuration will do is told as it is, and what has no effect is found."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from pumice.config.known import FLAGS
from pumice.core.actions import ACTIONS
from pumice.core.configuration import parse_scheduler_config
from pumice.core.plugins import BUILT_IN, PLUGINS
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.point import FLAGS as FLAG_OF
from pumice.questions.check import words
from pumice.questions.check.effects import without_effect
from pumice.questions.check.review import review
from tests.kit import node, pod_group, queue, source
from tests.pumice.cli.terminal import pumice

STOCK = (source.ROOT / "config" / "default.conf").read_text("utf-8")
TRIALS = ("SimulateAddTask", "SimulateRemoveTask", "SimulatePredicate", "SimulateAllocatable")
"""They go with another point of the same flag."""


def warnings(text: str) -> list[str]:
    return without_effect(parse_scheduler_config(text, source="some.conf", lenient=True))


def test_every_action_plugin_and_flag_has_words() -> None:
    assert words.ACTIONS.keys() == ACTIONS.keys()
    assert all(plugin.says and plugin.listens for plugin in BUILT_IN.values())
    assert words.FLAGS.keys() == {flag.point for flag in FLAGS}


def rules_in(path: Path) -> set[str]:
    """The flags of the points at which a module registers, and that of the tree where it asks for it."""
    found: set[str] = set()
    for part in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(part, ast.Constant) and part.value == "Hierarchy":
            found.add("Hierarchy")
        if isinstance(part, ast.Attribute) and part.attr == "add" and isinstance(part.value, ast.Attribute):
            point = "".join(word.capitalize() for word in part.value.attr.split("_"))
            flag = FLAG_OF.get(point)
            if point in FLAG_OF and point not in TRIALS and flag is not None:
                found.add(flag)
    return found


@pytest.mark.parametrize("name", list(PLUGINS))
def test_what_a_plugin_listens_to_is_where_it_registers(name: str) -> None:
    bases = [base for base in BUILT_IN[name].__mro__ if issubclass(base, BuiltInPlugin)]
    modules = {source.path_of(base.__module__).with_suffix(".py") for base in bases}
    assert set[str]().union(*map(rules_in, modules)) == set(BUILT_IN[name].listens)


def test_the_stock_configuration_is_told_whole() -> None:
    told = review(parse_scheduler_config(STOCK, source="default.conf"))
    assert [action.name for action in told.actions] == ["enqueue", "allocate", "backfill"]
    assert [(plugin.tier, plugin.name) for plugin in told.plugins][:4] == [
        (0, "priority"), (0, "gang"), (0, "conformance"), (1, "overcommit")
    ]  # fmt: skip
    (gang,) = [plugin for plugin in told.plugins if plugin.name == "gang"]
    flags = {flag.key: flag.on for flag in gang.flags}
    assert flags["enableJobReady"] is True
    assert "enableNodeOrder" not in flags


FULL = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("- plugins: [{name: ov", "- plugins: []\n- plugins: [{name: ov", "tiers[1]: it names no plugin"),
        ("{name: gang}", "{name: gang, enableNodeOrder: false}", "plugin gang: enableNodeOrder is without effect"),
        ("{name: gang}", "{name: gang, enableHierarchy: true}", "plugin gang: enableHierarchy is without effect"),
        ("{name: nodeorder}", "{name: nodeorder, enableNodeOrder: false}", "all that it does is switched off"),
        ("{name: predicates}", "{name: predicates, enablePredicate: false}", "enablePredicate is off: no pod is bound"),
        ("{name: proportion}", "{name: proportion}, {name: capacity}", "proportion and capacity both divide"),
        ("{name: proportion}, ", "", "queues have neither shares nor limits"),
        ("{name: gang}, ", "", "minAvailable is not enforced"),
        ("{name: gang}", "{name: gang, enableJobReady: false}", "minAvailable is not enforced: enableJobReady"),
        ("{name: gang}", "{name: gang, enableJobPipelined: false}", "keeps what it found from others"),
        ("allocate, preempt", "preempt, allocate", "action preempt comes before allocate"),
        ("allocate, preempt", "gangpreempt, allocate", "action gangpreempt comes before allocate: it evicts"),
        ("enqueue, allocate, ", "allocate, enqueue, ", "action enqueue comes after allocate"),
        ("{name: predicates}, ", "", "taints, selectors, affinity"),
        ("allocate, ", "", "nothing is placed"),
        ("enqueue, ", "", "plugin overcommit is without effect: it needs the action enqueue"),
        ("{name: nodeorder}", "{name: rescheduling}", "rescheduling is without effect: it needs the action shuffle"),
        ("backfill", "backfill, shuffle", "action shuffle evicts no pod"),
        ("backfill", "backfill, allocate", "action allocate runs 2 times in every cycle"),
        ("{name: nodeorder}", "{name: priority}", "plugin priority is listed 2 times"),
        (
            "{name: nodeorder}]\n",
            "{name: nodeorder}]\nconfigurations: [{name: shuffle}]\n",
            "shuffle is without effect",
        ),
        ("{name: nodeorder}", "{name: cdp}", "preempt asks cdp about victims only where the tier before"),
        ("{name: priority}, {name: gang}, {name: conformance}", "{name: sla}", "evicts for no job: no plugin says"),
    ],
)
def test_what_has_no_effect_is_said(old: str, new: str, sentence: str) -> None:
    assert old in FULL
    assert not any(sentence in each for each in warnings(FULL))
    assert any(sentence in each for each in warnings(FULL.replace(old, new, 1)))


@pytest.mark.parametrize("name", ["default.conf"])
def test_stock_configuration_has_no_warnings(name: str) -> None:
    assert warnings((source.ROOT / "config" / name).read_text("utf-8")) == []


TREE = FULL.replace("{name: proportion}", "{name: capacity, enableHierarchy: true}")


@pytest.mark.parametrize(
    ("text", "old", "new", "sentence"),
    [
        (FULL, "{name: priority}, ", "", "preempt goes by no priority (plugin priority is not listed)"),
        (
            FULL,
            "{name: priority}",
            "{name: priority, enablePreemptable: false}",
            "enablePreemptable of plugin priority",
        ),
        (
            FULL,
            "enqueue, allocate, preempt",
            "allocate, preempt",
            "mind that enqueue keeps preempt and reclaim from jobs",
        ),
    ],
)
def test_setting_that_does_not_what_it_seems_is_said(text: str, old: str, new: str, sentence: str) -> None:
    assert old in text
    assert not any(sentence in each for each in warnings(text))
    assert any(sentence in each for each in warnings(text.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("text", "mended", "sentence"),
    [
        (FULL, FULL.replace("enqueue, ", ""), "preempt and reclaim make room for admitted jobs only"),
        (FULL, FULL.replace("preempt, reclaim, ", ""), "room for admitted jobs only"),
        (TREE, TREE.replace("enqueue, ", ""), "reclaim cannot take back what other queues borrowed"),
        (TREE, FULL, "reclaim cannot take back what other queues borrowed"),
        (FULL, FULL.replace(", {name: conformance}", ""), "conformance stands in a tier above proportion"),
        (TREE, TREE.replace("reclaim, ", ""), "conformance stands in a tier above capacity"),
    ],
)
def test_known_defect_that_the_configuration_meets_is_said(text: str, mended: str, sentence: str) -> None:
    assert any(sentence in each for each in warnings(text))
    assert not any(sentence in each for each in warnings(mended))


@pytest.mark.parametrize("fix", ["enqueue-counts-what-is-lent", "conformance-only-filters"])
def test_mended_defect_is_not_warned_of(fix: str) -> None:
    assert any(fix in each for each in warnings(TREE))
    own = f"configurations: [{{name: pumice, arguments: {{fix: [{fix}]}}}}]\n"
    assert not any(fix in each for each in warnings(TREE + own))


def test_arguments_that_are_passed_over_are_not_shown_as_in_force() -> None:
    text = STOCK.replace(
        "- name: overcommit",
        "- {name: overcommit, arguments: {overcommit-factor: 0.5}}\n"
        "  - {name: tdm, arguments: {tdm.evict.period: 1m,"
        ' tdm.revocable-zone.a: "* 8", tdm.revocable-zone.b: "8:00-9:00"}}\n'
        "  - {name: binpack, arguments: {binpack.weight: x, binpack.cpu: 2, nonsense: 1}}",
    )
    told = {
        each.name: each.arguments for each in review(parse_scheduler_config(text, source="c", lenient=True)).plugins
    }
    assert told["overcommit"] == {}
    assert told["tdm"] == {"tdm.evict.period": "1m", "tdm.revocable-zone.b": "8:00-9:00"}
    assert told["binpack"] == {"binpack.cpu": 2}


def test_capacitys_tree_is_said_to_follow_spec_parent() -> None:
    told = {each.name: each.flags for each in review(parse_scheduler_config(TREE, source="c")).plugins}
    (does,) = [flag.does for flag in told["capacity"] if flag.key == "enableHierarchy"]
    assert "spec.parent" in does


@pytest.mark.parametrize(
    ("config", "capability", "missing"),
    [
        (TREE, {"nvidia.com/gpu": "4"}, "without cpu and memory"),
        (TREE, {"cpu": "8", "memory": "16Gi"}, "without nvidia.com/gpu"),
        (TREE, {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "4"}, ""),
        (TREE, None, ""),
        (FULL, {"cpu": "8"}, ""),
    ],
)
def test_root_capability_that_leaves_out_resources_is_said(
    config: str, capability: dict[str, str] | None, missing: str
) -> None:
    there = node("n")
    there["status"]["allocatable"]["nvidia.com/gpu"] = "4"
    told = review(parse_scheduler_config(config, source="c"), [there, queue("root", capability=capability)]).warnings
    found = [each for each in told if "queue root has a capability" in each]
    assert [missing in each for each in found] == ([True] if missing else [])


def test_podgroup_in_a_queue_with_children_is_said() -> None:
    objects = [queue("root"), queue("team", parent="root"), queue("a", parent="team"), pod_group("j", queue="team")]
    told = review(parse_scheduler_config(TREE, source="c"), objects).warnings
    assert any("PodGroup default/j is in queue team" in each for each in told)


def test_config_map_needs_a_server() -> None:
    refused = pumice("check", "configmap:a/b")
    assert (refused.code, "add --server URL" in refused.err) == (2, True)


def test_a_plugin_is_not_said_to_do_what_is_switched_off() -> None:
    off = FULL.replace("{name: gang}", "{name: gang, enableJobReady: false, enableJobPipelined: false}")
    told = {plugin.name: plugin.does for plugin in review(parse_scheduler_config(off, source="c")).plugins}
    assert told["gang"].endswith("; as far as it may, for enableJobReady and enableJobPipelined are off")
    assert all("as far as it may" not in does for name, does in told.items() if name != "gang")


def test_predicates_switched_off_with_the_fix_only_looks_at_nothing() -> None:
    off = FULL.replace("{name: predicates}", "{name: predicates, enablePredicate: false}")
    mended = off + "configurations: [{name: pumice, arguments: {fix: [reserve-without-filters]}}]\n"
    assert any("all that it does is switched off" in each for each in warnings(mended))
    assert not any("no pod is bound" in each for each in warnings(mended))


def test_admission_without_a_judge() -> None:
    text = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}]\n'
    assert any("lets every PodGroup in" in each for each in warnings(text))


def test_the_command(tmp_path: Path) -> None:
    conf = tmp_path / "some.conf"
    conf.write_text(FULL.replace("{name: proportion}", "{name: proportion}, {name: capacity}"), "utf-8")
    table = pumice("check", conf, "-o", "table")
    assert table.code == 0
    assert "  enqueue: lets PodGroups in" in table.out
    assert "warning: proportion and capacity both divide the cluster" in table.out
    assert len(pumice("check", conf, "-o", "json").json["warnings"]) == 4
    conf.write_text('actions: "enque"\n', "utf-8")
    refused = pumice("check", conf)
    assert (refused.code, "did you mean 'enqueue'" in refused.err) == (2, True)


def test_the_command_takes_what_a_cluster_holds() -> None:
    held = {"kind": "ConfigMap", "data": {"volcano-scheduler.conf": 'actions: "enqueue, alocate"'}}
    refused = pumice("check", "-", stdin=json.dumps(held))
    assert (refused.code, "stdin" in refused.err, "did you mean 'allocate'" in refused.err) == (2, True, True)
    assert pumice("check", "-", stdin="actions: enqueue").code == 0


EXTENDER = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: proportion
  - name: extender
    enablePredicate: false
    arguments:
      extender.urlPrefix: URL
      extender.VERB: v
"""


def test_an_extender_that_cannot_be_asked_is_told() -> None:
    silent = EXTENDER.replace("URL", "here").replace("VERB", "httpTimeout")
    found = [each for each in warnings(silent) if "extender" in each]
    assert any("every question fails: extender.urlPrefix: expected http://" in each for each in found)
    assert any("it is asked nothing" in each for each in found)
    off = EXTENDER.replace("URL", "http://e").replace("VERB", "predicateVerb")
    assert any("extender.predicateVerb is without effect: enablePredicate is off" in each for each in warnings(off))
    fine = EXTENDER.replace("URL", "http://e").replace("VERB", "prioritizeVerb")
    assert not [each for each in warnings(fine) if "extender" in each]


@pytest.mark.parametrize(("arguments", "silent"), [("", False), (", arguments: {deviceshare.VGPUEnable: true}", True)])
def test_switches_that_are_off_by_default(arguments: str, silent: bool) -> None:
    text = STOCK.replace("- name: predicates", f"- {{name: deviceshare{arguments}}}\n  - name: predicates")
    said = [each for each in warnings(text) if each.startswith("plugin deviceshare is without effect")]
    assert (not said) == silent, said


def test_who_names_victims_for_gangs_is_who_registers() -> None:
    folder = source.ROOT / "core" / "plugins"
    registering = {
        path.relative_to(folder).parts[0].removesuffix(".py")
        for path in folder.rglob("*.py")
        if "unified_evictable.add(self" in path.read_text("utf-8")
    }
    assert registering == {name for name, plugin in BUILT_IN.items() if plugin.names_gangs}


@pytest.mark.parametrize("name", ["pumice", "init-params"])
def test_settings_that_others_than_actions_read_have_their_effect(name: str) -> None:
    text = FULL.replace("{name: nodeorder}]\n", f"{{name: nodeorder}}]\nconfigurations: [{{name: {name}}}]\n", 1)
    assert text != FULL
    assert not any("the action is not among the actions" in each for each in warnings(text))

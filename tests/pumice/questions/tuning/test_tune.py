"""A search proposes settings, evaluations judge them, and it goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice import nodes
from pumice.config.errors import ConfigError
from pumice.config.load import default_text
from pumice.questions.evaluation.evaluate import objective_of
from pumice.questions.tuning.spec import SearchRange, applied, read_spec, weights_of
from pumice.questions.tuning.tune import SettingsSearch, TriedSettings, front_of
from tests.pumice.cli.terminal import pumice

CONFIG = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack, arguments: {binpack.weight: 1}}]
"""
JOBS = {"jobs": 8, "over": "30s", "nodes": 2, "node_cpu": 4, "pods": [1, 2], "cpu": [1, 3], "duration": ["20s", "40s"]}
SPEC: dict[str, Any] = {
    "config": "s.conf",
    "workloads": [{"generate": JOBS}],
    "held_out": [{"generate": {**JOBS, "seed": 5}}],
    "seeds": 2,
    "trials": 4,
    "space": {
        "arguments.binpack.binpack.weight": {"low": 0, "high": 10},
        "arguments.nodeorder.leastrequested.weight": [0, 10],
        "order.0": [["priority", "gang"], ["gang", "priority"]],
    },
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "s.conf").write_text(CONFIG)
    return written(tmp_path)


def written(folder: Path, **changed: Any) -> Path:
    (folder / "tune.yaml").write_text(yaml.safe_dump({**SPEC, **changed}, sort_keys=False))
    return folder / "tune.yaml"


def test_a_search_goes_on_and_keeps_its_word_about_held_out_workloads(file: Path) -> None:
    """The first half, then the whole: trials of the first run count, and no evaluation runs twice."""
    said = pumice("tune", written(file.parent, trials=2), "--workers", 1)
    assert said.json["trials"] == 2
    result = pumice("tune", written(file.parent), "--workers", 1).json
    assert (result["schema"], result["trials"], result["pruned"] + result["infeasible"]) == ("tune/1", 4, 0)
    assert result["before"]["fresh"] == 0
    assert result["held_out_before"]["workloads"].keys() == {"jobs"}
    page = (file.parent / "tune.tune" / "report.md").read_text()
    assert "| held out | minimise wait.mean |" in page
    if result["chosen"] is None:
        assert "Nothing better" in page
    else:
        assert result["after"]["figures"]["wait.mean"]["mean"] < result["before"]["figures"]["wait.mean"]["mean"]
        assert yaml.safe_load(Path(result["config"]).read_text())["tiers"]


def test_another_search_in_the_same_folder_begins_anew(file: Path) -> None:
    """Trials of the first were judged by another measure; what has run is not run again."""
    folder = file.parent / "found"
    first = SettingsSearch(read_spec(written(file.parent, trials=2)), folder).run()
    other = SettingsSearch(read_spec(written(file.parent, trials=1, objective="minimise slowdown.mean")), folder).run()
    assert (first.trials, other.trials) == (2, 1)
    assert all(each.values[0] >= 1 for each in other.front)  # a slowdown, and no wait
    again = SettingsSearch(read_spec(written(file.parent, trials=3)), folder)
    assert again.run().trials == 3


def test_constraints_and_several_objectives(file: Path) -> None:
    impossible = [{"measure": "wait.max", "op": "<=", "value": "0s"}]
    spec = read_spec(written(file.parent, expect=impossible, objective=["minimise wait.mean", "maximise util.cpu"]))
    found = SettingsSearch(spec, file.parent / "found").run()
    assert (found.chosen, found.infeasible, found.config, found.after) == (None, 4, None, None)
    assert found.before.holds is False


def test_placements_are_searched_without_time(file: Path) -> None:
    spec = read_spec(written(file.parent, placement=True, objective="maximise util.cpu", trials=2))
    found = SettingsSearch(spec, file.parent / "found").run()
    assert all(each.placement for each in (*spec.workloads, *spec.held_out))
    assert found.trials == 2
    assert 0 < found.before.score <= 1


PREFERS = """\
class Refuses:
    name = "refuses"
    def __init__(self, arguments): pass
    def on_session_open(self, session): session.points.predicate.add(self.name, lambda task, node: {said})
    def on_session_close(self, session): pass
PLUGINS = {{"refuses": Refuses}}
"""


@pytest.mark.slow
def test_workers_have_the_plugins_of_the_folder(file: Path) -> None:
    """And what an earlier version of a plugin gave is not taken for what it gives now."""
    plugins = file.parent / "plugins"
    plugins.mkdir()
    (file.parent / "s.conf").write_text(CONFIG.replace("{name: gang}", "{name: gang}, {name: refuses}"))
    space = {"arguments.binpack.binpack.weight": [1, 2]}
    for placement in (False, True):
        spec = written(file.parent, space=space, trials=1, placement=placement, objective="maximise started")
        started = list[float]()
        for said in ("None", "'never'"):
            (plugins / "mine.py").write_text(PREFERS.format(said=said))
            found = pumice("tune", spec, "--workers", 2, "--plugins-dir", plugins)
            started.append(found.json["before"]["figures"]["started"]["mean"])
        assert started[0] > started[1] == 0


# --- The space


def test_weights_are_found_by_the_records_of_plugins() -> None:
    found = weights_of(CONFIG)
    assert {"binpack.binpack.weight", "nodeorder.leastrequested.weight", "nodeorder.mostrequested.weight"} <= {*found}
    assert all("predicates" not in each for each in found)


def test_choices_are_laid_over_the_configuration() -> None:
    chosen = {
        "actions": "allocate",
        "order.0": ["gang", "priority"],
        "flags.gang.enableJobOrder": False,
        "plugins.nodeorder": False,
        "plugins.predicates": True,
        "arguments.binpack.binpack.weight": 7,
    }
    said = yaml.safe_load(applied(CONFIG, chosen))
    assert said["actions"] == "allocate"
    assert [each["name"] for each in said["tiers"][0]["plugins"]] == ["gang", "priority"]
    assert said["tiers"][0]["plugins"][0]["enableJobOrder"] is False
    assert [each["name"] for each in said["tiers"][1]["plugins"]] == ["predicates", "binpack"]
    assert said["tiers"][1]["plugins"][1]["arguments"] == {"binpack.weight": 7}


def test_a_range_is_of_whole_numbers_if_both_ends_are(file: Path) -> None:
    factor = {"arguments.overcommit.overcommit-factor": {"low": 1.5, "high": 2}}
    (file.parent / "s.conf").write_text(CONFIG.replace("{name: nodeorder}", "{name: nodeorder}, {name: overcommit}"))
    spec = read_spec(written(file.parent, space={"weights": [0, 5], **factor}))
    assert spec.space["arguments.overcommit.overcommit-factor"] == SearchRange(1.5, 2.0)
    assert spec.space["arguments.binpack.binpack.weight"] == SearchRange(0.0, 5.0)
    assert (SearchRange(0, 5).is_whole, SearchRange(0.5, 5).is_whole) == (True, False)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"workloads": []}, "there is nothing to judge by"),
        ({"space": {}}, "at least one thing that varies"),
        ({"space": {"argument.binpack.x": [1]}}, "unknown dimension 'argument.binpack.x'"),
        ({"space": {"weights": [3, 1]}}, "expected two numbers, the lesser first"),
        ({"space": {"actions": []}}, "a list of choices, or a range"),
        ({"space": {"arguments.binpack.x": {"low": 2, "high": 1}}}, "low below high"),
        ({"trials": 0}, "a number from 1 to 100000"),
        ({"space": {"arguments.drf.x": [1]}}, "the configuration has no plugin 'drf'"),
        ({"space": {"order.7": [["gang"]]}}, "the configuration has no tier 7"),
        ({"space": {"arguments.binpack.binpack.wight": [1]}}, "unknown argument 'binpack.wight'"),
        ({"space": {"actions": ["allocate", "alocate"]}}, "alocate"),
        ({"space": {"flags.gang.enableJobOrders": [True]}}, "enableJobOrders"),
    ],
)
def test_a_specification_that_cannot_be_searched_is_refused(changed: dict[str, Any], said: str, file: Path) -> None:
    """When it is read: before anything runs."""
    with pytest.raises(ConfigError) as refused:
        read_spec(written(file.parent, **changed))
    assert said in str(refused.value)


def test_the_specification_of_the_page_can_be_searched(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "tune.md").read_text()
    (tmp_path / "tune.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    (tmp_path / "scheduler.conf").write_text(default_text())
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all(nodes(1, cpu=4)))
    for day in ("monday", "tuesday"):
        (tmp_path / f"{day}.csv").write_text("arrival,duration\n0,60\n")
    spec = read_spec(tmp_path / "tune.yaml")
    assert (spec.trials, [each.name for each in (*spec.workloads, *spec.held_out)]) == (100, ["monday", "tuesday"])


def test_the_front_holds_what_nothing_beats() -> None:
    objectives = [objective_of("minimise wait.mean"), objective_of("maximise util.cpu")]
    tried = [
        TriedSettings({"at": at}, values) for at, values in enumerate([[3.0, 0.5], [2.0, 0.5], [4.0, 0.9], [2.0, 0.5]])
    ]
    assert [each.settings["at"] for each in front_of(tried, objectives)] == [1, 2]

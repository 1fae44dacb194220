"""Case files: found, named by their suite, and turned into what a cycle needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.config.errors import ConfigError, NotBuiltError
from pumice.proof.conformance.case import find_suites, options_of, refuse_unbuilt, setup_of
from pumice.proof.conformance.runner import cut

EMPTY: dict[str, Any] = {"expect": {}}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def test_suites_are_named_by_the_last_two_parts_and_found_once(tmp_path: Path) -> None:
    write(tmp_path / "up" / "b.json", {"cases": [1, 2]})
    write(tmp_path / "up" / "a.json", {"cases": []})
    write(tmp_path / "resources.json", {"quantities": [{}], "operations": [{}, {}]})
    found = find_suites([tmp_path, tmp_path / "up", tmp_path / "up" / "b.json"])
    assert [(one.suite, one.cases) for one in found] == [("resources", 3), ("up/a", 0), ("up/b", 2)]


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: does not exist"):
        find_suites([tmp_path / "nowhere"])


def test_absent_options_are_the_adaptive_search() -> None:
    assert options_of(EMPTY).percentage_of_nodes == 0
    assert options_of({**EMPTY, "options": {"percentageOfNodesToFind": 60}}).percentage_of_nodes == 60


def test_what_a_case_says_reaches_the_session() -> None:
    options = options_of(
        {
            "expect": {"atOpen": {"tasks": {"a/p": {}, "a/q": {}}}},
            "shard": {"mode": "soft", "nodes": ["n1", "n0"]},
            "nodeUsage": {"n0": {"cpu": {"5m": 1.0}}},
            "hyperNodes": {"byTier": {}},
            "ignoredProvisioners": ["p"],
        }
    )
    assert options.explain == ("a/p", "a/q")
    assert options.shard == ("soft", frozenset({"n0", "n1"}))
    assert options.node_usage == {"n0": {"cpu": {"5m": 1.0}}}
    assert options.hyper_nodes == {"byTier": {}}
    assert options.ignored_provisioners == ("p",)


def test_flags_default_on_only_where_the_case_says_so_or_gives_text() -> None:
    conf = {"actions": ["allocate"], "tiers": [{"plugins": [{"name": "gang"}]}], "configurations": []}
    case: dict[str, Any] = {"name": "c", "objects": [], "conf": conf, "flagsDefaultOn": False, **EMPTY}
    off = setup_of(case, close_hooks=False)
    on = setup_of({**case, "flagsDefaultOn": True}, close_hooks=False)
    text = setup_of({**case, "confYaml": 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]'}, close_hooks=True)
    enabled = [setup.config.tiers[0].plugins[0].is_enabled("JobReady") for setup in (off, on, text)]
    assert enabled == [False, True, True]


def test_an_action_that_is_not_built_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.proof.conformance.case.ACTIONS", {"allocate": None})
    refuse_unbuilt({"actions": ["allocate", "of-a-unit-test"], "tiers": [{"plugins": [{"name": "extender"}]}]})
    with pytest.raises(NotBuiltError, match="'shuffle'"):
        refuse_unbuilt({"actions": ["shuffle"], "tiers": []})


def test_slices_cover_every_case_once(tmp_path: Path) -> None:
    big = [{"name": "x" * 50_000}] * 10
    (file,) = find_suites([write(tmp_path / "s" / "a.json", {"cases": big})])
    slices = list(cut(file, ""))
    assert len(slices) > 1
    assert [number for piece in slices for number in range(piece.first, piece.last)] == list(range(10))

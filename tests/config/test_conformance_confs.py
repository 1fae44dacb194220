"""Every configuration of the conformance cases is read, without a warning."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pumice.core.configuration import from_parsed, parse_scheduler_config
from tests.kit import source

FOLDER = source.SHARED / "conformance"
SUITES = sorted(FOLDER.glob("*/*.json"))


@cache
def confs(path: Path) -> dict[str, Any]:
    """The distinct configurations of one suite, by their text."""
    found: dict[str, Any] = {}
    for case in json.loads(path.read_text("utf-8"))["cases"]:
        conf = case.get("confYaml") or case["conf"]
        found.setdefault(json.dumps(conf), conf)
    return found


@pytest.mark.skipif(not SUITES, reason="no shared/conformance beside the repository")
def test_there_are_suites() -> None:
    assert len(SUITES) >= 40


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_all_are_read(path: Path) -> None:
    for conf in confs(path).values():
        is_text = isinstance(conf, str)
        config = parse_scheduler_config(conf, source=path.name) if is_text else from_parsed(conf, False)
        assert config.warnings == ()
        assert config.actions
        assert config.tiers

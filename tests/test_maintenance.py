"""What maintainers rely on: headers, workflows that run what people run, hooks and templates that name what exists."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests import headers
from tests.kit import source

WORKFLOWS: Final = sorted((source.ROOT / ".github" / "workflows").glob("*.yaml"))
SESSION: Final = re.compile(r"nox -s ([\w-]+)")


def steps(path: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def sessions() -> set[str]:
    text = (source.ROOT / "noxfile.py").read_text("utf-8")
    return set(re.findall(r"^@nox\.session\ndef (\w+)", text, re.MULTILINE))


def test_header_comes_after_a_line_for_the_shell(tmp_path: Path) -> None:
    script, module = tmp_path / "script.py", tmp_path / "module.py"
    script.write_text("#!/usr/bin/env python3\nprint()\n")
    module.write_text('"""Says nothing."""\n')
    for path in (script, module):
        headers.put(path)
    assert script.read_text().splitlines()[:2] == ["#!/usr/bin/env python3", headers.HEADER.strip()]
    assert module.read_text() == f'{headers.HEADER}"""Says nothing."""\n'


def test_build_runs_the_script_on_each_python_that_is_named() -> None:
    (build,) = [path for path in WORKFLOWS if path.name == "build.yaml"]
    job = yaml.safe_load(build.read_text("utf-8"))["jobs"]["build"]
    classifiers = tomllib.loads((source.ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    named = [each.rpartition(" ")[2] for each in classifiers if re.search(r":: 3\.\d+$", each)]
    assert job["strategy"]["matrix"]["python"] == named
    assert "bash .ci/run" in [step.get("run") for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_may_do_little_and_uses_what_was_reviewed(path: Path) -> None:
    text = path.read_text("utf-8")
    loaded = yaml.safe_load(text)
    assert loaded["permissions"] == {}
    assert all("timeout-minutes" in job for job in loaded["jobs"].values())
    used = re.findall(r"uses: (\S+)", text)
    assert [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)] == [], "pinned by hash"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_sessions_of_a_workflow_exist(path: Path) -> None:
    run = " ".join(step.get("run", "") for step in steps(path))
    assert set(SESSION.findall(run)) <= sessions()


def test_sessions_of_the_script_exist() -> None:
    assert set(SESSION.findall((source.ROOT / ".ci" / "run").read_text("utf-8"))) <= sessions()


def test_hooks_run_what_exists() -> None:
    hooks = yaml.safe_load((source.ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
    for hook in hooks:
        words = shlex.split(hook["entry"])
        files = [word for word in words if word.endswith(".py")]
        modules = [after for word, after in pairwise(words) if word == "-m" and "." in after]
        assert all((source.ROOT / name).exists() for name in files)
        assert all(source.path_of(name).with_suffix(".py").exists() for name in modules)
        assert set(SESSION.findall(hook["entry"])) <= sessions()


def test_container_for_development_is_set_up_as_the_readme_says() -> None:
    made = json.loads((source.ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    readme = (source.ROOT / "README.md").read_text("utf-8")
    (set_up,) = re.findall(r"<!-- ci: tests -->\n```sh\n(.+) && [^&]*pytest.*\n```", readme)
    assert made["postCreateCommand"].startswith(set_up)

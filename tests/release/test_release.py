"""What a release shows without being built: its version, what it installs, its placeholders, its Dockerfile."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from pumice import __version__
from tests.kit import source
from tests.release import __main__ as release
from tests.release import dependencies, image, trials
from tests.release.archives import BIN, NOT_OURS, ReleaseError, code

PROJECT = tomllib.loads((source.ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_changelog_has_the_version() -> None:
    text = (source.ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE)


def test_page_lists_what_is_required() -> None:
    required = {dependencies.normal(re.split(r"[\[<>=;]", each)[0]) for each in PROJECT["dependencies"]}
    assert required <= dependencies.listed()


def test_page_lists_every_extra() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", dependencies.PAGE.read_text("utf-8"), re.MULTILINE)
    assert PROJECT["optional-dependencies"].keys() - {"dev"} <= set(rows)


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "AGPL-3.0", "UNKNOWN", "Proprietary"])
def test_licence_that_is_not_free_for_all_is_looked_at(licence: str) -> None:
    assert not dependencies.FREE.search(licence)


def test_placeholders_keep_it_from_being_published() -> None:
    held = [name for name, url in PROJECT["urls"].items() if ".invalid" in url]
    if held:
        with pytest.raises(ReleaseError, match=held[0]):
            release.is_publishable()
    else:
        release.is_publishable()


def test_installed_files_have_their_names_of_the_wheel() -> None:
    names = code()
    assert {"pumice/__init__.py", "pumice/core/cycle.py", "pumice/actors/gateway/page/assets/main.js"} <= names
    assert not [name for name in names if NOT_OURS.search(name) or name.endswith(".md")]


def test_trials_run_what_the_readme_begins_with() -> None:
    assert trials.first_command() == ["run", "--until", "idle"]
    assert trials.first_program().startswith("import pumice\n")


def test_dockerfile_is_without_fault() -> None:
    done = subprocess.run(
        [BIN / "hadolint", source.ROOT / "Dockerfile"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == ""


def test_image_s_user_is_the_chart_s() -> None:
    chart = (source.ROOT / "charts" / "pumice" / "templates" / "statefulset.yaml").read_text("utf-8")
    dockerfile = (source.ROOT / "Dockerfile").read_text("utf-8")
    assert f"runAsUser: {image.USER}\n" in chart
    assert f"USER {image.USER}:{image.USER}\n" in dockerfile
    assert f":{image.USER}:" in Path(source.ROOT, "image", "lay_out.sh").read_text("utf-8")

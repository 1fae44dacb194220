"""Pumice takes one name: what lies beside a script, or in site-packages, may have every other."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import anyio
import pytest

from pumice.config.errors import ConfigError
from pumice.plugins.loader import FORMER_NAMES, install_plugins
from pumice.storage.sqlite import SqliteJournal
from tests.kit import source
from tests.storage.test_golden import copied

SCRIPT = """
import config, core, storage, actors
import pumice
cluster = pumice.Cluster(pumice.nodes(2))
cluster.submit(pumice.gang("g", pods=2))
print(config.MARK, core.MARK, storage.MARK, actors.MARK, len(cluster.step().binds))
"""


def test_a_script_beside_foreign_modules_of_former_names_runs(tmp_path: Path) -> None:
    for name in FORMER_NAMES:
        (tmp_path / f"{name}.py").write_text(f"MARK = {name!r}\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "config core storage actors 2\n", "")


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_a_plugin_that_imports_a_former_name_is_told_the_new_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.py").write_text(f"from {name}.sub import thing\n")
    with pytest.raises(ConfigError, match=f"imports '{name}', which is pumice.{name} now: import it by that name"):
        install_plugins(tmp_path)


def test_the_links_lead_to_the_folders_beside_pumice() -> None:
    links = {path.name: path.resolve() for path in (source.ROOT / "pumice").iterdir() if path.is_symlink()}
    assert links == {name: source.ROOT / name for name in source.LAYERS[1:]}


def test_a_journal_names_no_module(tmp_path: Path) -> None:
    """Code may move: what is recorded is read by the names of records and fields alone."""

    async def contents() -> list[bytes]:
        async with await SqliteJournal.open(copied("stock", tmp_path), read_only=True) as journal:
            checkpoints = [each.content for each in await journal.checkpoints()]
            return [*checkpoints, *(each.payload for each in await journal.read())]

    written = anyio.run(contents)
    assert len(written) > 20
    dotted = [source.module_of(path) for path, _ in source.modules(*source.LAYERS)]
    names = {name.encode() for each in dotted for name in (each, each.removeprefix("pumice.")) if "." in name}
    assert not names.intersection(word for content in written for word in re.findall(rb"[\w.]+", content))


@pytest.mark.slow
def test_the_wheel_has_one_top_level_name(tmp_path: Path) -> None:
    """Also the one that is built from the source distribution, as `pip install` of it does."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(build, cwd=source.ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"pumice"}
    for path, _ in source.modules(*source.LAYERS):
        assert str(source.imported_from(path).relative_to(source.ROOT)) in names

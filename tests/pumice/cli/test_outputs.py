"""No command writes over a file that it reads, whatever that is called."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.pumice.cli.terminal import pumice
from tests.storage.test_golden import copied

COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "report": ("report", "IN", "-o", "OUT"),
    "report of two": ("report", "OTHER", "IN", "-o", "OUT"),
    "timeline": ("timeline", "IN", "-o", "OUT"),
    "measures --csv": ("measures", "IN", "--csv", "OUT"),
    "measures --parquet": ("measures", "IN", "--parquet", "OUT"),
    "kubeconfig": ("kubeconfig", "--http", "127.0.0.1:1", "--token-file", "TOKEN", "--write", "OUT"),
    "sweep": ("sweep", "SPEC", "-o", "OUT"),
    "run": ("run", "-f", "journal:IN", "--until", "0s", "--time", "virtual", "--db", "OUT"),
}
INPUTS: Final = {"kubeconfig": "token", "sweep": "sweep.csv"}
NODE: Final = "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\n"
SPEC: Final = "fixed: {input: jobs.yaml}\ngrid: {seed: [1, 2]}\n"


def itself(source: Path, folder: Path) -> Path:
    return source


def symbolic(source: Path, folder: Path) -> Path:
    (folder / "link.csv").symlink_to(source)
    return folder / "link.csv"


def hard(source: Path, folder: Path) -> Path:
    os.link(source, folder / "link.csv")
    return folder / "link.csv"


def through_a_folder(source: Path, folder: Path) -> Path:
    (folder / "here").symlink_to(folder)
    return folder / "here" / source.name


@pytest.mark.parametrize("name", [itself, symbolic, hard, through_a_folder])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_is_never_written_over(
    command: str, name: Callable[[Path, Path], Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    journal = copied("stock", tmp_path)
    other = copied("topology", tmp_path_factory.mktemp("other"))
    (tmp_path / "token").write_text("secret")
    (tmp_path / "sweep.csv").write_text(SPEC)
    (tmp_path / "jobs.yaml").write_text(NODE)
    source = tmp_path / INPUTS.get(command, journal.name)
    before = source.read_bytes()
    places = {
        "IN": journal,
        "OTHER": other,
        "TOKEN": tmp_path / "token",
        "SPEC": tmp_path / "sweep.csv",
        "OUT": name(source, tmp_path),
    }
    words = [str(places.get(word, word)).replace("journal:IN", f"journal:{journal}") for word in COMMANDS[command]]
    said = pumice(*words)
    assert source.read_bytes() == before
    assert said.code == 2, said.err
    assert "this file is read by the command: name another one to write to" in said.err


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-lock"])
@pytest.mark.parametrize("command", ["report", "timeline", "measures --csv"])
def test_nor_is_anything_laid_beside_a_journal_that_would_belong_to_it(
    command: str, suffix: str, tmp_path: Path
) -> None:
    journal = copied("stock", tmp_path)
    beside = journal.with_name(journal.name + suffix)
    said = pumice(*(str({"IN": journal, "OUT": beside}.get(word, word)) for word in COMMANDS[command]))
    assert said.code == 2, said.err
    assert not beside.exists() or not beside.stat().st_size or suffix == "-shm"
    assert pumice("journal", journal, "--check").code == 0


def test_a_copy_and_a_run_kept_are_not_laid_there_either(tmp_path: Path) -> None:
    journal = copied("stock", tmp_path)
    beside = f"{journal}-lock"
    assert pumice("journal", journal, "--backup", beside).code == 2
    assert not Path(beside).exists()


def test_a_sweep_does_not_write_over_a_configuration_of_its_runs(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parents[3] / "config" / "default.conf", tmp_path / "stock.csv")
    (tmp_path / "jobs.yaml").write_text(NODE)
    spec = tmp_path / "sweep.yaml"
    spec.write_text("fixed: {input: jobs.yaml, config: stock.csv}\n")
    before = (tmp_path / "stock.csv").read_bytes()
    said = pumice("sweep", spec, "-o", tmp_path / "stock.csv", "--workers", 1)
    assert (tmp_path / "stock.csv").read_bytes() == before
    assert said.code == 2, said.err
    assert "this file is read by the command" in said.err
    assert not (tmp_path / "sweep.results").exists(), "it is said before anything is run"


def test_the_kubeconfig_of_a_server_takes_no_inputs_place(tmp_path: Path) -> None:
    manifest = tmp_path / "p.kubeconfig"
    manifest.write_text(NODE)
    before = manifest.read_bytes()
    said = pumice("run", "-f", manifest, "--http", "127.0.0.1:0", "--until", "0s", "--db", tmp_path / "p.db")
    assert manifest.read_bytes() == before
    assert said.code == 2, said.err


def test_the_next_command_may_write_where_the_one_before_read(tmp_path: Path) -> None:
    journal = copied("stock", tmp_path)
    assert pumice("measures", journal, "--csv", tmp_path / "a.csv").code == 0
    assert pumice("measures", journal, "--csv", tmp_path / "a.csv").code == 0
    assert pumice("journal", journal, "--check").code == 0

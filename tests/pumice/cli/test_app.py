"""What `pumice` says of itself, before any command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from pumice import __version__
from pumice.cli.app import COMMANDS, load
from tests.pumice.cli.terminal import pumice

HEAVY: Final = frozenset({"anyio", "httpx", "hypercorn", "msgspec", "numpy", "rich", "sqlite3", "trio", "yaml"})


def test_version() -> None:
    said = pumice("--version")
    assert (said.code, said.out) == (0, f"pumice {__version__}\n")


@pytest.mark.parametrize("command", ["run", "decide", "conformance", "journal", "bench"])
def test_help_has_an_example(command: str) -> None:
    said = pumice(command, "--help")
    assert said.code == 0
    _, example = " ".join(said.out.split()).split("Example: ")
    assert f"pumice {command}" in example


def test_unknown_command() -> None:
    said = pumice("rum")
    assert said.code == 2
    assert "rum" in said.err


def loaded_by(*options: str) -> list[str]:
    """The modules that a command leaves loaded, in order."""
    code = """if True:
        import sys
        from pumice.cli import main
        try:
            main()
        except SystemExit as ending:
            print(ending.code, *sys.modules, file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, text=True, check=True)
    ending, *modules = done.stderr.splitlines()[-1].split()
    assert ending == "0"
    return modules


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_it_says_of_itself_needs_nothing_that_commands_need(option: str) -> None:
    """Each of these takes longer to import than the rest takes altogether."""
    modules = loaded_by(option)
    assert HEAVY.isdisjoint(modules)
    assert [each for each in modules if each.startswith(("pumice.core.", "pumice.actors.", "pumice.storage."))] == [
        "pumice.storage.errors"
    ]
    assert len(modules) < 400


def test_a_bare_run_loads_no_trio_no_adviser_and_no_web_server(tmp_path: Path) -> None:
    modules = loaded_by("run", "--until", "idle", "--quiet", "--db", str(tmp_path / "j.db"))
    assert {"trio", "pumice.questions.adviser.answers", "pumice.proof.storm.simulation", "hypercorn"}.isdisjoint(
        modules
    )


def test_every_command_is_what_the_table_says() -> None:
    for name in COMMANDS:
        command = load(name)
        assert (command.name, command.help) == (name, COMMANDS[name].help)
        assert f"pumice {name}" in command.epilog
        assert f"\n  {name}" in pumice("--help").out

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


@pytest.mark.parametrize("command", COMMANDS)
def test_help_at_eighty_columns_cuts_nothing(command: str) -> None:
    said = pumice(command, "--help", env={"COLUMNS": "80"})
    assert (said.code, [line for line in said.out.splitlines() if len(line) > 80 or "…" in line]) == (0, [])
    assert "<" not in said.out, "an option without a metavar"
    text, example = " ".join(said.out.split()).split("Example: ")
    assert f"pumice {command}" in example
    for shared in ("--quiet", "--log-level", "--lenient", "json|yaml|table"):
        assert shared in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rum"], "command 'rum' does not exist; near: run"),
        (
            ["run", "--sed", "1"],
            "--sed: pumice run has no such option; near: --seed, --speedup, --db; pumice run --help lists the options",
        ),
        (["run", "--seed", "x"], "--seed: expected an integer, was 'x'"),
        (["stress", "--seeds=0"], "--seeds: expected a number of at least 1, was '0'"),
        (["measures", "a.db", "--table", "x"], "--table: expected one of jobs, queues, series, was 'x'"),
        (["measures"], "FILE: expected a value, found none; pumice measures --help lists the options"),
        (
            ["run", "--until", "never"],
            "--until: expected idle, a duration such as 30s or 1h30m, or cycles=N for at least",
        ),
    ],
)
def test_mistake_in_a_command_line_is_one_line(arguments: list[str], says: str) -> None:
    said = pumice(*arguments)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith(f"pumice: {says}")


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


def test_a_question_about_a_journal_loads_no_api_and_no_controllers(tmp_path: Path) -> None:
    db = str(tmp_path / "j.db")
    loaded_by("run", "--until", "idle", "--quiet", "--db", db)
    modules = loaded_by("queue", "--db", db)
    needless = ("httpx", "prometheus_client", "pumice.load.manifests", "pumice.cluster.api.admission")
    assert {*needless, "pumice.cluster.kernel.roster", "pumice.actors.system.system"}.isdisjoint(modules)
    assert len([each for each in modules if each.startswith("pumice.")]) < 450


def test_every_command_is_what_the_table_says() -> None:
    for name in COMMANDS:
        command = load(name)
        assert (command.name, command.help) == (name, COMMANDS[name].help)
        assert f"pumice {name}" in command.epilog
        assert f"\n  {name}" in pumice("--help").out

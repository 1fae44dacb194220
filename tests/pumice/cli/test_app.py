"""What `pumice` says of itself, before any command."""

from __future__ import annotations

import pytest

from pumice import __version__
from tests.pumice.cli.terminal import pumice


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

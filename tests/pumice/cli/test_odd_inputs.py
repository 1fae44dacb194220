"""A pipe, a socket, a device or a folder in the place of any file that a command reads: an error, and no waiting."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.pumice.cli.terminal import pumice

RUN: Final = ("run", "--until", "idle", "--time", "virtual", "--db", "NEW")
HTTP: Final = ("run", "--until", "idle", "--db", "NEW", "--http", "127.0.0.1:0")
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "run -f": (*RUN, "-f", "ODD"),
    "run --config": (*RUN, "--config", "ODD"),
    "run --profiles": (*RUN, "--faults", "mine", "--profiles", "ODD"),
    "run --plugins-dir": (*RUN, "--plugins-dir", "PLUGINS"),
    "run --db": ("run", "--until", "idle", "--time", "virtual", "--db", "ODD"),
    "run --token-file": (*HTTP, "--token-file", "ODD"),
    "run --tls-cert": (*HTTP, "--tls-cert", "ODD", "--tls-key", "ODD"),
    "run --kubeconfig": ("run", "--db", "NEW", "--kubeconfig", "ODD"),
    "mirror --kubeconfig": ("mirror", "--db", "NEW", "--kubeconfig", "ODD"),
    "kubeconfig --token-file": ("kubeconfig", "--http", "127.0.0.1:1", "--token-file", "ODD"),
    "kubeconfig --tls-cert": ("kubeconfig", "--http", "127.0.0.1:1", "--tls-cert", "ODD"),
    "check": ("check", "ODD"),
    "conformance": ("conformance", "ODD"),
    "decide -f": ("decide", "-f", "ODD"),
    "decide --db": ("decide", "--db", "ODD", "--cycle", "1"),
    "explain": ("explain", "-f", "ODD", "job", "default/j"),
    "journal": ("journal", "ODD"),
    "journal --check": ("journal", "ODD", "--check"),
    "measures": ("measures", "ODD"),
    "report": ("report", "ODD"),
    "timeline": ("timeline", "ODD"),
    "replay": ("replay", "ODD", "--verify"),
    "sweep": ("sweep", "ODD"),
    "stress --events": ("stress", "--events", "ODD"),
    "eta": ("eta", "--db", "ODD"),
    "queue": ("queue", "--db", "ODD"),
    "whatif": ("whatif", "-f", "ODD", "--drain", "n0"),
    "traces: swf": (*RUN, "-f", "swf:ODD"),
    "traces: csv": (*RUN, "-f", "csv:ODD"),
    "traces: philly": (*RUN, "-f", "philly:ODD"),
    "traces: parquet": (*RUN, "-f", "parquet:ODD"),
    "traces: journal": (*RUN, "-f", "journal:ODD"),
    "traces: openb": (*RUN, "-f", "openb:ODD,ODD"),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_named_pipe_in_place_of_a_file_is_an_error(command: str, tmp_path: Path) -> None:
    odd, plugins = tmp_path / "odd", tmp_path / "plugins"
    plugins.mkdir()
    for pipe in (odd, plugins / "mine.py"):
        os.mkfifo(pipe)
    places = {"NEW": str(tmp_path / "new.db"), "PLUGINS": str(plugins)}
    words = [places.get(word, word.replace("ODD", str(odd))) for word in COMMANDS[command]]
    said = pumice(*words)
    assert said.code in (2, 3), said.err
    assert "named pipe" in said.err
    assert "Traceback" not in said.err


@pytest.mark.timeout(30)
@pytest.mark.parametrize("odd", ["/dev/zero", "/"])
@pytest.mark.parametrize("command", ["run --config", "run --token-file", "decide -f", "run --tls-cert"])
def test_a_device_or_a_folder_is_one_too(command: str, odd: str, tmp_path: Path) -> None:
    words = [str(tmp_path / "new.db") if word == "NEW" else word.replace("ODD", odd) for word in COMMANDS[command]]
    if (command, odd) == ("decide -f", "/"):
        words[-1] = str(tmp_path)  # folders are walked; this one is empty
    said = pumice(*words)
    assert said.code in (2, 3), said.err
    assert "Traceback" not in said.err

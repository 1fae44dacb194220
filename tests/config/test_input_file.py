"""What may be named as an input: files, and pipes that the process was handed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pumice.config.input_file import demand_file, open_input, read_bytes, read_text

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["folder", "pipe", "socket", "device"])
def odd(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Something that is there and is no file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "odd"
        match request.param:
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
            case "socket":
                server = socket.socket(socket.AF_UNIX)
                server.bind(str(path))
                server.close()
            case _:
                path = Path("/dev/zero")
        yield path


@pytest.mark.timeout(10)
@pytest.mark.parametrize("read", [open_input, read_bytes, read_text, demand_file])
def test_what_is_no_file_is_refused_immediately(odd: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises(OSError, match=r"not a file|Is a directory") as refusal:
        read(odd)
    assert refusal.value.strerror
    assert refusal.value.filename == str(odd)


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\r\nb")
    assert read_bytes(tmp_path / "file") == b"a\r\nb"
    assert read_text(tmp_path / "file") == "a\nb"
    (tmp_path / "link").symlink_to("file")
    assert read_text(tmp_path / "link") == "a\nb"
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "missing")
    demand_file(tmp_path / "missing")


@pytest.mark.timeout(20)
def test_a_pipe_that_was_handed_over_is_read_and_remembered() -> None:
    reading, writing = os.pipe()
    path = Path(f"/dev/fd/{reading}")

    def write() -> None:
        os.write(writing, b"text")
        os.close(writing)

    threading.Timer(0.2, write).start()
    try:
        assert read_bytes(path) == b"text"
        assert read_text(path) == "text", "who follows a file reads it again"
    finally:
        os.close(reading)


@pytest.mark.parametrize("given", ["text", ""])
def test_stdin_by_its_name_is_read(given: str) -> None:
    read = "from pumice.config.input_file import read_text; print(read_text(Path('/dev/stdin')))"
    command = [sys.executable, "-c", f"from pathlib import Path; {read}"]
    said = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=True)
    assert said.stdout == f"{given}\n"

"""The settings of the C library's allocator, in processes of their own."""

import platform
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from pumice.runtime.allocator import give_back, live_long
from pumice.runtime.main_job import RunPlan, Watching, run_plan
from pumice.runtime.waiting import parse_until

GLIBC = platform.libc_ver()[0] == "glibc"
MAPPED = """
import ctypes, sys
from pumice.runtime.allocator import live_long

class Information(ctypes.Structure):
    _fields_ = [(f"number{each}", ctypes.c_size_t) for each in range(10)]

def mapped():
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Information
    return libc.mallinfo2().number4  # hblkhd

if sys.argv[1] == "settled":
    assert live_long()
piece = bytes(8 << 20)
del piece  # from which glibc learns, unless it is told
before = mapped()
piece = bytes(4 << 20)
print((mapped() - before) >> 20)
"""


@pytest.mark.skipif(not GLIBC, reason="only glibc's allocator can be told")
@pytest.mark.parametrize(("how", "expected"), [("settled", 4), ("as it is", 0)])
def test_large_pieces_come_from_the_system_and_go_back(how: str, expected: int) -> None:
    command = [sys.executable, "-c", MAPPED, how]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env={})
    assert int(said.stdout) == expected


class Library:
    """A C library that notes what its allocator is told."""

    told: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, name: str | None) -> None:
        assert name is None

    def mallopt(self, number: int, value: int) -> int:
        self.told.append((number, value))
        return 1


def test_what_a_user_sets_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", Library)
    monkeypatch.setattr(Library, "told", [])
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "65536")
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    assert live_long()
    assert Library.told == [(-8, 1), (-1, 8 << 20)]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", repr)
    assert not live_long()


HOLES = """
import anyio, sys
from pumice.runtime import allocator

def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 >> 20

async def once():
    with anyio.move_on_after(allocator.EACH_S * 50):
        await allocator.give_back()

allocator.EACH_S = 0.01
allocator.live_long()
pieces = [b"x" * (64 << 10) for _ in range(1600)]
kept = pieces[::16]
del pieces
before = resident()
anyio.run(once, backend=sys.argv[1])
print(before - resident())
"""


@pytest.mark.skipif(not GLIBC, reason="only glibc's allocator can be told")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_holes_in_the_heap_go_back(backend: str) -> None:
    command = [sys.executable, "-c", HOLES, backend]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env={})
    assert int(said.stdout) > 60


@pytest.mark.anyio
async def test_without_that_library_nothing_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", repr)
    await give_back()


def given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, virtual: bool) -> int:
    """How often a run of half a second or of a thousand virtual seconds did it, were a minute 0.05 s."""
    asked: list[int] = []
    monkeypatch.setattr("pumice.runtime.allocator.EACH_S", 0.05)
    monkeypatch.setattr("pumice.runtime.allocator._function", {"malloc_trim": asked.append}.get)
    until = parse_until("1000s" if virtual else "500ms")
    run_plan(RunPlan([], True, tmp_path / "run.db", until, virtual=virtual), Watching())
    return len(asked)


def test_a_run_gives_back_each_minute_of_the_real_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_back(tmp_path, monkeypatch, virtual=False) > 1


def test_on_virtual_time_nothing_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_back(tmp_path, monkeypatch, virtual=True) == 0

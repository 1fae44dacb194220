# SPDX-License-Identifier: Apache-2.0
"""A sandbox for untrusted policies: one process a run, with bounds, and without files, network or children.

The process is forked from a server that has imported Pumice; it decides one harmless cycle, so that nothing is left to
import, and then gives up all that a policy could use: every file but the pipe for its answer, its environment, and all
calls of the kernel but a few (seccomp). Only then the policy's code runs. Its answer is read as data, never unpickled.

What it cannot stop. The policy runs beside the simulation, in one process: a hostile one can falsify its own figures.
So a sandbox bounds what a policy costs, and what it reaches; it does not vouch for the figures. Read the code of a
winner, or evaluate it again as a configuration of built-in plugins. Nor does it stop time as a channel, or a fault of
the kernel.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import resource
import sys
import time
from ctypes import CDLL, POINTER, Structure, byref, c_uint8, c_uint16, c_uint32, c_ushort, get_errno
from errno import EPERM
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIGXCPU
from typing import Any, Final

import msgspec
from msgspec import Struct

from pumice.actors.runtime.clock import VirtualClock
from pumice.config.errors import PumiceError, RequestError
from pumice.config.load import default_text
from pumice.executors import apart_from_main
from pumice.lab.builders import gang, nodes
from pumice.questions.evaluation.task import EvaluatedFigures, EvaluationTask, evaluated
from pumice.questions.evaluation.workload import placeable
from pumice.questions.gate.run import RunTask
from pumice.storage import codec

LONGEST_ANSWER: Final = 1_000_000
"""Bytes of an answer at most."""
LEAST_FILE: Final = 3
"""The first file after the standard ones."""


class Sandbox(Struct, frozen=True):
    """Bounds of a run: seconds by the clock and of processor, and memory in bytes (of address space)."""

    seconds: float = 120.0
    cpu_s: int = 60
    memory_bytes: int = 4 * 2**30


# --- Calls of the kernel
# By number on x86-64 and on 64-bit Arm: memory, time, its own signals, the open pipe, and the end.

CALLS: Final = {
    "x86_64": (
        0xC000003E,
        (0, 1, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 28, 35, 39, 60, 96, 98, 131, 186, 202, 204, 219, 228, 230,
         231, 271, 318),
    ),
    "aarch64": (
        0xC00000B7,
        (57, 62, 63, 64, 73, 80, 93, 94, 98, 101, 113, 115, 123, 124, 128, 132, 134, 135, 139, 165, 169, 172, 178, 214,
         215, 216, 222, 226, 233, 278),
    ),
}  # fmt: skip
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER_AT, MACHINE_AT = 0, 4
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | EPERM, 0x80000000
NO_NEW_PRIVILEGES, SET_SECCOMP, BY_FILTER = 38, 22, 2


class _Step(Structure):
    _fields_ = (("code", c_uint16), ("yes", c_uint8), ("no", c_uint8), ("value", c_uint32))


class _Program(Structure):
    _fields_ = (("length", c_ushort), ("steps", POINTER(_Step)))


def _filter() -> list[tuple[int, int, int, int]]:
    """Return the filter's program: calls of another machine's kind kill, listed ones are allowed, others refused."""
    machine, allowed = CALLS[platform.machine()]
    steps = [(LOAD, 0, 0, MACHINE_AT), (JUMP_IF_EQUAL, 1, 0, machine), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER_AT)]
    for number in allowed:
        steps += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    return [*steps, (RETURN, 0, 0, REFUSE)]


def _give_up_calls() -> None:
    """Give up all calls that are not listed, for good. Raises OSError."""
    libc = CDLL(None, use_errno=True)
    steps = _filter()
    program = _Program(len(steps), (_Step * len(steps))(*(_Step(*step) for step in steps)))
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SET_SECCOMP, BY_FILTER, byref(program), 0, 0):
        raise OSError(get_errno(), "the kernel takes no filter of calls")


def is_supported() -> bool:
    """Return whether this machine can have a sandbox."""
    return sys.platform == "linux" and platform.machine() in CALLS


# --- The process inside


def _lock_up(line: int, limits: Sandbox) -> None:
    """Give up everything but the pipe. Raises OSError, RuntimeError."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(LEAST_FILE):
        os.dup2(nowhere, standard)
    os.closerange(LEAST_FILE, line)
    os.closerange(line + 1, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    # The first bound sends a signal of its own, SIGXCPU; the second one kills a policy that ignores it.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    for what, most in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))
    if len([*Path("/proc/self/task").iterdir()]) != 1:
        raise RuntimeError("another thread runs in the process: it would keep its calls")
    _give_up_calls()


def _harmless(*, placement: bool) -> EvaluationTask:
    objects = [*nodes(2), gang("warm", 2, duration="1s")]
    given = placeable(objects) if placement else objects
    run = RunTask(codec.pack(given), default_text(), "harmless", VirtualClock.start, None, 1.0)
    return EvaluationTask(run, ("wait.mean", "util.cpu"), placement=placement)


def _inside(line: Connection[bytes, bytes], task: bytes, limits: Sandbox) -> None:
    """Answer the task, and end. The policy's code runs only between the lock and the answer."""
    plain = msgspec.msgpack.decode(task, type=EvaluationTask)
    try:
        evaluated(_harmless(placement=plain.placement))
        _lock_up(line.fileno(), limits)
        answer = evaluated(plain)
    except MemoryError:
        answer = EvaluatedFigures(problem=f"needs more than {limits.memory_bytes} bytes of memory")
    except PumiceError as error:
        answer = EvaluatedFigures(problem=str(error))
    except BaseException as error:  # noqa: BLE001 - whatever a policy raises, sys.exit as well
        answer = EvaluatedFigures(problem=f"{type(error).__name__}: {error}")
    line.send_bytes(msgspec.msgpack.encode(answer))


# --- The process outside


def sandboxed(task: EvaluationTask, limits: Sandbox) -> EvaluatedFigures:
    """Return the figures of a task whose policy runs in a sandbox; `problem` says why there are none. Raises
    RequestError where there can be no sandbox.
    """
    if not is_supported():
        raise RequestError(
            f"a sandbox needs Linux on {' or '.join(CALLS)}; evaluate policies that you trust without it"
        )
    context = _server()
    ours, theirs = context.Pipe()
    given = msgspec.msgpack.encode(task)
    process = context.Process(target=_inside, args=(theirs, given, limits), daemon=True)
    with apart_from_main():
        process.start()
    theirs.close()
    until = time.monotonic() + limits.seconds
    try:
        if not ours.poll(max(0.0, until - time.monotonic())):
            return EvaluatedFigures(problem=f"gave no answer within {limits.seconds:g} s")
        return msgspec.msgpack.decode(ours.recv_bytes(LONGEST_ANSWER), type=EvaluatedFigures)
    except (EOFError, OSError):
        process.join()
        if process.exitcode == -SIGXCPU:
            return EvaluatedFigures(problem=f"took more than {limits.cpu_s} s of processor time")
        return EvaluatedFigures(problem=f"its process died ({_said(process.exitcode)})")
    except msgspec.DecodeError:
        return EvaluatedFigures(problem="its answer is not an answer")
    finally:
        process.kill()
        process.join()
        ours.close()


def _said(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"code {code}"


def _server() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context

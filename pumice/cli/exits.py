# SPDX-License-Identifier: Apache-2.0
"""Exit codes, and the decorator that turns an error into the right one with one clear sentence on stderr."""

from __future__ import annotations

import errno
import functools
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Final, ParamSpec

import typer

from pumice.config.errors import ConfigError, InternalError, PumiceError, RequestError
from pumice.config.input_file import noting_inputs
from pumice.config.printable import LINE_ENDS, printable
from pumice.storage.errors import (
    CodecError,
    DamagedError,
    ForeignFileError,
    MissingFileError,
    NewerPayloadError,
    NewerSchemaError,
    TakenError,
)

P = ParamSpec("P")


class Exit(IntEnum):
    """Exit code of the process."""

    DONE = 0
    DIFFERS = 1
    USAGE = 2
    WORLD = 3
    INTERRUPTED = 130


INTERRUPTED: Final = "pumice: interrupted before the end"


class UsageError(ConfigError):
    """The command line itself is at fault: an option's value, or options that exclude each other."""


BAD_INPUT: Final = (
    CodecError,
    ConfigError,
    DamagedError,
    RequestError,
    MissingFileError,
    ForeignFileError,
    NewerSchemaError,
    TakenError,
)
"""Errors for which the input is at fault; a journal that is locked or cannot be written is the outside world's
failure."""


def exit_code_of(error: BaseException) -> Exit:
    """Return the exit code of an error, by the party at fault."""
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, BAD_INPUT):
        return Exit.USAGE
    if isinstance(error, InternalError):
        return Exit.DIFFERS
    return Exit.WORLD


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """Wrap a command: it returns its exit code, and an expected error becomes a sentence instead of a traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with noting_inputs():
                code = command(*args, **kwargs)
        except (PumiceError, OSError, KeyboardInterrupt) as error:
            if isinstance(error, BrokenPipeError):
                raise
            _say(error)
            code = exit_code_of(error)
        except BaseExceptionGroup as group:
            code = _exit_of_group(group)
        raise typer.Exit(int(code))

    return wrapped


def _exit_of_group(group: BaseExceptionGroup[BaseException]) -> Exit:
    """Return the exit code of a task group's errors: an interrupt wins; an unexpected one is shown whole."""
    leaves = _leaves(group)
    if interrupts(group):
        _say(KeyboardInterrupt())
        return Exit.INTERRUPTED
    for error in leaves:
        if not isinstance(error, (PumiceError, OSError)):
            raise group
    for error in leaves:
        _say(error)
    return exit_code_of(leaves[0])


def interrupts(error: BaseException) -> bool:
    """Return whether Ctrl-C caused the error."""
    return any(isinstance(leaf, KeyboardInterrupt) for leaf in _leaves(error))


def _leaves(error: BaseException) -> list[BaseException]:
    members: tuple[BaseException, ...] | None = getattr(error, "exceptions", None)
    if members is None:
        return [error]
    return [leaf for member in members for leaf in _leaves(member)]


def _say(error: BaseException) -> None:
    if isinstance(error, KeyboardInterrupt):
        sys.stderr.write(f"{INTERRUPTED}\n")
        return
    if isinstance(error, InternalError):
        traceback.print_exception(error, file=sys.stderr)
    sys.stderr.write(f"pumice: {printable(describe(error), keep=LINE_ENDS)}\n")


def describe(error: BaseException) -> str:
    """Return one line a person can act on."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or errno.errorcode.get(error.errno or 0, 'failed')}"
    if isinstance(error, CodecError) and not isinstance(error, NewerPayloadError):
        return f"the journal is damaged: an object cannot be read ({error}); `pumice journal FILE --check` names it"
    return str(error) or type(error).__name__

# SPDX-License-Identifier: Apache-2.0
"""The terminal: a command's result goes to stdout alone, everything else to stderr."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment

from pumice.cli.exits import guarded
from pumice.cli.options import Format, Lenient, Level, LogLevel, Output, Printed, Quiet
from pumice.config.printable import LINE_ENDS, printable
from pumice.results import Result
from pumice.yaml_text import dump_yaml

Advance = Callable[[int], None]


PIPE_WIDTH: Final = 1_000_000
"""A pipe has no width: each row of a table is one line of it, however long."""
_UNSEEN: Final = re.compile("[\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that JSON may hold raw and a terminal takes for orders."""


class PlainConsole(Console):
    """A console on which texts stand as they are: brackets and colons have no meaning, and non-printable characters are
    spelled out and cannot move the cursor.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of the output, with non-printable characters spelled out."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text == "\n" or text.isprintable():
                yield segment
            else:
                yield Segment(printable(text, keep="\n"), segment.style)


class PlainLines(logging.Filter):
    """Makes one line of a record, whatever names are in it; a traceback has lines of its own."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the record pass, with its non-printable characters spelled out."""
        record.msg, record.args = printable(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = _PLAIN.formatException(record.exc_info)
        record.exc_text = record.exc_text and printable(record.exc_text, keep=LINE_ENDS)
        return True


_PLAIN: Final = logging.Formatter()


class Terminal:
    """stdout and stderr of one command.

    `format` is settled here: what was asked for, else a table, in a pipe too.
    """

    def __init__(self, output: Format | None, quiet: bool, level: LogLevel) -> None:
        self.format = output or Format.TABLE
        self.quiet = quiet
        self.errors = 0
        """The number of objects or files that could not be used."""
        wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
        self.out = PlainConsole(file=sys.stdout, soft_wrap=not sys.stdout.isatty(), width=wide)
        self.err = PlainConsole(file=sys.stderr, soft_wrap=not sys.stderr.isatty())
        _configure_log(level, quiet)

    @property
    def tables(self) -> bool:
        """Return whether results are printed as tables for people."""
        return self.format is Format.TABLE

    def emit(self, result: Result, table: Callable[[Console], None]) -> None:
        """Print the result once: as JSON or YAML, or through `table`."""
        if self.format is Format.JSON:
            text = msgspec.json.format(msgspec.json.encode(result.plain()), indent=2).decode()
            sys.stdout.write(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")
        elif self.format is Format.YAML:
            sys.stdout.write(dump_yaml(result.plain()))
        else:
            table(self.out)
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """Print a line about the work on stderr; --quiet drops it."""
        if not self.quiet:
            self.err.print(printable(text), markup=False)

    def error(self, text: str) -> None:
        """Report input that could not be used while the rest goes on; --quiet does not drop it."""
        self.errors += 1
        self.err.print(printable(f"error: {text}"), markup=False)

    def warn(self, text: str) -> None:
        """Warn of a problem that the work survived."""
        self.say(f"warning: {text}")

    @contextmanager
    def progress(self, what: str, total: int) -> Generator[Advance]:
        """Yield a progress bar on stderr when that is a terminal, as the function that advances it."""
        if self.quiet or not sys.stderr.isatty():
            yield _ignore
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.err, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda step: bar.advance(task, step)


def _ignore(step: int) -> None:
    """Ignore the advance of a hidden bar."""


def _configure_log(level: LogLevel, quiet: bool) -> None:
    number = logging.ERROR if quiet else getattr(logging, level.name)
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(PlainLines())
    logging.basicConfig(handlers=[handler], level=number, format="%(levelname)s %(name)s: %(message)s", force=True)


_TAKEN: Final = (("quiet", Quiet, False), ("log_level", Level, LogLevel.WARNING), ("lenient", Lenient, False))
"""Options that every command takes beside the one for the format: option, its annotation, its default."""


def speaking(command: Callable[..., int]) -> Callable[..., None]:
    """Return a guarded command that has a `terminal`: in its place it takes the options of the output, and --lenient. A
    command that writes a file to `-o` takes --format instead.
    """
    whole = inspect.signature(command, eval_str=True)
    said = ("printed", Printed, None) if "output" in whole.parameters else ("output", Output, None)

    @functools.wraps(command)
    def wrapped(**given: Any) -> int:
        terminal = Terminal(*[given.pop(name) for name in (said[0], "quiet", "log_level")])
        lenient = given.pop("lenient")
        return command(terminal=terminal, **given, **({"lenient": lenient} if "lenient" in whole.parameters else {}))

    only = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(name, only, default=usual, annotation=kind) for name, kind, usual in (said, *_TAKEN)]
    taken: list[inspect.Parameter] = []
    for each in whole.parameters.values():
        taken += options if each.name == "terminal" else [each] if each.name != "lenient" else []
    wrapped.__signature__ = whole.replace(parameters=taken)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in taken}
    return guarded(wrapped)

# SPDX-License-Identifier: Apache-2.0
"""Asking a question: its command, run in a process of its own, bounded in time and size.

A process, because it can be stopped, and its memory is given back, whatever it was at; and because the answer is then
the command's own, as anybody can have it again.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import anyio

from pumice.agents.tools import MANIFEST
from pumice.core.objects.metadata import Object, is_list, is_mapping
from pumice.errors import InputError
from pumice.load.manifests import Loaded, load_text
from pumice.results import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.agents.tools import AgentSource, AgentTool, CommandLine

MOST_BYTES: Final = 48_000
"""Bytes of an answer: what an agent reads well at a time."""
MOST_REMARKS: Final = 20
TIMEOUT_S: Final = 60.0
AT_A_TIME: Final = 2
"""Commands that run at a time; further questions wait."""
SOME_LEFT_OUT: Final = "left_out says how many entries of the result are not shown: ask for a part of it"


@dataclass(frozen=True)
class AgentAnswer:
    """`told`: the command, its result with remarks, and how much was left out of it."""

    told: Object


class UnansweredError(InputError):
    """A question that was not answered: why, and what to ask instead."""


class ToolDesk:
    """Answers questions about one cluster. `timeout_s`: seconds for each."""

    def __init__(self, source: AgentSource, timeout_s: float = TIMEOUT_S) -> None:
        self._source = source
        self._timeout_s = timeout_s
        self._turns = anyio.CapacityLimiter(AT_A_TIME)

    async def answer(self, question: AgentTool) -> AgentAnswer:
        """Return the answer. Raises UnansweredError."""
        line = self._line(question)
        words = [line.words[0], "-o", "json", *line.words[1:]]
        shown = shlex.join(["pumice", *words])
        with TemporaryDirectory(prefix="pumice-mcp-") as folder:
            for name, text in line.files.items():
                await anyio.Path(folder, name).write_text(text, "utf-8")
            try:
                with anyio.fail_after(self._timeout_s):
                    async with self._turns:
                        done = await _run(words, folder)
            except TimeoutError:
                problem = f"{shown} took longer than {self._timeout_s:g} s. {question.instead}"
                raise UnansweredError(problem) from None
        said = [each for each in done.stderr.decode("utf-8", "replace").splitlines() if each.strip()]
        result = _result(done.stdout)
        if result is None:
            problem = " ".join(said[-3:]).removeprefix("pumice: ") or f"the command ended with {done.returncode}"
            raise UnansweredError(f"{in_arguments(problem, question, line)}. {question.instead} ({shown})")
        names = set(_property_names(output_schema(type(question))))
        result, left_out = shortened(result, question.part(), names)
        remarks = [*said[-MOST_REMARKS:], *([SOME_LEFT_OUT] if left_out else [])]
        remarks += [f"{name} holds the text of `{_argument(question, text)}`" for name, text in line.files.items()]
        return AgentAnswer({"command": shown, "result": result, "remarks": remarks, "left_out": left_out})

    def _line(self, question: AgentTool) -> CommandLine:
        try:
            line = question.command(self._source)
            demand_objects(line)
        except InputError as error:
            raise UnansweredError(f"{error}. {question.instead}") from error
        return line


def demand_objects(line: CommandLine) -> None:
    """Check that all of a given manifest can be read: a command goes on without the rest. What the API refuses of it is
    an answer. Raises InputError.
    """
    if MANIFEST not in line.files:
        return
    loaded = Loaded()
    load_text(line.files[MANIFEST], "the manifest", loaded)
    if loaded.problems:
        raise loaded.problems[0]
    if not loaded.objects:
        raise InputError("; ".join(loaded.skipped) or "the manifest has no objects")


def in_arguments(problem: str, question: AgentTool, line: CommandLine) -> str:
    """Return a command's error in the tool's words: an option is an argument, and so is a file of given text."""

    def argument(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        known = next((each for each in question.__struct_fields__ if each in (name, f"{name}_s")), None)
        return found[0] if known is None else f"`{known}`"

    for name, text in line.files.items():
        said = f"`{_argument(question, text)}`"
        problem = re.sub(rf"(--[a-z-]+[ =])?{re.escape(name)}", said, problem)
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", argument, problem)


def _argument(question: AgentTool, text: str) -> str:
    return next(each for each in question.__struct_fields__ if getattr(question, each) is text)


async def _run(words: list[str], folder: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command; one that is cancelled is killed. The environment does not choose another cluster."""
    command = [sys.executable, "-m", "pumice", *words]
    environment = {name: value for name, value in os.environ.items() if name not in ("PUMICE_DB", "PUMICE_CONFIG")}
    return await anyio.run_process(command, check=False, cwd=folder, env=environment, stdin=subprocess.DEVNULL)


def _result(stdout: bytes) -> Object | None:
    try:
        found: object = json.loads(stdout)
    except ValueError:
        return None
    return found if is_mapping(found) else None


# --- Schemas


def output_schema(tool: type[AgentTool]) -> Object:
    """Return the JSON Schema of a tool's answers: around that of its command's result."""
    schemas = [json_schema(command) for command in tool.schemas]
    definitions: Object = {}
    for each in schemas:
        definitions |= each.pop("$defs", {})
        for key in ("$id", "$schema"):
            each.pop(key, None)
    text, number = {"type": "string"}, {"type": "integer"}
    return {
        "type": "object",
        "properties": {
            "command": {**text, "description": "The command that gives this result again."},
            "result": schemas[0] if len(schemas) == 1 else {"anyOf": schemas},
            "remarks": {"type": "array", "items": text, "description": "What the command said beside its result."},
            "left_out": {
                "type": "object",
                "additionalProperties": number,
                "description": "Number of entries that are not shown, by the path of their list or mapping.",
            },
        },
        "required": ["command", "result", "remarks", "left_out"],
        "$defs": definitions,
    }


def _property_names(schema: Any) -> Iterator[str]:
    """Yield the keys of all records in a schema; other keys belong to mappings."""
    if is_mapping(schema):
        yield from schema.get("properties", {})
        for each in schema.values():
            yield from _property_names(each)
    elif is_list(schema):
        for each in schema:
            yield from _property_names(each)


# --- Size


def shortened(
    result: Object, part: dict[str, int], names: set[str], most: int = MOST_BYTES
) -> tuple[Object, dict[str, int]]:
    """Return a result of at most so many bytes, and how many entries were left out, by path.

    Lists and mappings lose their last entries, the longest first; records keep all their keys (`names`).
    """
    left_out: dict[str, int] = {}
    for key, count in part.items():
        if key in result:
            _cut(result, key, key, count, left_out)
    while _size(result) > most:
        longest = max(_containers(result, "", names), key=lambda each: each[0], default=None)
        if longest is None:
            break
        _, holder, key, path = longest
        _cut(holder, key, path, len(holder[key]) // 2, left_out)
    return result, left_out


def _cut(holder: Any, key: Any, path: str, count: int, left_out: dict[str, int]) -> None:
    whole: Any = holder[key]
    if len(whole) <= count:
        return
    left_out[path] = left_out.get(path, 0) + len(whole) - count
    holder[key] = whole[:count] if isinstance(whole, list) else dict(list(whole.items())[:count])


def _containers(value: Any, path: str, names: set[str]) -> Iterator[tuple[int, Any, Any, str]]:
    """Yield the lists and mappings that can be cut: size, holder, key there, path."""
    for key, each in _entries(value):
        where = f"{path}.{key}".lstrip(".")
        # A record has known keys: only a list, or a mapping with keys of its own, can be cut.
        if (is_list(each) or (is_mapping(each) and not names.issuperset(each))) and len(each) > 1:
            yield _size(each), value, key, where
        yield from _containers(each, where, names)


def _entries(value: Any) -> list[tuple[Any, Any]]:
    if is_mapping(value):
        return list(value.items())
    return list(enumerate(value)) if is_list(value) else []


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())

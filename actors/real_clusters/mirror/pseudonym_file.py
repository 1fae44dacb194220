"""Which pseudonym stands for which name, in a file of its own: the key of a redacted journal, which goes on with it."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Final

import msgspec

from pumice.actors.real_clusters.mirror.redaction import Redaction
from pumice.config.errors import ConfigError
from pumice.config.input_file import read_bytes
from pumice.core.pseudonyms import Place, Pseudonyms

STEP: Final = 1_000
"""Neighbours lie up to so far apart, by chance: nobody can tell how many names come between."""

_Line = tuple[str, Place]


class PseudonymFile:
    """One line a name: a JSON list of it and of its place. Only its owner may read it. Raises ConfigError."""

    def __init__(self, path: Path) -> None:
        chance = random.SystemRandom()
        self._path = path
        self._new: list[_Line] = []
        self._names = Pseudonyms(lambda: chance.randint(1, STEP), self._given)
        self._restore()
        self.redaction = Redaction(self._names.of, self._names.known)

    def save(self) -> None:
        """All that were given so far are on disk: before anything is stored in which they stand."""
        if not self._new:
            return
        lines = b"".join(msgspec.json.encode(each) + b"\n" for each in self._new)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, lines)
            os.fsync(file)
        finally:
            os.close(file)
        self._new.clear()

    def _given(self, name: str, place: Place) -> None:
        self._new.append((name, place))

    def _restore(self) -> None:
        try:
            content = read_bytes(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", source=str(self._path)) from error
        whole, _, torn = content.rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
            try:
                name, place = msgspec.json.decode(line, type=_Line)
            except msgspec.MsgspecError as error:
                problem = f"line {number}: expected a name and its place, was {line[:60]!r}"
                raise ConfigError(problem, source=str(self._path)) from error
            self._names.restore(name, place)
        if torn:  # nothing was stored in which it stood
            with self._path.open("r+b") as file:
                file.truncate(len(content) - len(torn))

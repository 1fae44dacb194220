# SPDX-License-Identifier: Apache-2.0
"""The root of Pumice's error tree, split by who is at fault.

    PumiceError
    ├── ConfigError              the user's configuration: source:line, dotted path, expected, found
    │   ├── ConfigSyntaxError        not YAML at all, or not the shape of a scheduler.conf
    │   │   └── DuplicateKeyError    one mapping says a key twice
    │   ├── UnknownNameError         an unknown key, action or plugin (the nearest known name is offered)
    │   ├── NotBuiltError            a name that Volcano knows and this release does not do yet
    │   ├── IgnoredFileError         lenient: a name for which Volcano ignores the whole file
    │   ├── GoneError                a setting that earlier releases had
    │   ├── WrongTypeError           a known key with a value of the wrong kind or out of range
    │   └── ConflictError            two settings that exclude each other
    ├── RequestError             the user's request: an HTTP code and a Kubernetes reason
    │   ├── NewerVersionError        what was handed in comes from a newer Pumice
    │   └── core/errors.py: QuantityError
    ├── WorldError               the outside world: files, databases, sockets; retried or reported, and journaled
    │   └── storage/errors.py, actors/errors.py
    └── InternalError            ours: names itself a bug and carries the story that led to it
        └── core/errors.py: ResourceAssertionError, ...

Each layer's branch lives in its own ``errors.py`` and hangs from one of the four. An expected failure inside the
program is a value, not one of these: errors cross a border (file, request, process) or stop it.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pumice.config.moved import moved

if TYPE_CHECKING:
    from collections.abc import Iterable


class PumiceError(Exception):
    """Root of every error that Pumice raises on purpose. Each can be pickled: a worker's is raised in its caller."""

    def __reduce__(self) -> tuple[Any, ...]:
        # pickle would call a class with the text that the exception keeps; many classes take other arguments.
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(kind: type[PumiceError], said: tuple[object, ...], state: dict[str, object]) -> PumiceError:
    error = kind.__new__(kind, *said)
    error.__dict__.update(state)
    return error


class ConfigError(PumiceError):
    """The configuration is at fault.

    ``source`` is the file (or what stands for it), ``line`` counts from 1 (0: unknown), ``path`` is dotted
    (``tiers[1].plugins[0].enableJobOrder``).
    """

    def __init__(self, problem: str, *, source: str = "", line: int = 0, path: str = "") -> None:
        self.problem = problem
        self.source = source
        self.line = line
        self.path = path
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.source and self.line else self.source
        return ": ".join(part for part in (place, self.path, self.problem) if part)


class ConfigSyntaxError(ConfigError):
    """The text is not YAML, or its top level does not have the form of a scheduler.conf."""


class DuplicateKeyError(ConfigSyntaxError):
    """One mapping has a `key` twice."""

    def __init__(self, key: str, *, source: str, line: int) -> None:
        self.key = key
        super().__init__(f"the key {key!r} stands here twice", source=source, line=line)


class UnknownNameError(ConfigError):
    """A key, action or plugin that does not exist; ``nearest`` is the best known spelling or None."""

    def __init__(
        self, what: str, name: str, known: Iterable[str], *, source: str = "", line: int = 0, path: str = ""
    ) -> None:
        known = tuple(known)
        self.name = name
        self.nearest = nearest_name(name, known)
        listed = f"; known: {', '.join(sorted(known))}" if known else "; there is none to be named here"
        hint = f", did you mean {self.nearest!r}?" if self.nearest else listed
        # After the hint, and in its place: what became of a name is known, and a similar name is a guess.
        if instead := moved(what, name):
            hint = f": earlier versions of Volcano had it; {instead}"
        super().__init__(f"unknown {what} {name!r}{hint}", source=source, line=line, path=path)


class NotBuiltError(ConfigError):
    """A name Volcano has which this release does not support yet."""


class IgnoredFileError(ConfigError):
    """Volcano ignores a file that names an action that does not exist, and keeps the configuration before it."""


class RemovedSettingError(ConfigError):
    """A setting that earlier releases had and this one has not: it tells the reason, and to remove it."""


class WrongTypeError(ConfigError):
    """A value of the wrong kind: it names the expected and the found kind."""

    def __init__(self, expected: str, found: object, *, source: str = "", line: int = 0, path: str = "") -> None:
        self.expected = expected
        self.found = found
        problem = f"expected {expected}, was {describe(found)}"
        super().__init__(problem, source=source, line=line, path=path)


class ConflictError(ConfigError):
    """Two settings that exclude each other."""


class RequestError(PumiceError):
    """The user's request is at fault: it becomes a Kubernetes ``Status`` with this HTTP ``code`` and ``reason``."""

    code: int = 400
    reason: str = "BadRequest"


class NewerVersionError(RequestError):
    """A newer Pumice made `what`: it has version `found`, and `known` is the newest known here."""

    def __init__(self, what: str, found: int, known: int) -> None:
        self.what = what
        self.found = found
        self.known = known
        super().__init__(f"{what}: version {found} is newer than {known}, the newest known here; upgrade Pumice")


class WorldError(PumiceError):
    """The outside world failed: a file, a database, a socket, another program."""


class InternalError(PumiceError):
    """A bug in Pumice: ``story`` lists the events before it, oldest first."""

    def __init__(self, problem: str, story: tuple[str, ...] = ()) -> None:
        self.problem = problem
        self.story = story
        super().__init__(str(self))

    def __str__(self) -> str:
        return "\n  ".join((f"bug in Pumice: {self.problem}", *self.story))


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to ``name`` (letter case does not count), or None when none is near."""
    return next(iter(nearest_names(name, known, 1)), None)


def nearest_names(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the known names closest to ``name``, the closest first."""
    # Sorted: of names that differ in case alone the same one wins under any hash seed.
    by_folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    return [by_folded[match] for match in get_close_matches(name.casefold(), list(by_folded), n=most, cutoff=0.6)]


def nearest_keys(key: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the nearest of names with their namespaces ("namespace/name"): those of that very name in other
    namespaces, then the closest to the whole, then to the name alone.
    """
    bare, elsewhere = key.rpartition("/")[2], dict[str, list[str]]()
    known = sorted(known)
    for each in known:
        elsewhere.setdefault(each.rpartition("/")[2], []).append(each)
    alike = [each for name in nearest_names(bare, elsewhere, most) for each in elsewhere[name]]
    return list(dict.fromkeys([*elsewhere.get(bare, ()), *nearest_names(key, known, most), *alike]))[:most]


def describe(value: object) -> str:
    """Return a short account of a YAML value for an error message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

"""Changes to the objects of a cluster, as data: what each object becomes, and the words for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from config.schema import SchedulerConfig

Object = dict[str, Any]
Identity = tuple[str, str, str]
"""Kind, namespace ("" for none) and name."""


def identity_of(obj: Object) -> Identity:
    """Who it is."""
    metadata: Object = obj.get("metadata") or {}
    return str(obj.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


@dataclass(frozen=True, slots=True)
class Edit:
    """One object becomes another: `make` changes a copy of it in place."""

    who: Identity
    make: Callable[[Object], None]


@dataclass(frozen=True, slots=True)
class Change:
    """What people would do, and what it does to objects and to the configuration. `remade`: controllers then make of
    the objects what they could not make before.
    """

    words: str
    edits: tuple[Edit, ...] = ()
    config: Callable[[SchedulerConfig], SchedulerConfig] | None = None
    remade: bool = False


@dataclass(frozen=True, slots=True)
class ChangeFamily:
    """A change that can be made smaller or greater: `of` 1 … `most`. `rank` orders families: the smaller the sooner."""

    rank: int
    most: int
    of: Callable[[int], Change]


def single(rank: int, words: str, *edits: Edit) -> ChangeFamily:
    """A change of one size only."""
    change = Change(words, edits)
    return ChangeFamily(rank, 1, lambda _: change)

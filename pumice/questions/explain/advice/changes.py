# SPDX-License-Identifier: Apache-2.0
"""Changes to the objects of a cluster, as data: the new form of each object, and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pumice.config.schema import SchedulerConfig
from pumice.core.objects.metadata import Object

Identity = tuple[str, str, str]
"""Kind, namespace ("" for none) and name."""


def identity_of(obj: Object) -> Identity:
    """Return the identity of an object."""
    metadata: Object = obj.get("metadata") or {}
    return str(obj.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


@dataclass(frozen=True, slots=True)
class Edit:
    """One object becomes another: `make` changes a copy of it in place."""

    who: Identity
    make: Callable[[Object], None]


@dataclass(frozen=True, slots=True)
class Change:
    """Action of a person, and its edits of objects and of the configuration. `remade`: controllers then make of the
    objects what they could not make before. `amount`: how much it adds or takes, as a part of the job's request, or of
    the earlier amount; 0 where nothing is counted. `subject`: the beginning of `words`, where a change of the same
    subject can continue from there.
    """

    words: str
    edits: tuple[Edit, ...] = ()
    config: Callable[[SchedulerConfig], SchedulerConfig] | None = None
    remade: bool = False
    amount: float = 0.0
    subject: str = ""


@dataclass(frozen=True, slots=True)
class ChangeFamily:
    """A change in several sizes: `of` `least` … `most`. `rank` orders families: the smaller the sooner. `least` 0: it
    may turn out not to be needed beside others. `instead`: for a size that helps, other forms that may be smaller, that
    one the greatest; None without others. `near`: where one less does not help as far, no other is tried.
    """

    rank: int
    most: int
    of: Callable[[int], Change]
    least: int = 1
    instead: Callable[[int], ChangeFamily | None] = lambda _: None
    near: bool = False


Group = tuple[ChangeFamily, ...]
"""Families that are changed together."""


def in_words(changes: Sequence[Change], more: Sequence[str]) -> str:
    """Return all of them as text; consecutive ones of one subject share it. `more` follows each."""
    said = ""
    for place, change in enumerate(changes):
        if place and change.subject and change.subject == changes[place - 1].subject:
            said += f", {change.words.removeprefix(change.subject)}"
        else:
            said += ("; also " if place else "") + change.words
        said += more[place]
    return said


def single(rank: int, words: str, *edits: Edit) -> ChangeFamily:
    """Return a change of one size only."""
    change = Change(words, edits)
    return ChangeFamily(rank, 1, lambda _: change)

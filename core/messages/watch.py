"""Watching, as messages between those who watch and the api."""

from __future__ import annotations

from pumice.core.messages.message import Message


class Pull(Message, frozen=True):
    """The published changes after revision `since` of these kinds, or parts of them (() for all), at most `limit`.

    `held`: when there are none yet the answer waits until there are, and so does the next, from where that one ended,
    once it was taken; a later pull of the same watcher takes its place. Reply: Pulled.
    """

    watcher: str
    since: int
    kinds: tuple[str, ...] = ()
    limit: int = 1000
    held: bool = True


class ReadRevision(Message, frozen=True):
    """How far the api has come. Reply: RevisionRead."""


class Pulled(Message, frozen=True):
    """Changes in the order of their `revisions`; each is a `core.messages.events.Mutation`, encoded as in the journal.

    The watcher continues from `revision`. `gone` (410): the log no longer reaches back that far, and the watcher must
    list again. `more`: the limit cut it.
    """

    revision: int
    revisions: tuple[int, ...] = ()
    events: tuple[bytes, ...] = ()
    gone: bool = False
    more: bool = False


class RevisionRead(Message, frozen=True):
    """`revision`: the newest that watchers may see. `bound`: pods put on a node since the process began."""

    revision: int
    bound: int = 0

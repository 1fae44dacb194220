"""Answers of users' plugins that failed, as the record of a cycle keeps them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

NOWHERE: Final = -1
MOST: Final = 10_000
"""So many of a plugin are kept of a cycle; beyond, a replay asks the plugin itself."""


class FailedAnswers(Struct, frozen=True, gc=False, array_like=True):
    """`count` questions in a row, from the `first` on (0: the first of the cycle), that a plugin failed to answer.

    `what`: the extension point or function; questions about one node (`row`, in name order; -1: about none) are counted
    by themselves. `sentence` names the error, the same for all of them.
    """

    plugin: str
    what: str
    row: int
    first: int
    count: int
    sentence: str

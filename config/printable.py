# SPDX-License-Identifier: Apache-2.0
"""Foreign texts on a terminal or in a log: characters that move the cursor or begin a line are spelled out."""

from __future__ import annotations

from typing import Final

LINE_ENDS: Final = "\n\t"
"""What a text of several lines may keep."""


def printable(text: str, keep: str = "") -> str:
    r"""Escape control characters, line ends and characters that reorder letters, as in ``\n``, ``\x1b``, ``\u202e``.

    ``keep``: characters that stay as they are, such as a line end in a text of several lines.
    """
    # Nearly every text: one look in C instead of one for each letter.
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in keep else letter.encode("unicode_escape").decode()
        for letter in text
    )

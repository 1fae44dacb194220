"""What `test` and `[` come to, as far as texts and numbers go (source: POSIX). Of files nothing is known here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Final

from pumice.cluster.kube.commands.shell_words import NotUnderstoodError
from pumice.core.whole_numbers import whole_number

_TEXTS: Final[dict[str, Callable[[str, str], bool]]] = {"=": eq, "==": eq, "!=": ne}
_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "-eq": eq, "-ne": ne, "-lt": lt, "-le": le, "-gt": gt, "-ge": ge,
}  # fmt: skip


def judged(name: str, arguments: Sequence[str]) -> int:
    """The exit code of `test …` or `[ … ]`. Raises NotUnderstoodError for what nobody here can know."""
    words = list(arguments)
    if name == "[" and (not words or words.pop() != "]"):
        return 2
    return 0 if _holds(words) else 1


def _holds(words: Sequence[str]) -> bool:
    match words:
        case []:
            return False
        case [text]:
            return bool(text)
        case [left, sign, right] if sign in _TEXTS:
            return _TEXTS[sign](left, right)
        case [left, sign, right] if sign in _NUMBERS:
            return _NUMBERS[sign](_number(left), _number(right))
        case ["!", *rest]:
            return not _holds(rest)
        case ["-n", text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case _:
            raise NotUnderstoodError


def _number(text: str) -> int:
    number = whole_number(text.strip())
    if number is None:
        raise NotUnderstoodError
    return number

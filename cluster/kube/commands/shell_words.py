"""A shell script cut into words and operators (source: POSIX shell, "Token Recognition" and "Quoting")."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

LONGEST: Final = 32_768
"""Characters of a script that are read."""

OPERATORS: Final = ("&&", "||", ";;", ">>", "<<", ">&", "<&", "&>", ";", "\n", "|", "&", "(", ")", ">", "<")
_BLANK: Final = " \t"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9?#$@*!-]", re.ASCII)
_PLAIN: Final = re.compile(r"[^\s'\"\\$`;&|<>()#]+|#")
_IN_QUOTES: Final = re.compile(r'[^"\\$`]+')
_ESCAPED_IN_QUOTES: Final = '"\\$`\n'


class NotUnderstoodError(ValueError):
    """This is more shell than is read here."""


class WordPart(NamedTuple):
    """Of a word: a text, the value of a variable, or what a script in it prints. `quoted`: not to be split."""

    kind: str
    text: str
    quoted: bool


TEXT, VARIABLE, SCRIPT = "text", "variable", "script"


class Word(NamedTuple):
    """What is between blanks."""

    parts: tuple[WordPart, ...]

    def literal(self) -> str | None:
        """The word as it stands, if there is nothing quoted or to be filled in."""
        return self.parts[0].text if len(self.parts) == 1 and self.parts[0][::2] == (TEXT, False) else None


Token = str | Word
"""An operator, or a word."""


def tokens(script: str) -> list[Token]:
    """Raises NotUnderstoodError for quotes that do not end, and what is too long."""
    if len(script) > LONGEST:
        raise NotUnderstoodError
    found: list[Token] = []
    at = 0
    while at < len(script):
        if script[at] in _BLANK:
            at += 1
        elif script.startswith("\\\n", at):
            at += 2
        elif script[at] == "#":
            end = script.find("\n", at)
            at = len(script) if end < 0 else end
        elif (operator := next((each for each in OPERATORS if script.startswith(each, at)), None)) is not None:
            found.append(operator)
            at += len(operator)
        else:
            parts, at = _word(script, at)
            found.append(Word(tuple(parts)))
    return found


def _word(script: str, at: int) -> tuple[list[WordPart], int]:
    parts: list[WordPart] = []
    while at < len(script) and script[at] not in _BLANK and not script.startswith(OPERATORS, at):
        match script[at]:
            case "'":
                end = _end(script, "'", at + 1)
                parts.append(WordPart(TEXT, script[at + 1 : end], quoted=True))
                at = end + 1
            case '"':
                at = _quoted(script, at + 1, parts)
            case "\\":
                parts.append(WordPart(TEXT, script[at + 1 : at + 2], quoted=True))
                at += 2
            case "$" | "`":
                at = _filled_in(script, at, parts, quoted=False)
            case _:
                plain = _PLAIN.match(script, at)
                if plain is None:  # a blank that no shell knows
                    raise NotUnderstoodError
                parts.append(WordPart(TEXT, plain[0], quoted=False))
                at = plain.end()
    return parts, at


def _quoted(script: str, at: int, parts: list[WordPart]) -> int:
    """What is in double quotes, after the first; where it ends."""
    parts.append(WordPart(TEXT, "", quoted=True))
    while at < len(script):
        match script[at]:
            case '"':
                return at + 1
            case "\\":
                after = script[at + 1 : at + 2]
                text = after if after and after in _ESCAPED_IN_QUOTES else f"\\{after}"
                parts.append(WordPart(TEXT, "" if after == "\n" else text, quoted=True))
                at += 2
            case "$" | "`":
                at = _filled_in(script, at, parts, quoted=True)
            case _:
                plain = _IN_QUOTES.match(script, at)
                assert plain is not None
                parts.append(WordPart(TEXT, plain[0], quoted=True))
                at = plain.end()
    raise NotUnderstoodError


def _filled_in(script: str, at: int, parts: list[WordPart], *, quoted: bool) -> int:
    """`$NAME`, `${NAME}`, `$(SCRIPT)` or a script between grave accents; where it ends."""
    if script[at] == "`":
        end = _end(script, "`", at + 1)
        parts.append(WordPart(SCRIPT, script[at + 1 : end], quoted))
        return end + 1
    if script.startswith("$((", at):
        raise NotUnderstoodError
    if script.startswith("$(", at):
        end = _closing(script, at + 2)
        parts.append(WordPart(SCRIPT, script[at + 2 : end], quoted))
        return end + 1
    braced = script.startswith("${", at)
    name = _NAME.match(script, at + 1 + braced)
    if name is None:
        if braced:
            raise NotUnderstoodError
        parts.append(WordPart(TEXT, "$", quoted))
        return at + 1
    if braced and not script.startswith("}", name.end()):
        raise NotUnderstoodError
    parts.append(WordPart(VARIABLE, name[0], quoted))
    return name.end() + braced


def _closing(script: str, at: int) -> int:
    """Where the bracket ends that was opened before; quotes in it may hold brackets."""
    depth = 1
    while at < len(script):
        match script[at]:
            case "\\":
                at += 1
            case "'" | '"':
                at = _end(script, script[at], at + 1)
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if not depth:
                    return at
            case _:
                pass
        at += 1
    raise NotUnderstoodError


def _end(script: str, mark: str, at: int) -> int:
    end = script.find(mark, at)
    if end < 0:
        raise NotUnderstoodError
    return end

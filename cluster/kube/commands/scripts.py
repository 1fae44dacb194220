"""What a shell script says, as a tree: lists, `&&` and `||`, `if`, loops, simple commands (source: POSIX shell
grammar).

Where there is more (pipes, `&`, functions, `case`, here-documents), the script as a whole is not understood.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from pumice.cluster.kube.commands.shell_words import TEXT, NotUnderstoodError, Token, Word, WordPart, tokens

DEEPEST: Final = 16
"""Loops in loops, scripts in scripts."""

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=", re.ASCII)
_ENDS: Final = (";", "\n")
_REDIRECTIONS: Final = (">", ">>", "<", ">&", "<&", "&>")
_RESERVED: Final = frozenset(
    ("if", "then", "elif", "else", "fi", "case", "esac", "in", "do", "done", "for", "while", "until", "function")
) | {"{", "}", "[[", ".", "source", "eval", "trap", "wait", "read", "break", "continue", "return"}


class Simple(NamedTuple):
    """A program with its arguments. `silent`: what it prints goes elsewhere."""

    assigned: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    silent: bool


class AndOr(NamedTuple):
    """Commands, each but the first with the operator before it."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


class Lines(NamedTuple):
    """One after the other."""

    nodes: tuple[Node, ...]


class Not(NamedTuple):
    """What comes to the contrary."""

    command: Node


class If(NamedTuple):
    """The first branch whose condition holds, or else."""

    branches: tuple[tuple[Lines, Lines], ...]
    otherwise: Lines


class While(NamedTuple):
    """`until`: as long as the condition fails."""

    condition: Lines
    body: Lines
    until: bool


class For(NamedTuple):
    """Once for each of the words."""

    name: str
    words: tuple[Word, ...]
    body: Lines


Node = Simple | AndOr | Lines | Not | If | While | For


@lru_cache(maxsize=256)
def parsed(script: str) -> Lines:
    """Raises NotUnderstoodError."""
    reader = _Reader(tokens(script))
    lines = reader.lines(())
    if reader.peek() is not None:
        raise NotUnderstoodError
    return lines


class _Reader:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    def peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> Token | None:
        token = self.peek()
        self._at += 1
        return token

    def _keyword(self) -> str | None:
        token = self.peek()
        return token.literal() if isinstance(token, Word) else None

    def lines(self, ends: tuple[str, ...]) -> Lines:
        """The lines up to one of these keywords, or to the end when none is expected."""
        nodes: list[Node] = []
        self._skip("\n")
        while (token := self.peek()) is not None and self._keyword() not in ends and token != ")":
            nodes.append(self._and_or())
            if self.peek() not in _ENDS:
                break
            self._at += 1
            self._skip("\n")
        return Lines(tuple(nodes))

    def _skip(self, operator: str) -> None:
        while self.peek() == operator:
            self._at += 1

    def _and_or(self) -> Node:
        first = self._command()
        rest: list[tuple[str, Node]] = []
        while (operator := self.peek()) in ("&&", "||"):
            self._at += 1
            self._skip("\n")
            rest.append((str(operator), self._command()))
        return AndOr(first, tuple(rest)) if rest else first

    def _command(self) -> Node:
        keyword = self._keyword()
        if keyword in ("while", "until"):
            self._at += 1
            condition = self._inner("do")
            return While(condition, self._inner("done"), until=keyword == "until")
        if keyword in ("if", "for", "!"):
            self._at += 1
            return self._if() if keyword == "if" else self._for() if keyword == "for" else Not(self._command())
        if keyword == "{":
            self._at += 1
            return self._inner("}")
        if keyword in _RESERVED:
            raise NotUnderstoodError
        return self._simple()

    def _inner(self, *ends: str) -> Lines:
        """The lines up to one of these keywords, which is passed over. Raises NotUnderstoodError without it."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotUnderstoodError
        lines = self.lines(ends)
        if not lines.nodes or self._keyword() not in ends:
            raise NotUnderstoodError
        self._at += 1
        self._depth -= 1
        return lines

    def _if(self) -> Node:
        branches: list[tuple[Lines, Lines]] = []
        end: str | None = "elif"
        while end == "elif":
            condition = self._inner("then")
            branches.append((condition, self._inner("elif", "else", "fi")))
            last = self._tokens[self._at - 1]
            end = last.literal() if isinstance(last, Word) else None
        return If(tuple(branches), self._inner("fi") if end == "else" else Lines(()))

    def _for(self) -> Node:
        name = self._keyword()
        self._at += 1
        if name is None or not name.isidentifier() or self._keyword() != "in":
            raise NotUnderstoodError
        self._at += 1
        words: list[Word] = []
        while isinstance(token := self._next(), Word):
            words.append(token)
        self._skip("\n")
        if token not in _ENDS or self._keyword() != "do":
            raise NotUnderstoodError
        self._at += 1
        return For(name, tuple(words), self._inner("done"))

    def _simple(self) -> Simple:
        assigned: list[tuple[str, Word]] = []
        words: list[Word] = []
        silent = False
        while (token := self.peek()) is not None:
            if isinstance(token, Word):
                self._at += 1
                if not words and (assignment := _assignment(token)) is not None:
                    assigned.append(assignment)
                else:
                    words.append(token)
            elif token in _REDIRECTIONS:
                silent |= self._redirected(words, token)
            else:
                break
        if not words and not assigned and not silent:
            raise NotUnderstoodError
        return Simple(tuple(assigned), tuple(words), silent)

    def _redirected(self, words: list[Word], operator: str) -> bool:
        """Whether what is printed goes elsewhere; `2>&1` and `>&2` leave it in the log."""
        descriptor = words[-1].literal() if words else None
        if descriptor in ("1", "2"):
            words.pop()
        self._at += 1
        target = self._next()
        if not isinstance(target, Word):
            raise NotUnderstoodError
        return operator in (">", ">>", "&>") and descriptor != "2"


def _assignment(word: Word) -> tuple[str, Word] | None:
    first = word.parts[0]
    match = _ASSIGNMENT.match(first.text) if first[::2] == (TEXT, False) else None
    if match is None:
        return None
    return match[1], Word((WordPart(TEXT, first.text[match.end() :], quoted=True), *word.parts[1:]))

# SPDX-License-Identifier: Apache-2.0
"""Simulated execution of a command, on a clock of its own: from arguments and variables to a plan.

Known are `sleep`, `exit`, `true`, `false`, `echo`, `test`, a shell with `-c`, and the tables in `programs`: what an
image has and prints nothing that matters, what stays, and what does the work of its pod. Another program ends with 127
where a shell is asked for it; what it does when it is asked for directly is not known.

Of a script known are lists, `&&`, `||`, `if`, quotes, variables and redirections (source: POSIX shell grammar). Where
it says more (loops, `!`, braces, pipes, `&`, functions, `case`, here-documents) it is not understood.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from operator import eq, ge, gt, le, lt, ne
from typing import Final

from pumice.cluster.kube.commands.plans import AT_ITS_END, FOR_EVER, LONGEST_S, MOST_PRINTED, Plan
from pumice.cluster.kube.commands.programs import (
    NOT_FOUND,
    QUIET,
    SHELLS,
    STAYS,
    echoed,
    exit_code_of,
    has_flag,
    is_server,
    is_work,
    span_s,
    waits_for_input,
)
from pumice.core.texts import whole_number

DEEPEST: Final = 16
"""Levels of `if` in `if` and of scripts in scripts."""
MOST_STEPS: Final = 2_000
"""Commands that one container carries out in thought; one that has not ended then runs for ever."""
LONGEST_SCRIPT: Final = 32_768
LONGEST_WORD: Final = 65_536

Variables = tuple[tuple[str, str], ...]


class NotUnderstoodError(ValueError):
    """This shell syntax is not supported here."""


class _Ended(Exception):  # noqa: N818 - no error: the script is over
    """The script ended with this exit code; `for_ever`: it never ends."""

    def __init__(self, code: int, *, for_ever: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.for_ever = for_ever


@lru_cache(maxsize=512)
def planned(arguments: tuple[str, ...], variables: Variables = ()) -> Plan | None:
    """Return the plan of a container that is started with these arguments; None where it is not known."""
    run = _Run(dict(variables))
    for_ever = False
    try:
        code = run.started(arguments)
    except NotUnderstoodError:
        return None
    except _Ended as ended:
        code, for_ever = ended.code, ended.for_ever
    return Plan(FOR_EVER if for_ever else run.time_s, code, tuple(run.said), 0 if for_ever else run.works)


# --- Tokens: operators, and words as they stand
# A script in a word prints nothing: that depends on the image.

_SCRIPT: Final = r"`[^`]*`|\$\([^()]*\)"
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*|[0-9?#$@*!-]"
_QUOTED: Final = rf"""'[^']*'|"(?:\\.|{_SCRIPT}|\$(?!\()|[^"\\`$])*+\""""
# Possessive (*+, ++): a script that does not fit is given up at once, and not tried with every shorter match.
_TOKEN: Final = re.compile(
    rf"(?:[ \t]|\\\n|\#[^\n]*)*+"
    rf"(?:(&&|\|\||;;|>>|<<|>&|<&|&>|[;\n|&()<>])|((?:{_QUOTED}|{_SCRIPT}|\\.|\$(?!\()|[^\s'\"\\`;&|<>()$])++)|$)",
    re.ASCII | re.DOTALL,
)
_FILLED: Final = rf"{_SCRIPT}|\$(?:(?P<name>{_NAME})|\{{(?P<braced>{_NAME})\}})|(?P<odd>\$\{{)"
_PIECE: Final = re.compile(rf"(?P<quoted>{_QUOTED})|\\(?P<escaped>.)|{_FILLED}", re.ASCII | re.DOTALL)
_IN_QUOTES: Final = re.compile(rf'\\(?P<escaped>["\\$`\n])|{_FILLED}', re.ASCII | re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=", re.ASCII)
_BLANKS: Final = re.compile(r"\s+")
_CUT: Final = "\0"
_ENDS: Final = (";", "\n")
_REDIRECTIONS: Final = (">", ">>", "<", ">&", "<&", "&>")
_OPERATORS: Final = (*_ENDS, *_REDIRECTIONS, "&&", "||", ";;", "<<", "|", "&", "(", ")")
_RESERVED: Final = {
    "!", ".", "[[", "break", "case", "continue", "do", "done", "elif", "else", "esac", "eval", "expr", "fi", "for",
    "function", "in", "read", "return", "seq", "source", "then", "trap", "until", "wait", "while", "{", "}",
}  # fmt: skip
"""Words that make a script more than is read here, or that end what is read."""


def tokens(script: str) -> list[str]:
    """Return the operators and words of a script. Raises NotUnderstoodError, as for quotes that do not end."""
    found: list[str] = []
    at = 0
    while at < len(script):
        token = _TOKEN.match(script, at)
        if token is None or len(script) > LONGEST_SCRIPT:
            raise NotUnderstoodError
        found += [each for each in token.groups() if each]
        at = token.end()
    return found


# --- What `test` and `[` mean for texts and numbers
# Source: POSIX. Files are not known.

_TEXTS: Final[dict[str, Callable[[str, str], bool]]] = {"=": eq, "==": eq, "!=": ne}
_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "-eq": eq, "-ne": ne, "-lt": lt, "-le": le, "-gt": gt, "-ge": ge,
}  # fmt: skip


def judged(name: str, arguments: Sequence[str]) -> int:
    """Return the exit code of `test …` or `[ … ]`. Raises NotUnderstoodError for unsupported syntax."""
    words = list(arguments)
    # POSIX: above 1 is an error, and `if` takes it for false.
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


# --- The run


class _Run:
    def __init__(self, variables: Mapping[str, str]) -> None:
        self.time_s = 0.0
        self.works = 0
        self.said: list[tuple[float, str]] = []
        self._room = MOST_PRINTED
        self._steps = 0
        self._depth = 0
        self._status = 0
        self._strict = False
        self._variables = dict(variables)
        self._left: deque[str] = deque()

    # --- programs

    def started(self, arguments: Sequence[str]) -> int:
        """Run the container's own program. Raises NotUnderstoodError for one that is not known."""
        if not arguments:
            raise NotUnderstoodError
        # By its last name: /bin/sleep is sleep, whatever PATH has.
        code = self._program(arguments[0].rpartition("/")[2], arguments[1:])
        # Work has no time of its own here: asked for alone, its pod runs as long as the pod says.
        if code is None or is_work(arguments[0]):
            raise NotUnderstoodError
        return code

    def _called(self, words: Sequence[str]) -> int:
        if words[0] == "exec":
            # What follows `exec` takes the shell's place: no line of the script behind it runs.
            program = [each for each in words if each != "exec"]
            if program:
                raise _Ended(self._called(program))
            return 0
        code = self._program(words[0].rpartition("/")[2], words[1:])
        if code is None:
            self._print(f"sh: {words[0]}: not found\n")
            return NOT_FOUND
        return code

    def _program(self, name: str, arguments: Sequence[str]) -> int | None:
        """Return the exit code; None for an unknown program."""
        match name:
            case "sleep":
                return self._sleep(arguments)
            case "exit":
                raise _Ended(exit_code_of(arguments[0]) if arguments else self._status)
            case "false":
                return 1
            case "echo":
                return self._print(echoed(arguments))
            case "test" | "[":
                return judged(name, arguments)
            case _ if (name in STAYS and not STAYS[name].isdisjoint(arguments)) or is_server(name, arguments):
                raise _Ended(0, for_ever=True)
            case _ if waits_for_input([name, *arguments]):
                return 0  # nothing comes in
            case _ if name in SHELLS:
                return self._shell(arguments)
            case _ if is_work(name):
                self.works += 1
                return 0
            case "set":
                self._strict = "+e" not in arguments and (self._strict or any(has_flag(one, "e") for one in arguments))
                return 0
            case _:
                return 0 if name in QUIET else None

    def _sleep(self, arguments: Sequence[str]) -> int:
        spans = [span_s(each) for each in arguments]
        wrong = next((each for each, span in zip(arguments, spans, strict=True) if span is None), None)
        if wrong is not None or not spans:
            self._print(f"sleep: invalid time interval '{wrong}'\n" if spans else "sleep: missing operand\n")
            return 1
        # GNU's sleep adds up its arguments.
        self.time_s += sum(span for span in spans if span is not None)
        if self.time_s > LONGEST_S:
            raise _Ended(0, for_ever=True)
        return 0

    def _shell(self, arguments: Sequence[str]) -> int | None:
        """Run `sh [-e…] -c SCRIPT [NAME [ARGUMENT…]]`; None for a script in a file."""
        given = [*takewhile(lambda each: each[:1] in ("-", "+") or each == "pipefail", arguments)]
        flags = len(given)
        if not any(has_flag(each, "c") for each in given) or flags == len(arguments):
            return None
        strict, variables = self._strict, self._variables
        self._strict = any(has_flag(each, "e") for each in given)
        self._variables = variables | {str(place): text for place, text in enumerate(arguments[flags + 1 :])}
        try:
            return self.script(arguments[flags])
        finally:
            self._strict, self._variables = strict, variables

    def _print(self, text: str) -> int:
        if text and self._room > 0:
            self.said.append((AT_ITS_END if self.works else self.time_s, text[: self._room]))
            self._room -= len(text)
        return 0

    # --- scripts: read and run in one go; what is not `run` is only read

    def script(self, text: str) -> int:
        """Return the exit code of another shell."""
        outer, self._left = self._left, deque(tokens(text))
        try:
            self._lines(run=True)
            if self._left:
                raise NotUnderstoodError
            return self._status
        except _Ended as ended:
            if ended.for_ever:
                raise
            return ended.code
        finally:
            self._left = outer

    def _next(self) -> str:
        return self._left[0] if self._left else ""

    def _skip(self, token: str) -> None:
        while self._next() == token:
            self._left.popleft()

    def _lines(self, *ends: str, run: bool, tested: bool = False) -> str:
        """Run the lines up to one of these keywords, which is returned. `tested`: a failure ends nothing."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotUnderstoodError
        self._skip("\n")
        while self._left and self._next() not in ends:
            self._and_or(run=run, tested=tested)
            if self._next() not in _ENDS:
                break
            self._left.popleft()
            self._skip("\n")
        self._depth -= 1
        if self._next() not in (ends or ("",)):
            raise NotUnderstoodError
        return self._left.popleft() if ends else ""

    def _and_or(self, *, run: bool, tested: bool) -> None:
        runs, operator = run, ""
        while True:
            if self._next() == "if":
                self._if(run=runs, tested=tested)
            else:
                self._simple(run=runs)
            operator = self._next()
            if operator not in ("&&", "||"):
                break
            # `&&` and `||` are of one rank and group from the left (POSIX).
            runs = run and (operator == "&&") == (self._status == 0)
            self._left.popleft()
            self._skip("\n")
        # POSIX (set -e): in `a && b` a failing `a` ends nothing, only what stands last.
        if self._strict and runs and self._status and not tested:
            raise _Ended(self._status)

    def _if(self, *, run: bool, tested: bool) -> None:
        keyword, waits = self._left.popleft(), run
        while keyword != "fi":
            taken = waits
            if keyword != "else":
                self._lines("then", run=waits, tested=True)
                taken = waits and self._status == 0
            waits = waits and not taken
            ends = ("fi",) if keyword == "else" else ("elif", "else", "fi")
            keyword = self._lines(*ends, run=taken, tested=tested)
        # No branch was taken: `if` has succeeded then (POSIX).
        if waits:
            self._status = 0

    def _simple(self, *, run: bool) -> None:
        """Read a program with its arguments, and run it."""
        given: list[tuple[str, str]] = []
        words: list[str] = []
        silent = redirected = False
        while (token := self._next()) and (token in _REDIRECTIONS or token not in _OPERATORS):
            self._left.popleft()
            if token in _REDIRECTIONS:
                redirected = True
                silent |= self._redirected(words, token)
            # Behind the first word it is an argument: `env A=1`.
            elif not words and (name := _ASSIGNMENT.match(token)):
                given.append((name[1], token[name.end() :]))
            else:
                words.append(token)
        if not (words or given or redirected) or (words and words[0] in _RESERVED):
            raise NotUnderstoodError
        if run:
            self._status = self._run(words, given, silent=silent)

    def _redirected(self, words: list[str], operator: str) -> bool:
        """Return whether the output goes elsewhere; `2>&1` and `>&2` leave it in the log."""
        descriptor = words.pop() if words and words[-1] in ("1", "2") else ""
        if not self._left or self._left.popleft() in _OPERATORS:
            raise NotUnderstoodError
        return operator in (">", ">>", "&>") and descriptor != "2"

    def _run(self, words: Sequence[str], given: Sequence[tuple[str, str]], *, silent: bool) -> int:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _Ended(0, for_ever=True)
        # Before the assignments of the same line count: `A=1 echo $A` says the old value (POSIX).
        fields = [field for word in words for field in self._fields(word)]
        assigned = {name: self._text(value).replace(_CUT, " ") for name, value in given}
        if not fields:
            self._variables |= assigned
            return 0
        if fields[0] == "export":
            self._variables |= {name: value for name, cut, value in (each.partition("=") for each in fields[1:]) if cut}
        said, variables = len(self.said), self._variables
        if assigned:
            self._variables = variables | assigned
        try:
            return self._called(fields)
        finally:
            if assigned:
                self._variables = variables
            if silent:
                del self.said[said:]

    # --- words

    def _fields(self, word: str) -> list[str]:
        """Expand a word; an unquoted expansion is split at blanks, and dropped when it is empty."""
        fields = [each for each in self._text(word).split(_CUT) if each]
        return fields or [""] * ("'" in word or '"' in word)

    def _text(self, word: str) -> str:
        text = _PIECE.sub(self._piece, word)
        if len(text) > LONGEST_WORD:
            raise NotUnderstoodError
        return text

    def _piece(self, piece: re.Match[str]) -> str:
        quoted = piece["quoted"]
        if quoted:
            return quoted[1:-1] if quoted[0] == "'" else _IN_QUOTES.sub(self._value, quoted[1:-1])
        return _BLANKS.sub(_CUT, self._value(piece)) if piece["escaped"] is None else self._value(piece)

    def _value(self, piece: re.Match[str]) -> str:
        if piece["odd"]:
            raise NotUnderstoodError
        if piece["escaped"] is not None:
            return piece["escaped"].replace("\n", "")
        name = piece["name"] or piece["braced"]
        return str(self._status) if name == "?" else self._variables.get(name or "", "")

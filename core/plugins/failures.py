# SPDX-License-Identifier: Apache-2.0
"""Failures of users' plugins: the plugin that is asked, the question it failed to answer, and the record of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from pumice.config.arguments import PluginArguments
from pumice.core.messages.decisions import MOST, NOWHERE, FailedAnswers
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from pumice.core.session.session import Session

T = TypeVar("T")

Tell = Callable[[str, str], None]  # (plugin, what it did)

CARRIED: Final = "user-plugins"
ON_ERROR: Final = "onError"
IGNORE: Final = "ignore"
FAIL: Final = "fail"


FOLDER_PLUGINS: Final = "pumice_user_plugins"
"""The package of the modules in a folder of plugins."""
LONGEST: Final = 1_000
"""Letters of what an error says that are kept."""


class PluginQuestion:
    """The user's plugin that is being asked, and the question; "" between questions. A watching thread reads it.

    `number` is that of the question, which may lead to questions of other plugins inside it. `where`: file and line of
    the plugin at which the newest failure was raised, "" where none is known.
    """

    __slots__ = ("number", "plugin", "what", "where")

    def __init__(self) -> None:
        self.plugin = self.what = self.where = ""
        self.number = 0


class PluginFailures:
    """The failures of one plugin in one session: reported to listeners, counted in the carry and kept for the record.

    `refuses`: with `onError: fail` what the plugin was asked about is refused; else the plugin is as if it had not
    been asked. A cycle that is decided again (`SessionOptions.failed`) asks nothing that failed when it was recorded.
    What is asked only for a trail is not part of the cycle: it is not counted, shown or kept, and not taken for
    recorded.
    """

    def __init__(
        self, plugin: str, arguments: PluginArguments, tell: Tell | None = None, asked: PluginQuestion | None = None
    ) -> None:
        self.plugin = plugin
        self._asked = asked or PluginQuestion()
        self._on_error = arguments.get(ON_ERROR, IGNORE)
        self.refuses = self._on_error == FAIL
        self._tell = tell
        self._session: Session | None = None
        self._told: set[str] = set()
        self._numbers: dict[tuple[str, int], int] = {}
        self._recorded: dict[tuple[str, int], list[FailedAnswers]] = {}
        self._kept = FailureLog(plugin)

    def begin(self, session: Session) -> None:
        """Set the session whose carry keeps the count."""
        self._session = session
        # Reversed, since runs are taken from the end of the list: the first one goes first.
        for one in reversed(session.options.failed):
            if one.plugin == self.plugin:
                self._recorded.setdefault((one.what, one.row), []).append(one)
        session.failed.append(self._kept.told)
        if self._on_error not in (IGNORE, FAIL):
            self.note("its arguments", ValueError(f"onError: expected {IGNORE} or {FAIL}, was {self._on_error!r}"))

    def note(self, what: str, error: BaseException) -> str:
        """Remember an error, and return the sentence that names it."""
        self._asked.where = place_of(error)
        return self._noted(self._sentence(what, error))

    def _sentence(self, what: str, error: BaseException) -> str:
        return f"plugin {self.plugin} failed in {what}: {type(error).__name__}: {said_by(error)}"

    def _noted(self, sentence: str) -> str:
        """Report each sentence once a session."""
        if self._session is not None:
            kept = self._session.carry.plugins.setdefault(CARRIED, {})
            before = kept.get(self.plugin, {}).get("failures", 0)
            kept[self.plugin] = {"failures": before + 1, "last": sentence}
        if self._tell is not None and sentence not in self._told:
            self._tell(self.plugin, sentence)
        self._told.add(sentence)
        return sentence

    def reason(self, sentence: str) -> Reason:
        """Return a node's or task's refusal with that sentence."""
        return Reason(self.plugin, Code.ERROR, sentence)

    def attempt(self, what: str, ask: Callable[[], T], instead: Callable[[str], T], row: int = NOWHERE) -> T:
        """Return the plugin's answer, or a substitute made from the sentence that names the error. `row`: the row of
        the node in question.
        """
        if self._session is not None and self._session.trail.is_asking:
            return self._answer(what, ask, instead)
        number = self._numbers.get((what, row), 0)
        self._numbers[what, row] = number + 1

        def failed(sentence: str) -> T:
            self._kept.add(what, row, number, self._noted(sentence))
            return instead(sentence)

        if self._recorded and (known := self._recalled(what, row, number)):
            self._asked.where = ""
            return failed(known)
        return self._answer(what, ask, failed)

    def _answer(self, what: str, ask: Callable[[], T], failed: Callable[[str], T]) -> T:
        asked = self._asked
        before = asked.plugin, asked.what
        # A question inside another one keeps its number.
        asked.number += not asked.plugin
        asked.plugin, asked.what = self.plugin, what
        try:
            return ask()
        # A verdict, not a failure.
        except FitFailure:
            raise
        except KeyboardInterrupt:  # from the person at the keyboard, as far as can be known
            if self._tell is not None:
                self._tell(self.plugin, f"plugin {self.plugin} was interrupted in {what}")
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code may raise anything, SystemExit too
            sentence = self._sentence(what, error)
            asked.where = place_of(error)
        finally:
            asked.plugin, asked.what = before
        return failed(sentence)

    def _recalled(self, what: str, row: int, number: int) -> str:
        """Return the recorded failure of this question, "" without one."""
        runs = self._recorded.get((what, row))
        while runs and runs[-1].first + runs[-1].count <= number:
            runs.pop()
        return runs[-1].sentence if runs and runs[-1].first <= number else ""


class FailureLog:
    """The failures of one plugin, for the record: runs of the same sentence in one."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._runs: list[FailedAnswers] = []
        self._newest: dict[tuple[str, int], int] = {}

    def add(self, what: str, row: int, number: int, sentence: str) -> None:
        """Add one failure."""
        place = self._newest.get((what, row))
        run = None if place is None else self._runs[place]
        if place is not None and run is not None and (run.first + run.count, run.sentence) == (number, sentence):
            self._runs[place] = replace(run, count=run.count + 1)
        elif len(self._runs) < MOST:
            self._newest[what, row] = len(self._runs)
            self._runs.append(FailedAnswers(self._plugin, what, row, number, 1, sentence))

    def told(self) -> list[FailedAnswers]:
        """Return all failures so far, in the order in which the first of each run came."""
        return self._runs


def place_of(error: BaseException) -> str:
    """Return "file:line" of the innermost frame in a folder's plugin, since the code that it calls is not at fault; for
    another plugin, of the innermost frame outside Pumice. "" without one.
    """
    found, other, step = "", "", error.__traceback__
    while step is not None:
        module, here = str(step.tb_frame.f_globals.get("__name__", "")), step.tb_frame.f_code.co_filename
        if module.startswith(FOLDER_PLUGINS):
            found = f"{here}:{step.tb_lineno}"
        elif not module.startswith("pumice.core."):
            other = f"{here}:{step.tb_lineno}"
        step = step.tb_next
    return found or other


def said_by(error: BaseException) -> str:
    """Return the plugin's own description, which is foreign code as well."""
    try:
        return str(error)[:LONGEST]
    except BaseException:  # noqa: BLE001 - as above
        return "(it cannot say what)"

"""Jobs that wait at the end of a journal, and their reasons: the newest cycle, decided again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from pumice.actors.gateway.advice import AdviserQuestion

OK: Final = 200


class WaitRow(NamedTuple):
    """A job that waits, for what (a `WaitClass`, and a stable `reason` as explain has it), and why in a sentence."""

    job: str
    queue: str
    wait_class: str
    because: str
    reason: str = ""

    def told(self) -> WaitTold:
        """Return it as it is printed."""
        return WaitTold(queue=self.queue, wait_class=self.wait_class, reason=self.reason, because=self.because)


class WaitTold(msgspec.Struct, frozen=True, kw_only=True):
    """Reason for which a job waits: a `WaitClass` and a reason of it, and why in a sentence."""

    queue: str
    wait_class: str = msgspec.field(name="class")
    reason: str
    because: str


def waits_at_the_end(db: Path, plugins_dir: str | None = None) -> list[WaitRow]:
    """Return the jobs that wait in the newest cycle, in the order in which they are tried; none where that cycle cannot
    be decided again. Not within an event loop.
    """
    from pumice.questions.adviser.answers import answer  # noqa: PLC0415 - half a second, which a run without waits does not need

    told = answer(str(db), plugins_dir, AdviserQuestion("standings"))
    waiting: list[dict[str, Any]] = msgspec.json.decode(told.body)["waiting"] if told.code == OK else []
    return [
        WaitRow(each["made_for"], each["queue"], each["class"], each["because"], each["reason"]) for each in waiting
    ]

"""Jobs that wait at the end of a journal, and their reasons: the newest cycle, decided again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from pumice.actors.gateway.advice import AdviserQuestion
from pumice.questions.adviser.reasons import WaitReason

OK: Final = 200


class WaitRow(NamedTuple):
    """A waiting job with its queue and its reason."""

    job: str
    queue: str
    wait: WaitReason

    def told(self) -> WaitTold:
        """Return it as it is printed."""
        wait = self.wait
        return WaitTold(
            queue=self.queue, wait_class=wait.wait_class, reason=wait.code, because=wait.sentence, wait=wait
        )


class WaitTold(msgspec.Struct, frozen=True, kw_only=True):
    """Reason for which a job waits: its class and code, and why in a sentence; `wait`: the whole reason."""

    queue: str
    wait_class: str = msgspec.field(name="class")
    reason: str
    because: str
    wait: WaitReason


def waits_at_the_end(db: Path, plugins_dir: str | None = None) -> list[WaitRow]:
    """Return the jobs that wait in the newest cycle, in the order in which they are tried; none where that cycle cannot
    be decided again. Not within an event loop.
    """
    from pumice.questions.adviser.answers import answer  # noqa: PLC0415 - half a second, which a run without waits does not need

    told = answer(str(db), plugins_dir, AdviserQuestion("standings"))
    waiting: list[dict[str, Any]] = msgspec.json.decode(told.body)["waiting"] if told.code == OK else []
    return [WaitRow(each["made_for"], each["queue"], msgspec.convert(each["wait"], WaitReason)) for each in waiting]

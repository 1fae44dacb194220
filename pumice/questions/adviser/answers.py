"""What the gateway asks, answered from the journal of a run in a process of its own; also for whoever has a journal
and no server.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from pumice.actors.gateway.advice import GROUP, KINDS, VERSION, AdviserAnswer, AdviserQuestion
from pumice.config.errors import ConfigError, PumiceError, RequestError
from pumice.questions.adviser.ahead import difference_of, estimates
from pumice.questions.adviser.census import census_of
from pumice.questions.adviser.pictures import board_of, course_of, measures_of
from pumice.questions.adviser.stories import story_as_data
from pumice.questions.adviser.trails import trail_of
from pumice.questions.explain.account import NotFoundError
from pumice.questions.explain.advice.advise import advise
from pumice.questions.explain.asked import SETTLED, accounted, recorded, with_owners
from pumice.questions.explain.ended import end_in
from pumice.questions.explain.refused import refused_in
from pumice.questions.explain.scene import Scene, scene_of
from pumice.questions.history.rewind import Rewound, demand_volcano, newest_cycle, rewind_file
from pumice.questions.replay.plugins import demand_plugins, in_force

Plain = dict[str, Any]
NEWEST: Final = "newest"
MOST_BUDGET_S: Final = 60.0
ASKED_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "boards": ("node",),
    "cycles": ("task",),
    "estimates": ("samples", "horizon", "seed", "cycle"),
    "explanations": ("of", "budget", "cycle"),
    "standings": ("cycle",),
    "waitclasses": ("cycle",),
}
"""What the query of each resource may hold; of the others, nothing."""
EXPLAINED: Final = ("job", "pod", "podgroup")


class QuestionError(RequestError):
    """A question that cannot be understood."""

    reason = "BadRequest"


def answer(db: str, plugins_dir: str | None, question: AdviserQuestion) -> AdviserAnswer:
    """Never raises what the asker, the journal or the configuration is to blame for."""
    row = KINDS[question.resource]
    try:
        _demand_known(question)
        found = _ANSWERS[question.resource](Sources(Path(db), plugins_dir), question)
    except RequestError as error:
        return AdviserAnswer(error.code, reason=error.reason, message=str(error))
    except ConfigError as error:
        return AdviserAnswer(404, reason="NotFound", message=error.problem)
    except PumiceError as error:
        return AdviserAnswer(503, reason="ServiceUnavailable", message=str(error))
    metadata = {"name": question.name or question.resource}
    metadata |= {"namespace": question.namespace} if question.namespace else {}
    head = {"kind": row.kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": metadata}
    return AdviserAnswer(200, msgspec.json.encode({**head, **found}))


class Sources:
    """The journal that is asked, and what of it was loaded last: questions come in groups."""

    def __init__(self, db: Path, plugins_dir: str | None) -> None:
        self.db, self._plugins = db, plugins_dir

    def cycle(self, named: str) -> Scene:
        """A cycle by its number, "" or "newest". Raises QuestionError, ConfigError."""
        number = anyio.run(newest_cycle, self.db) if named in ("", NEWEST) else _number("cycle", named)
        return _loaded(self.db, self.db.stat().st_ino, number, self._plugins)

    def telling(self, kind: str, name: str, cycle: int | None) -> Scene:
        """The cycle that has most to say of something. Raises ConfigError."""
        self.load_plugins()
        return anyio.run(recorded, self.db, kind, name, cycle, _unsaid)

    def load_plugins(self) -> None:
        """Those that the journal's configurations name. Raises ConfigError."""
        anyio.run(demand_plugins, self.db, None if self._plugins is None else Path(self._plugins), _unsaid)


@dataclass
class Newest:
    """What was loaded last, which later cycles of the same journal go on from."""

    journal: tuple[Path, int, str | None] | None = None
    past: Rewound | None = None

    def rewound(self, journal: tuple[Path, int, str | None], cycle: int) -> Rewound:
        """Raises ConfigError. `journal`: file, inode and plug-ins' folder. What comes from afar is kept from the
        collector until other such makes way for it: it is large.
        """
        before, self.past = self.past if journal == self.journal else None, None
        if before is None or before.cycle.record.cycle != cycle:
            found = anyio.run(functools.partial(rewind_file, journal[0], cycle, before=before))
            if before is None or found.replayer is not before.replayer:
                gc.unfreeze()
                del before
                gc.collect()
                gc.freeze()
            before = found
        self.journal, self.past = journal, before
        return before


_NEWEST: Final = Newest()


@functools.lru_cache(maxsize=1)
def _loaded(db: Path, inode: int, cycle: int, plugins_dir: str | None) -> Scene:
    """Questions about one cycle share its scene."""
    anyio.run(demand_plugins, db, None if plugins_dir is None else Path(plugins_dir), _unsaid)
    past = _NEWEST.rewound((db, inode, plugins_dir), cycle)
    demand_volcano(past, "cycle")
    return replace(scene_of(past), refused=anyio.run(refused_in, db, cycle))


def _unsaid(sentence: str) -> None:
    """Nobody reads what this process would warn of."""


# --- the questions


def _standings(sources: Sources, question: AdviserQuestion) -> Plain:
    census = census_of(sources.cycle(dict(question.query).get("cycle", "")))
    return (census.within(question.name) if question.name else census).to_dict()


def _classes(sources: Sources, question: AdviserQuestion) -> Plain:
    census = census_of(sources.cycle(dict(question.query).get("cycle", "")))
    return {"cycle": census.cycle, "classes": census.classes(), "supposed": census.supposed}


def _cycle(sources: Sources, question: AdviserQuestion) -> Plain:
    return trail_of(sources.cycle(question.name), dict(question.query).get("task", ""))


def _explanation(sources: Sources, question: AdviserQuestion) -> Plain:
    query = dict(question.query)
    kind, budget = query.get("of", "job"), _seconds(query.get("budget", "0"))
    if kind not in EXPLAINED:
        raise QuestionError(f"of={kind}: expected one of {', '.join(EXPLAINED)}")
    number = _number("cycle", query["cycle"]) if "cycle" in query else None
    name = f"{question.namespace}/{question.name}"
    scene = sources.telling(kind, name, number)
    ended = anyio.run(end_in, sources.db, name) if number is None and kind == "job" else None
    account = accounted(scene, kind, name, ended)
    if budget and account.state not in SETTLED:
        account.take(advise(with_owners(scene, sources.db), kind, name, budget))
    told = account.to_dict()
    return {"of": told.pop("kind"), **told}


def _demand_known(question: AdviserQuestion) -> None:
    known = ASKED_WITH.get(question.resource, ())
    for key, _ in question.query:
        if key not in known:
            expected = f"expected {', '.join(known)}" if known else "it takes none"
            raise QuestionError(f"unknown query parameter {key[:40]!r}: {expected}")


def _number(what: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 18 and int(text)):
        raise QuestionError(f"{what}={text[:40]}: expected a number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0.0 <= found <= MOST_BUDGET_S:
        raise QuestionError(f"budget={text[:40]}: expected seconds from 0 to {MOST_BUDGET_S:g}")
    return found


def _estimates(sources: Sources, question: AdviserQuestion) -> Plain:
    name = f"{question.namespace}/{question.name}" if question.name else ""
    sources.load_plugins()
    found = estimates(sources.db, frozenset([name]) if name else None, dict(question.query))
    if name and name not in found["estimates"]:
        raise NotFoundError(f"{name} does not wait, or there is no such job")
    return found


def _board(sources: Sources, question: AdviserQuestion) -> Plain:
    return board_of(sources.cycle(question.name), dict(question.query).get("node", ""))


def _configuration(sources: Sources, question: AdviserQuestion) -> Plain:
    del question
    told = anyio.run(in_force, sources.db)
    return {"source": told.source, "text": told.text, "plugins": told.plugins}


def _course(sources: Sources, question: AdviserQuestion) -> Plain:
    del question
    files = (sources.db, sources.db.with_name(f"{sources.db.name}-wal"))
    return {**anyio.run(course_of, sources.db), "bytes": sum(each.stat().st_size for each in files if each.exists())}


def _measures(sources: Sources, question: AdviserQuestion) -> Plain:
    del question
    return anyio.run(measures_of, sources.db)


def _story(sources: Sources, question: AdviserQuestion) -> Plain:
    return anyio.run(story_as_data, sources.db, f"{question.namespace}/{question.name}")


def _what_if(sources: Sources, question: AdviserQuestion) -> Plain:
    sources.load_plugins()
    return difference_of(sources.db, question.body)


_ANSWERS: Final[Mapping[str, Callable[[Sources, AdviserQuestion], Plain]]] = {
    "boards": _board,
    "configurations": _configuration,
    "courses": _course,
    "cycles": _cycle,
    "estimates": _estimates,
    "explanations": _explanation,
    "measures": _measures,
    "standings": _standings,
    "stories": _story,
    "waitclasses": _classes,
    "whatifs": _what_if,
}

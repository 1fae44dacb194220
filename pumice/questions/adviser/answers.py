# SPDX-License-Identifier: Apache-2.0
"""Answers to the gateway's questions, from the journal of a run in a process of its own; also for users who have a
journal and no server.
"""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from pumice.actors.gateway.advice import GROUP, KINDS, VERSION, AdviserAnswer, AdviserQuestion
from pumice.actors.scheduling.core_decider import PluginTimes, Times
from pumice.config.durations import parse_duration
from pumice.config.errors import ConfigError, PumiceError, RequestError
from pumice.core.configuration import parsed
from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.life.task import TaskStatus
from pumice.core.messages.events import ConfigLoaded
from pumice.core.objects.metadata import Object
from pumice.core.state.volumes import volume_rules
from pumice.errors import InputError
from pumice.load.manifests import Loaded, load_text
from pumice.plugins.loader import identities
from pumice.questions.adviser.own_changes import demand_own
from pumice.questions.adviser.pictures import board_of, course_of, measures_of, story_as_data
from pumice.questions.adviser.waiting_jobs import WaitingJobs, waiting_jobs_of, with_reasons
from pumice.questions.adviser.withheld import Withholding
from pumice.questions.eta.estimate import FutureSampling, estimates_of
from pumice.questions.eta.runs import runs_in
from pumice.questions.explain.account import NotFoundError
from pumice.questions.explain.advice.advise import advise
from pumice.questions.explain.asked import SETTLED, accounted, recorded, with_owners
from pumice.questions.explain.ended import end_in
from pumice.questions.explain.refused import refused_in
from pumice.questions.explain.scene import EXPLAINED, Scene, near, scene_of
from pumice.questions.history.rewind import Rewound, demand_volcano, newest_cycle, rewind_file
from pumice.questions.oneshot.supposing import supposed
from pumice.questions.replay.plugins import demand_plugins, in_force
from pumice.questions.whatif import changes
from pumice.questions.whatif.ask import what_if
from pumice.questions.whatif.changes import ForkChange
from pumice.questions.whatif.sources import journaled

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.session.trail.records import Look

# --- Questions about the future

MOST_SAMPLES: Final = 200
MOST_HORIZON_S: Final = 30 * 86400.0
SAID: Final[Mapping[str, Callable[[str], ForkChange]]] = {
    "addNodes": changes.add_nodes,
    "set": changes.set_field,
    "scale": changes.scale,
    "cordon": changes.cordon,
    "drain": changes.drain,
    "removeNode": changes.remove_node,
    "delete": changes.delete,
}
"""Changes that are said in a text, as the options of `pumice whatif` are."""


class WhatIf(msgspec.Struct, forbid_unknown_fields=True):
    """The body of the question. Each of `changes` has one key: one of `SAID`, `submit` with a list of objects, or
    `config` with the text of a configuration. `cycle`: fork there, not at the end of the journal.
    """

    changes: list[Object]
    horizon: str = "1h"
    seed: int = 0
    cycle: int | None = None


def difference_of(db: Path, body: bytes, withholding: Withholding | None = None) -> Object:
    """Return the differences that the changes would make. Raises InputError, ConfigError, and RequestError (403) for a
    change of what the asker may not see.
    """
    try:
        asked = msgspec.json.decode(body, type=WhatIf)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"the body: {error}") from error
    if not asked.changes:
        raise InputError("changes: expected one at least, found none")
    if withholding is not None:
        demand_own(asked.changes, withholding)
    made = [_change(number, each) for number, each in enumerate(asked.changes)]
    fork = anyio.run(journaled, db, asked.cycle)
    found = what_if(fork, made, horizon_of(asked.horizon), seed=asked.seed).result()
    return found.plain() if withholding is None else withholding.changes(found.plain())


def _change(number: int, said: Object) -> ForkChange:
    where = f"changes[{number}]"
    if len(said) != 1:
        raise InputError(f"{where}: expected one key, found {len(said)}")
    ((key, value),) = said.items()
    if key == "submit" and isinstance(value, list):
        return _submit(where, value)
    if key == "config" and isinstance(value, str):
        told = ConfigLoaded("", value, where, plugins=identities())
        try:
            config = parsed(told, lenient=False)
        except ConfigError as error:
            raise InputError(str(error)) from error
        return ForkChange(where, lambda fork: replace(fork, config=config, told=told))
    if key in SAID and isinstance(value, str):
        return SAID[key](value)
    expected = f"{', '.join(SAID)} or config with a text, or submit with a list of objects"
    raise InputError(f"{where}: expected {expected}, found {key[:40]!r}")


def _submit(where: str, objects: Any) -> ForkChange:
    """Read as a file would be, with all that is checked there."""
    loaded = Loaded()
    load_text(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}).decode(), where, loaded)
    if loaded.problems:
        raise loaded.problems[0]
    if not loaded.objects:
        raise InputError(f"{where}: the input has no objects")
    return changes.submit(loaded.objects, where)


def estimates(db: Path, asked: frozenset[str] | None, query: Mapping[str, str]) -> Object:
    """Estimate when waiting jobs start. Raises InputError, ConfigError."""
    samples = _whole(query.get("samples", "20"), "samples", 1, MOST_SAMPLES)
    sampling = FutureSampling(
        samples, horizon_of(query.get("horizon", "24h")), _whole(query.get("seed", "0"), "seed", 0)
    )
    fork = anyio.run(journaled, db, _whole(query["cycle"], "cycle", 1) if "cycle" in query else None)
    book = anyio.run(runs_in, db, fork.now)
    found = with_reasons(fork, estimates_of(fork, book.ended, sampling, asked))
    return {"cycle": fork.cycle, "now": fork.now, "estimates": found}


def horizon_of(text: str) -> float:
    """Return the horizon of a Go duration, thirty days at most."""
    try:
        found = parse_duration(text)
    except ValueError:
        found = -1.0
    if not 0 < found <= MOST_HORIZON_S:
        raise InputError(f"horizon={text[:40]}: expected a Go duration such as 24h, 720h at most")
    return found


def _whole(text: str, what: str, least: int, most: int = 2**62) -> int:
    found = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not least <= found <= most:
        raise InputError(f"{what}={text[:40]}: expected a whole number from {least} to {most}")
    return found


# --- One decided cycle as data


def trail_of(scene: Scene, task: str = "", stopwatch: Callable[[], float] = time.perf_counter) -> Object:
    """Return the cycle with the turns and endings of all jobs; of `task` ("namespace/name") also every look at the
    nodes, with the answer of each filter and scorer (if no action looked, a look at the end, of action ""), and its
    choices of victims. `took`: seconds of this decision, since a record keeps none. Raises NotFoundError.
    """
    if task and task not in scene.view.tasks.by_key:
        raise unknown_pod(scene, task)
    ignored = scene.options.ignored_provisioners if scene.options else ()
    snapshot = scene.view.snapshot(volume_rules(scene.config, ignored))
    trail = Trail((task,), every_filter=True) if task else Trail((), brief=True)
    clock, ask = scene.clock, scene.ask()
    plugins, began = PluginTimes(stopwatch), stopwatch()
    session = open_session(
        snapshot, scene.config, clock, scene.carry, scene.options, trail=trail, ask=ask, watch=plugins.watch
    )
    actions: dict[str, float] = {}
    for action in scene.config.actions:
        before = stopwatch()
        run_action(session, action)
        actions[action] = stopwatch() - before
    looked_for = session.snapshot.tasks.handles[scene.view.tasks.by_key[task].row] if task else None
    if looked_for is not None and not trail.looks and session.jobs.status[looked_for.row] == TaskStatus.PENDING:
        trail.look_anyway(looked_for)
    result = plugins.told(close_session(session, plugins.watch))
    took = {"total_s": stopwatch() - began, "actions": actions, "plugins": _flat(result.report.timings)}
    decided = {**_decided(scene, result), "took": took, "supposed": supposed(ask, scene.config)}
    return {**decided, **_followed(trail), **(_about(trail, task) if task else {})}


def unknown_pod(scene: Scene, task: str) -> NotFoundError:
    """Return the error for a pod that the cycle did not know."""
    return NotFoundError(f"cycle {scene.clock.cycle} knew no pod {task!r}{near(scene.view, 'pod', task)}")


def _flat(times: Times) -> dict[str, float]:
    return {f"{point} {plugin}": seconds for point, each in times.items() for plugin, seconds in each.items()}


def _decided(scene: Scene, result: CycleResult) -> Object:
    return {
        "cycle": result.cycle,
        "now": scene.clock.now,
        "digest": result.digest,
        "actions": list(scene.config.actions),
        "plugins": [[plugin.name for plugin in tier.plugins] for tier in scene.config.tiers],
        "binds": [msgspec.to_builtins(each) for each in result.binds],
        "evicts": [msgspec.to_builtins(each) for each in result.evicts],
    }


def _followed(trail: Trail) -> Object:
    endings = {job: [_ending(asdict(each)) for each in ended] for job, ended in sorted(trail.endings.items())}
    votes = {job: [list(vote) for vote in one.votes] for job, one in sorted(trail.admissions.items())}
    return {"turns": [asdict(turn) for turn in trail.turns], "endings": endings, "admissions": votes}


def _ending(plain: Object) -> Object:
    """Return the mapping without its empty values."""
    return {name: value for name, value in plain.items() if value}


def _about(trail: Trail, task: str) -> Object:
    looks = [_look(look) for look in trail.looks.get(task, ())]
    elections = [each.to_dict() for each in trail.elections.held if task in (each.preemptor, *each.candidates)]
    return {"task": task, "looks": looks, "elections": elections}


def _look(look: Look) -> Object:
    """Return by node the refusing filters with their words, or each plugin's part of its score."""
    refused = look.refused()
    nodes = {
        name: {"refused": [[reason.plugin, reason.text] for reason in look.refusers(name)]}
        if name in refused
        else {"scores": look.score_of(name)}
        for row, name in enumerate(look.names)
        if look.seen is None or look.seen[row]
    }
    return {"action": look.action, "chosen": look.chosen, "nominated": look.nominated, "nodes": nodes}


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
"""Query parameters of each resource; the others have none."""


class QuestionError(RequestError):
    """A question that cannot be understood."""

    reason = "BadRequest"


def answer(db: str, plugins_dir: str | None, question: AdviserQuestion) -> AdviserAnswer:
    """Answer a question. It never raises errors of the asker, the journal or the configuration."""
    row = KINDS[question.resource]
    withholding = Withholding(question.sees) if question.sees is not None else None
    said = str if withholding is None else withholding.refusal
    try:
        _demand_known(question)
        found = _ANSWERS[question.resource](Sources(Path(db), plugins_dir, withholding), question)
    except RequestError as error:
        return AdviserAnswer(error.code, reason=error.reason, message=said(str(error)))
    except ConfigError as error:
        return AdviserAnswer(404, reason="NotFound", message=said(error.problem))
    except PumiceError as error:
        return AdviserAnswer(503, reason="ServiceUnavailable", message=said(str(error)))
    if withholding is not None:
        found = withholding.answer(msgspec.json.decode(msgspec.json.encode(found)))
    metadata = {"name": question.name or question.resource}
    metadata |= {"namespace": question.namespace} if question.namespace else {}
    head = {"kind": row.kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": metadata}
    return AdviserAnswer(200, msgspec.json.encode({**head, **found}))


class Sources:
    """The journal that is asked, and its last loaded parts: questions come in groups."""

    def __init__(self, db: Path, plugins_dir: str | None, withholding: Withholding | None = None) -> None:
        self.db, self._plugins, self.withholding = db, plugins_dir, withholding

    def waiting_jobs(self, question: AdviserQuestion) -> WaitingJobs:
        """Return the waiting jobs that the asker may see, of the cycle that is asked about."""
        found = waiting_jobs_of(self.cycle(dict(question.query).get("cycle", "")))
        found = found.within(question.name) if question.name else found
        return found if self.withholding is None else self.withholding.waiting(found)

    def cycle(self, named: str) -> Scene:
        """Return a cycle by its number, "" or "newest". Raises QuestionError, ConfigError."""
        number = anyio.run(newest_cycle, self.db) if named in ("", NEWEST) else _number("cycle", named)
        return _loaded(self.db, self.db.stat().st_ino, number, self._plugins)

    def telling(self, kind: str, name: str, cycle: int | None) -> Scene:
        """Return the cycle that has the most information about a subject. Raises ConfigError."""
        self.load_plugins()
        return anyio.run(recorded, self.db, kind, name, cycle, _unsaid)

    def load_plugins(self) -> None:
        """Load the plugins that the journal's configurations name. Raises ConfigError."""
        anyio.run(demand_plugins, self.db, None if self._plugins is None else Path(self._plugins), _unsaid)


@dataclass
class Newest:
    """The last loaded state; later cycles of the same journal go on from it."""

    journal: tuple[Path, int, str | None] | None = None
    past: Rewound | None = None

    def rewound(self, journal: tuple[Path, int, str | None], cycle: int) -> Rewound:
        """Return the state at a cycle. Raises ConfigError. `journal`: file, inode and plug-ins' folder. A remote state
        is kept from the garbage collector until another one replaces it: it is large.
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
    """Return the scene of a cycle, which questions about it share."""
    anyio.run(demand_plugins, db, None if plugins_dir is None else Path(plugins_dir), _unsaid)
    past = _NEWEST.rewound((db, inode, plugins_dir), cycle)
    demand_volcano(past, "cycle")
    return replace(scene_of(past), refused=anyio.run(refused_in, db, cycle))


def _unsaid(sentence: str) -> None:
    """Drop a warning: those of this process have no reader."""


# --- Questions


def _standings(sources: Sources, question: AdviserQuestion) -> Object:
    return sources.waiting_jobs(question).standings().plain()


def _classes(sources: Sources, question: AdviserQuestion) -> Object:
    waiting_jobs = sources.waiting_jobs(question)
    classes, counts = waiting_jobs.classes(), waiting_jobs.counts()
    return {"cycle": waiting_jobs.cycle, "classes": classes, "counts": counts, "supposed": waiting_jobs.supposed}


def _cycle(sources: Sources, question: AdviserQuestion) -> Object:
    task, withholding = dict(question.query).get("task", ""), sources.withholding
    if withholding is None:
        return trail_of(sources.cycle(question.name), task)
    # A pod of another namespace is answered like one that does not exist.
    scene = sources.cycle(question.name)
    if task and not withholding.sees(task.partition("/")[0]):
        raise unknown_pod(scene, task)
    return withholding.cycle(trail_of(scene, task))


def _explanation(sources: Sources, question: AdviserQuestion) -> Object:
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
    told = account.plain()
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


def _estimates(sources: Sources, question: AdviserQuestion) -> Object:
    name = f"{question.namespace}/{question.name}" if question.name else ""
    sources.load_plugins()
    found = estimates(sources.db, frozenset([name]) if name else None, dict(question.query))
    if name and name not in found["estimates"]:
        raise NotFoundError(f"{name} does not wait, or does not exist")
    return found


def _board(sources: Sources, question: AdviserQuestion) -> Object:
    return board_of(sources.cycle(question.name), dict(question.query).get("node", ""))


def _configuration(sources: Sources, _question: AdviserQuestion) -> Object:
    told = anyio.run(in_force, sources.db)
    return {"source": told.source, "text": told.text, "plugins": told.plugins}


def _course(sources: Sources, _question: AdviserQuestion) -> Object:
    files = (sources.db, sources.db.with_name(f"{sources.db.name}-wal"))
    return {**anyio.run(course_of, sources.db), "bytes": sum(each.stat().st_size for each in files if each.exists())}


def _measures(sources: Sources, _question: AdviserQuestion) -> Object:
    withholding = sources.withholding
    if withholding is None:
        return anyio.run(measures_of, sources.db)
    return withholding.measures(anyio.run(measures_of, sources.db, withholding.sees))


def _story(sources: Sources, question: AdviserQuestion) -> Object:
    return anyio.run(story_as_data, sources.db, f"{question.namespace}/{question.name}")


def _what_if(sources: Sources, question: AdviserQuestion) -> Object:
    sources.load_plugins()
    return difference_of(sources.db, question.body, sources.withholding)


_ANSWERS: Final[Mapping[str, Callable[[Sources, AdviserQuestion], Object]]] = {
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

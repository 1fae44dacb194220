# SPDX-License-Identifier: Apache-2.0
"""A runner executes runs in this process or in others, and keeps their records by content."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from pumice.executors import Executors, as_ended
from pumice.plugins.loader import identities
from pumice.questions.evaluation.kept import KeptResults, content_key
from pumice.questions.gate.judging import Pair
from pumice.questions.gate.record import RunRecord
from pumice.questions.gate.run import ROUNDS, RunTask, run

FORM: Final = 3
"""Version of a kept record; others are not read."""
Key = TypeVar("Key", bound=Hashable)


class KeptRuns:
    """Keeps records of runs by their content, in a folder (None: nowhere)."""

    def __init__(self, folder: Path | None) -> None:
        self._kept = KeptResults(folder, tuple[int, RunRecord], "run")

    @property
    def folder(self) -> Path | None:
        """Return the folder, None without one."""
        return self._kept.folder

    def get(self, task: RunTask) -> RunRecord | None:
        """Return the record of an equal run, None without one that can be read."""
        form, record = self._kept.get(key_of(task)) or (FORM, None)
        return record if form == FORM else None

    def put(self, task: RunTask, record: RunRecord) -> None:
        """Write a record, as a whole or not at all."""
        self._kept.put(key_of(task), (FORM, record))


def key_of(task: RunTask) -> str:
    """Return the key of a run: a hash of its inputs."""
    moved = msgspec.structs.replace(task, plugins_dir="")  # the plugins' content counts, not where it lies
    return content_key(FORM, moved)


class PairTask(NamedTuple):
    """Describes both runs of a pair: base, head as a whole, and head as it may end early once the record of base is
    known.
    """

    base: RunTask
    whole: RunTask
    head: Callable[[RunRecord], RunTask]


class Runner:
    """Executes tasks. `executors` None: in this process; `plugins_dir`: where workers find users' plugins."""

    def __init__(self, kept: KeptRuns, executors: Executors | None = None, plugins_dir: str = "") -> None:
        self._kept, self._executors, self._plugins_dir = kept, executors, plugins_dir

    @property
    def folder(self) -> Path | None:
        """Return the folder that results are kept in, None without one."""
        return self._kept.folder

    def records(self, tasks: Sequence[RunTask]) -> list[RunRecord]:
        """Return the record of each run."""
        given = [self.with_plugins(task) for task in tasks]
        found = {place: record for place, task in enumerate(given) if (record := self.kept(task)) is not None}
        left = {place: (task,) for place, task in enumerate(given) if place not in found}
        if self._executors is None or len(left) < 2:
            return [found[place] if place in found else self._run(task) for place, task in enumerate(given)]
        with self._executors() as executor:
            for place, future in as_ended(run, left, executor):
                found[place] = self.keep(given[place], future.result())
        return [found[place] for place in range(len(given))]

    def pairs(self, tasks: Mapping[Key, PairTask], ended: Callable[[], None] = lambda: None) -> dict[Key, Pair]:
        """Return the records of each pair; `ended` is called after each record."""
        found = dict(self.ending_pairs(tasks, ended))
        return {key: found[key] for key in tasks}

    def ending_pairs(
        self, tasks: Mapping[Key, PairTask], ended: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[Key, Pair]]:
        """Yield the records of each pair as it ends, on one pool of workers."""
        given = {key: self._of_pair(task) for key, task in tasks.items()}
        known = {base: self.kept(base) for base in dict.fromkeys(task.base for task in given.values())}
        if self._executors is None or (len(given) < 2 and None not in known.values()):
            for key, task in given.items():
                yield key, self._in_turn(task, ended)
            return
        with self._executors() as executor:
            yield from _Pairs(self, given, executor, ended).lived(known)

    def kept(self, task: RunTask) -> RunRecord | None:
        """Return the record of an equal run, or of a whole run that breaks no limit: both are equal."""
        found = self._kept.get(task)
        if found is None and (whole := whole_of(task)) != task:
            found = self._kept.get(whole)
            return found if found is not None and is_unlimited(task, found) else None
        return found

    def keep(self, task: RunTask, record: RunRecord) -> RunRecord:
        """Keep a record and return it."""
        self._kept.put(task, record)
        return record

    def _run(self, task: RunTask) -> RunRecord:
        found = self.kept(task)
        return self.keep(task, run(task)) if found is None else found

    def _in_turn(self, task: PairTask, ended: Callable[[], None]) -> Pair:
        base = self._run(task.base)
        ended()
        head = self._run(task.head(base))
        ended()
        return Pair(base, head)

    def _of_pair(self, task: PairTask) -> PairTask:
        base, whole = self.with_plugins(task.base), self.with_plugins(task.whole)

        def head(record: RunRecord) -> RunTask:
            return self.with_plugins(task.head(record))

        return PairTask(base, whole, head)

    def with_plugins(self, task: RunTask) -> RunTask:
        """Return the run with the plugins that this process knows."""
        own = tuple(identities().items())
        return msgspec.structs.replace(task, plugins=own, plugins_dir=self._plugins_dir)


def whole_of(task: RunTask) -> RunTask:
    """Return the run without limits, which goes on to its end."""
    return msgspec.structs.replace(task, limits=(), stops_at_loops=task.until_s is None)


def is_unlimited(task: RunTask, whole: RunRecord) -> bool:
    """Return whether the limits of a task would not have ended a whole run: a limit that is broken
    for good is broken at the end, and a loop needs its evictions.
    """
    may_loop = task.stops_at_loops and task.until_s is not None and len(whole.evictions) >= ROUNDS
    broken = any(each.is_broken_for_good(whole, whole.horizon_s) for each in task.limits)
    return not whole.stopped and not may_loop and not broken


class _Pairs(Generic[Key]):
    """Runs pairs at the same time.

    A head waits for its base, which says where it may end. The largest does not wait: it is begun as a whole beside its
    base, and again with limits when base has ended. If the whole run ends first and breaks no limit, it is what the
    limited one would have become; otherwise the limited one ends early. Either way the record is the same, and a run
    without failures takes no longer than a run of both sides concurrently.
    """

    def __init__(
        self, runner: Runner, tasks: Mapping[Key, PairTask], executor: Executor, ended: Callable[[], None]
    ) -> None:
        self._runner, self._tasks, self._executor, self._ended = runner, tasks, executor, ended
        self._running = dict[Future[RunRecord], tuple[Key, RunTask]]()
        self._bases = dict[Key, RunRecord]()
        self._left = set(tasks)
        self._found = list[tuple[Key, Pair]]()

    def lived(self, known: Mapping[RunTask, RunRecord | None]) -> Iterator[tuple[Key, Pair]]:
        """Yield all pairs as they end. `known`: the kept records of each base; several pairs may have the same one."""
        begun = set[RunTask]()
        for key, task in self._tasks.items():
            base = known[task.base]
            if base is not None:
                self._base_ended(key, base)
            elif task.base not in begun:
                begun.add(task.base)
                self._submit(key, task.base)
        waiting = [key for key in self._tasks if key not in self._bases]
        if waiting:
            largest = max(waiting, key=lambda key: len(self._tasks[key].whole.objects))
            if self._tasks[largest].whole != self._tasks[largest].base:
                self._submit(largest, self._tasks[largest].whole)
        yield from self._taken()
        while self._left:
            for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                key, ended = self._running.pop(future)
                self._run_ended(key, ended, self._runner.keep(ended, future.result()))
            yield from self._taken()

    def _taken(self) -> Iterator[tuple[Key, Pair]]:
        """Yield the pairs that have ended, and forget them: there may be hundreds."""
        found, self._found = self._found, []
        yield from found

    def _submit(self, key: Key, task: RunTask) -> None:
        self._running[self._executor.submit(run, task)] = key, task

    def _run_ended(self, key: Key, task: RunTask, record: RunRecord) -> None:
        if key not in self._bases and task == self._tasks[key].base:
            for other in [each for each in self._tasks if self._tasks[each].base == task]:
                self._base_ended(other, record)
        elif key in self._bases and key in self._left:
            head = self._tasks[key].head(self._bases[key])
            if task == head or is_unlimited(head, record):
                self._head_ended(key, record)

    def _base_ended(self, key: Key, record: RunRecord) -> None:
        self._bases[key] = record
        self._ended()
        head = self._tasks[key].head(record)
        found = self._runner.kept(head)
        if found is not None:
            self._head_ended(key, found)
        elif (key, head) not in self._running.values():
            self._cancel(key)
            self._submit(key, head)

    def _cancel(self, key: Key) -> None:
        """Cancel the whole run of a head that has not begun."""
        for future in [one for one, (of, _) in self._running.items() if of == key and one.cancel()]:
            del self._running[future]

    def _head_ended(self, key: Key, record: RunRecord) -> None:
        self._left.discard(key)
        self._found.append((key, Pair(self._bases[key], record)))
        self._ended()

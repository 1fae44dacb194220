"""What the replica in another process is told before it can try a chunk: whatever it does not know yet.

Not an actor: `actors.dry_run_process` holds one for its process and starts anew with the next one. Columns and
specifications travel as pickles, from this program to itself; pods and their templates are sent once and meant by their
numbers from then on, so that there they are as unique as here.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from enum import Enum
from inspect import signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.errors import ReplicaError
from core.life.task import TaskStatus
from core.objects.pod import Task
from core.plugins.user import UserPlugin
from core.replica.delta import Entries, columns_of, delta
from core.replica.replica import begin, follow, question_of
from core.session.recorded import RecordedSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.actions.dry_run import DryRun
    from core.objects.pod_template import PodTemplate
    from core.replica.replica import Begin
    from core.session.recorded import Opening

PODS: Final = "tasks.handles"
FIELDS: Final = [*signature(Task).parameters]
TEMPLATE, STATUS = FIELDS.index("template"), FIELDS.index("status")
VALUES_OF = attrgetter(*FIELDS)


class Tag(bytes, Enum):
    """What a frame holds."""

    BEGIN = b"b"
    FOLLOW = b"f"
    QUESTION = b"q"
    CHUNK = b"c"


Frame = tuple[Tag, bytes]


def can_follow(dry_run: DryRun) -> bool:
    """Whether a replica says the same: not where users' own plugins have a say, of which it knows nothing."""
    session = dry_run.session
    users = any(isinstance(plugin, UserPlugin) for plugin in session.plugins.values())
    return isinstance(session, RecordedSession) and not users


class Feed:
    """What one process has been told. `encoded` is shared by all of them: they are mostly told the same."""

    def __init__(self, encoded: Openings) -> None:
        self._encoded = encoded
        self._opening: Opening | None = None
        self._changes = 0
        self._templates: frozenset[int] = frozenset()
        self._dry_run: DryRun | None = None

    def frames(self, dry_run: DryRun) -> list[Frame]:
        """What must be said before rows of this dry run."""
        session = dry_run.session
        assert isinstance(session, RecordedSession)
        frames: list[Frame] = []
        if session.began is not self._opening:
            told = self._encoded.get(self._opening, session.began, self._templates)
            frames.append((Tag.BEGIN, told.frame))
            self._opening, self._templates, self._changes = session.began, told.templates, 0
            self._dry_run = None
        if dry_run is not self._dry_run:
            frames.append((Tag.FOLLOW, pickle.dumps(follow(session, self._changes))))
            frames.append((Tag.QUESTION, pickle.dumps(question_of(dry_run))))
            self._changes, self._dry_run = len(session.changes), dry_run
        return frames


class Told(NamedTuple):
    """An opening as it travels, and the templates that are known once it has arrived."""

    frame: bytes
    templates: frozenset[int]


class Openings:
    """The last opening that was encoded."""

    def __init__(self) -> None:
        self._key: tuple[Opening | None, Opening, frozenset[int]] | None = None
        self._told = Told(b"", frozenset())

    def get(self, before: Opening | None, after: Opening, templates: frozenset[int]) -> Told:
        """`after`, for who was told `before` (None: nothing) and knows these templates."""
        key = self._key
        if key is None or key[0] is not before or key[1] is not after or key[2] != templates:
            self._key = before, after, templates
            self._told = _told(before, after, templates)
        return self._told


def _told(before: Opening | None, after: Opening, templates: frozenset[int]) -> Told:
    known = {} if before is None else columns_of(before.snapshot)
    columns = columns_of(after.snapshot)
    pods: list[Task | None] = columns.pop(PODS)
    change = delta({PODS: known.pop(PODS, [])}, {PODS: pods}).get(PODS, Entries(len(pods), {}))
    assert isinstance(change, Entries)
    changed: dict[int, Task | None] = change.changed
    fresh = {task.template.number: task.template for task in changed.values() if task is not None}
    fresh = {number: template for number, template in fresh.items() if number not in templates}
    specs_changed = before is None or before.snapshot.nodes.memo is not after.snapshot.nodes.memo
    rest = begin(after, delta(known or None, columns), specs_changed=specs_changed)
    told = list(fresh.values()), len(pods), {row: task and _fields_of(task) for row, task in changed.items()}
    return Told(pickle.dumps((pickle.dumps(told), _by_row(rest, pods))), templates | fresh.keys())


def _fields_of(task: Task) -> tuple[Any, ...]:
    values = [*VALUES_OF(task)]
    values[TEMPLATE], values[STATUS] = task.template.number, int(task.status)
    return tuple(values)


def _task_of(values: tuple[Any, ...], templates: dict[int, PodTemplate]) -> Task:
    fields_of_task = [*values]
    fields_of_task[TEMPLATE], fields_of_task[STATUS] = templates[values[TEMPLATE]], TaskStatus(values[STATUS])
    return Task(*fields_of_task)


def pod_in(row: int) -> Task | None:
    """Stands in pickles for a pod that is known by its row; `Reader` looks it up."""
    raise ReplicaError(f"the pod in row {row} is looked up without a table")


def _by_row(thing: Any, pods: Sequence[Task | None]) -> bytes:
    """The pickle of a thing in which pods are meant by their rows."""

    def reduced(task: Task) -> Any:
        listed = task.row < len(pods) and pods[task.row] is task
        return (pod_in, (task.row,)) if listed else task.__reduce_ex__(pickle.HIGHEST_PROTOCOL)

    file = io.BytesIO()
    pickler = pickle.Pickler(file, protocol=pickle.HIGHEST_PROTOCOL)
    table: dict[type, Any] = {**copyreg.dispatch_table, Task: reduced}
    pickler.dispatch_table = table
    pickler.dump(thing)
    return file.getvalue()


class Reader:
    """The other side of `Feed`: reads openings. `pods` by row, as they were told last."""

    def __init__(self) -> None:
        self.pods: list[Task | None] = []
        self._templates: dict[int, PodTemplate] = {}

    def opening(self, frame: bytes) -> Begin:
        """What to begin with; the pods are in `pods` then."""
        pods, rest = pickle.loads(frame)
        templates, length, changed = pickle.loads(pods)
        self._templates.update((template.number, template) for template in templates)
        self.pods = [*self.pods[:length], *[None] * (length - len(self.pods))]
        for row, values in changed.items():
            self.pods[row] = values and _task_of(values, self._templates)
        begin: Begin = _Unpickler(io.BytesIO(rest), self.pods).load()
        return begin


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, pods: list[Task | None]) -> None:
        super().__init__(file)
        self._pods = pods

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (pod_in.__module__, pod_in.__name__):
            return self._pods.__getitem__
        return super().find_class(module, name)

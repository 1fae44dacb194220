"""What the replica in another process is told before it can try a chunk: whatever it does not know yet.

Not an actor: `actors.dry_run_process` holds one for its process and starts anew with the next one. Columns and
specifications travel as pickles, from this program to itself; pods and their templates are sent once and meant by their
numbers from then on, so that there they are as unique as here.
"""

from __future__ import annotations

import io
import pickle
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from core.objects.pod import Task
from core.objects.pod_template import PodTemplate
from core.plugins.user import UserPlugin
from core.replica.delta import columns_of, delta
from core.replica.replica import begin, follow, question_of
from core.session.recorded import RecordedSession

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.actions.dry_run import DryRun
    from core.replica.delta import Delta
    from core.session.recorded import Opening

HANDLES = "tasks.handles"


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
    columns = columns_of(after.snapshot)
    changes = delta(None if before is None else columns_of(before.snapshot), columns)
    tasks = _tasks_in(changes.get(HANDLES))
    fresh = {task.template.number: task.template for task in tasks if task.template.number not in templates}
    handles = {HANDLES: changes.pop(HANDLES)} if HANDLES in changes else {}
    specs_changed = before is None or before.snapshot.nodes.memo is not after.snapshot.nodes.memo
    rest = begin(after, changes, specs_changed=specs_changed)
    known: list[Task | None] = columns[HANDLES]

    def by_number(obj: Any) -> tuple[str, int] | None:
        return ("template", obj.number) if isinstance(obj, PodTemplate) else None

    def by_row(obj: Any) -> tuple[str, int] | None:
        if isinstance(obj, Task) and obj.row < len(known) and known[obj.row] is obj:
            return "task", obj.row
        return by_number(obj)

    parts = [pickle.dumps(list(fresh.values())), _pickled(handles, by_number), _pickled(rest, by_row)]
    return Told(pickle.dumps(parts), templates | fresh.keys())


def _tasks_in(change: Any) -> Sequence[Task]:
    if change is None:
        return ()
    held = change.changed.values() if hasattr(change, "changed") else change.value
    return [task for task in held if task is not None]


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, name_of: Callable[[Any], tuple[str, int] | None]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._name_of = name_of

    def persistent_id(self, obj: Any) -> tuple[str, int] | None:
        return self._name_of(obj)


def _pickled(thing: Any, name_of: Callable[[Any], tuple[str, int] | None]) -> bytes:
    file = io.BytesIO()
    _Pickler(file, name_of).dump(thing)
    return file.getvalue()


class Reader:
    """The other side of `Feed`: reads openings."""

    def __init__(self) -> None:
        self._templates: dict[int, PodTemplate] = {}

    def opening(self, frame: bytes, handles: list[Task | None]) -> tuple[Delta, Any]:
        """(the changed pods, the rest); `handles` is filled with the pods as they are then."""
        templates, pods, rest = pickle.loads(frame)
        self._templates.update((template.number, template) for template in pickle.loads(templates))
        changes: Delta = self._loads(pods, handles)
        _fill(handles, changes.get(HANDLES))
        return changes, self._loads(rest, handles)

    def _loads(self, blob: bytes, handles: list[Task | None]) -> Any:
        return _Unpickler(io.BytesIO(blob), {"template": self._templates, "task": handles}).load()


def _fill(handles: list[Task | None], change: Any) -> None:
    if change is None:
        return
    if not hasattr(change, "changed"):
        handles[:] = change.value
        return
    del handles[change.length :]
    handles += [None] * (change.length - len(handles))
    for row, task in change.changed.items():
        handles[row] = task


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tables: dict[str, Any]) -> None:
        super().__init__(file)
        self._tables = tables

    def persistent_load(self, pid: tuple[str, int]) -> Any:
        table, number = pid
        return self._tables[table][number]

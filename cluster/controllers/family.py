# SPDX-License-Identifier: Apache-2.0
"""The form of controllers that make children for owners of one kind, and the machine that runs each of them.

What all of them have in common is here: which child belongs to which owner, which owner is to be looked at again and
when, and what is said about children that were made, refused or taken away. What one of them wants is its rule: a
function of an owner, its children and the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pumice.cluster.controllers.commands import PendingCommands
from pumice.cluster.controllers.pods_of import (
    Belongs,
    Key,
    Orphans,
    adoption,
    controller_of,
    is_controlled,
    is_leaving,
    release,
)
from pumice.cluster.controllers.revisions import KIND, taking_over
from pumice.cluster.kube.events import Sayings
from pumice.cluster.machine import Machine
from pumice.cluster.timers import Timers
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch, UpdateStatus
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import kind_of
from pumice.storage.codec import pack, unpack

# --- The rule of a controller that makes children for owners
# Source of the shape: the reconcilers of Kubernetes' controllers.

ChildName = tuple[str, Key]
"""The kind and the key of an object."""


@dataclass(slots=True)
class OwnFamily:
    """An owner and its children. `children` by kind and key; `world` has all objects of the kinds that the rule follows
    as a whole, by kind. `trouble`: why the api last refused one of its children.
    """

    owner: Object
    children: Mapping[ChildName, Object]
    world: Mapping[str, Mapping[Key, Object]] = field(default_factory=dict[str, dict[Key, Object]])
    trouble: str = ""

    def of(self, kind: str) -> Sequence[Object]:
        """Return its children of a kind, in the order of their names."""
        return [self.children[each] for each in sorted(self.children) if each[0] == kind]


@dataclass(slots=True)
class Agenda:
    """Requests of a rule: children to make, and other requests; `first` and `last` come before and after those of all
    owners that are looked at together.

    `due`: when to look again though nothing changed; a run is not idle before. `later`: the same, of what may be for
    ever to come (the next time of a schedule): a run does not wait for it.
    """

    new: list[Object] = field(default_factory=list[Object])
    requests: list[ApiRequest] = field(default_factory=list[ApiRequest])
    first: list[ApiRequest] = field(default_factory=list[ApiRequest])
    last: list[ApiRequest] = field(default_factory=list[ApiRequest])
    due: float | None = None
    later: float | None = None

    def no_later_than(self, at: float) -> None:
        """Look again at that time at the latest."""
        self.due = at if self.due is None else min(self.due, at)


@dataclass(frozen=True, slots=True)
class ChildWords:
    """Events on the owner about a child that was made, refused (with the reason) or deleted; "": no event.

    `made_as` and `refused_as`: the reasons of those events.
    """

    made: str = ""
    refused: str = ""
    deleted: str = ""
    made_as: str = "SuccessfulCreate"
    refused_as: str = "FailedCreate"


class OwnerRule(ABC):
    """Rule of one controller. Pure; `owner` and `children` are kinds by key, or parts of kinds.

    The machine calls `…_changed`, `commanded` and `refused` of a rule that keeps state of its own. The rule returns
    whether to look at the owner, and the `mark` names the owner.
    """

    summary: str
    """The work for an owner, as the page about workloads shows it (docs/reference/workloads.md)."""
    owner: str
    """The kind of the owners."""
    owner_type: tuple[str, str]
    """apiVersion and kind of the owners, as references name them."""
    children: tuple[str, ...]
    """The kinds that it makes."""
    others: tuple[str, ...] = ()
    """Kinds that it follows as a whole; a change reaches all owners of its namespace."""
    commands: Collection[str] = ()
    """Actions that a Command may ask of an owner."""
    heard_in_turn: str = ""
    """Kind of the children whose changes and deletions are known from the watch alone, in the order of the log."""
    adopts: str = "Pod"
    """Kind of the children that it adopts by `belongs` when they have no controller, and releases when `belongs`
    says no; "" for none.
    """
    reporter: str
    """Source of the events."""
    user: str
    """User of the requests: the actor in which it runs."""

    @abstractmethod
    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""

    def belongs(self, owner: Object) -> Belongs | None:
        """Return a test that picks the owner's children among those that it `adopts`; None: those that the owner
        made.
        """
        return None

    def mark_of(self, owner: Object) -> str:
        """Return what tells an owner from all others: its uid."""
        return str(owner["metadata"]["uid"])

    def parent_of(self, child: Object) -> str | None:
        """Return the mark of the owner that controls a child; None when its controller is of another kind, or
        missing.
        """
        reference = controller_of(child, self.owner_type)
        return None if reference is None else str(reference["uid"])

    def kept(self, child: Object) -> Object:
        """Return the remembered part of a child: all of it, unless the rule keeps a view of its own."""
        return child

    def owner_changed(self, mark: str, old: Object | None, new: Object) -> bool:
        """Note that an owner has come (`old` is None) or has changed."""
        return True

    def child_changed(self, mark: str, name: ChildName, old: Object | None, new: Object | None) -> bool:
        """Note that a child has come (`old` is None), has changed, has another under its name, or has gone (`new` is
        None).
        """
        return True

    def other_changed(self, owner: Object, kind: str, other: Object, *, fresh: bool) -> bool:
        """Note that an object that is followed as a whole has changed. `fresh`: it was not known before."""
        return True

    def commanded(self, mark: str, action: str, now: float) -> bool:
        """Note that a Command for an owner was deleted and is to be carried out."""
        return True

    def made(self, owner: Object, child: Object) -> None:
        """Note that a child was created."""
        return

    def refused(self, mark: str, child: Object, why: str, now: float) -> bool:
        """Note that a child was refused. True when the rule itself tries again later; otherwise the machine does."""
        return False

    def forget(self, mark: str) -> None:
        """Forget a removed owner."""
        return

    def made_later(self, owner: Object, exists: Callable[[str, str], bool]) -> Iterable[str]:
        """Yield a sentence for each child that is made only after others. `exists`: whether an object of a kind and
        name is in the owner's namespace.
        """
        return ()

    def words(self, owner: Object, child: Object) -> ChildWords:
        """Return the events about a child: for pods those of most of Kubernetes' controllers, for other kinds none."""
        name = child["metadata"].get("name", "")
        pod = child["kind"] == "Pod"
        return ChildWords(f"Created pod: {name}", "Error creating: ", f"Deleted pod: {name}") if pod else ChildWords()


NO_OWNER: Final = ("", "")
RETRY_S: Final = 1.0
NOT_FOUND: Final = 404
RETRY_MOST_S: Final = 300.0
"""An owner with a refused request is looked at again after this time, twice as long each time, until something
changes about it."""


class FamilyMachine(Machine):
    """Makes, keeps and deletes children for owners of one kind, as their `OwnerRule` says. `read`: `unpack`, or an
    equal function whose result must not be changed. Not `aloud`: no Events are written about children.
    """

    def __init__(self, rule: OwnerRule, read: Callable[[bytes], Object] = unpack, *, aloud: bool = True) -> None:
        self.kinds = (rule.owner, *rule.children, *rule.others, *(("Command",) if rule.commands else ()))
        self._rule = rule
        self._read = read
        self._aloud = aloud
        self._owner_kind = kind_of(rule.owner)
        self._commands = PendingCommands(self._owner_kind, rule.commands, rule.user)
        self._owners: dict[Key, Object] = {}
        self._keys: dict[str, Key] = {}
        self._children: dict[str, dict[ChildName, Object]] = {}
        self._parents: dict[ChildName, str] = {}
        self._child_kinds = frozenset(map(kind_of, rule.children))
        self._world: dict[str, dict[Key, Object]] = {kind_of(kind): {} for kind in rule.others}
        self._known = {self._owner_kind, *self._child_kinds, *self._world}
        self._revisions: dict[ChildName, int] = {}
        self._removed: dict[ChildName, int] = {}  # by their answers
        self._dirty: dict[Key, None] = {}
        self._orphans = Orphans()
        self._due: Timers[Key] = Timers()
        self._later: Timers[Key] = Timers()
        self._failures: dict[Key, int] = {}
        self._held: dict[Key, float] = {}
        self._trouble: dict[Key, str] = {}
        self._said: list[ApiRequest] = []
        self._sayings = Sayings(rule.user)

    # --- what changed

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        if kind == "Command":
            self._commands.observe(obj, deleted=deleted)
            return
        key = (obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        name = (kind, key)
        # Each change comes twice, by the answer and by the watch: what comes later is old, and must not undo a
        # deletion.
        if revision <= self._revisions.get(name, -1) or revision <= self._removed.get(name, -1):
            if deleted:
                self._removed.pop(name, None)  # nothing older comes any more
            return
        parent = self._rule.parent_of(obj) if kind in self._child_kinds and not deleted else None
        if deleted:
            self._revisions.pop(name, None)
        # Nothing is remembered of strangers: a cluster has many more pods than one rule has children.
        elif parent is not None or kind not in self._child_kinds:
            self._revisions[name] = revision
        if kind == self._owner_kind:
            self._owner(key, obj, deleted=deleted)
        if kind in self._child_kinds:
            if kind == self._rule.adopts:
                self._orphan(key, obj, deleted=deleted)
            self._child(name, obj, parent)
        if kind in self._world:
            self._other(kind, key, obj, deleted=deleted)

    def _owner(self, key: Key, obj: Object, *, deleted: bool) -> None:
        old = self._owners.get(key)
        # Deleted and made anew between two looks: what was remembered of the first is not of the second.
        if old is not None and (deleted or old["metadata"]["uid"] != obj["metadata"]["uid"]):
            self._lost(key, self._rule.mark_of(old))
            old = None
        if deleted:
            return
        mark = self._rule.mark_of(obj)
        self._owners[key] = obj
        if self._rule.adopts and (old is None or old.get("spec") != obj.get("spec")):
            belongs = self._rule.belongs(obj)
            if belongs is not None:
                self._orphans.adopt_by(key, belongs)
        self._keys[mark] = key
        # A new generation wants something else, so what the api refused of the old one delays nothing.
        if old is None or old["metadata"].get("generation") != obj["metadata"].get("generation"):
            self._forgive(key)
        if self._rule.owner_changed(mark, old, obj):
            self._dirty[key] = None

    def _lost(self, key: Key, mark: str) -> None:
        del self._owners[key]
        self._orphans.lose_owner(key)
        self._keys.pop(mark, None)
        self._dirty.pop(key, None)
        self._forgive(key)
        for timers in (self._due, self._later):
            timers.cancel(key)
        self._rule.forget(mark)

    def _forgive(self, key: Key) -> None:
        self._failures.pop(key, None)
        self._held.pop(key, None)
        self._trouble.pop(key, None)

    def _child(self, name: ChildName, obj: Object, parent: str | None) -> None:
        before = self._parents.get(name)
        # A child may change hands: adopted, released, or made anew under its name for another owner.
        if before is not None and before != parent:
            del self._parents[name]
            old = self._children[before].pop(name)
            if self._rule.child_changed(before, name, old, None):
                self._look_at(before)
            if not self._children[before]:
                del self._children[before]
        if parent is not None:
            self._parents[name] = parent
            siblings = self._children.setdefault(parent, {})
            known, siblings[name] = siblings.get(name), self._rule.kept(obj)
            if self._rule.child_changed(parent, name, known, obj):
                self._look_at(parent)

    def _orphan(self, key: Key, child: Object, *, deleted: bool) -> None:
        """Keep a child without a controller, and look again at the owners that might adopt it."""
        if deleted or is_controlled(child) or is_leaving(child):
            self._orphans.lose(key)
        else:
            self._dirty.update(dict.fromkeys(self._orphans.note(key, child)))

    def _look_at(self, mark: str) -> None:
        if (key := self._keys.get(mark)) is not None:
            self._dirty[key] = None

    def _other(self, kind: str, key: Key, obj: Object, *, deleted: bool) -> None:
        known = self._world[kind].pop(key, None)
        if not deleted:
            self._world[kind][key] = obj
        fresh = known is None and not deleted
        for each, owner in self._owners.items():
            # An object without a namespace (a PriorityClass, say) concerns the owners of all.
            if (not key[0] or each[0] == key[0]) and self._rule.other_changed(owner, kind, obj, fresh=fresh):
                self._dirty[each] = None

    # --- what to do

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        for timers in (self._due, self._later):
            self._dirty.update(dict.fromkeys(timers.take_due(now)))
        # Emptied before the work, which notes owners for the next step in it.
        dirty, self._dirty = self._dirty, {}
        first, self._said = [*self._commands.withdrawals(), *self._said], []
        requests: list[ApiRequest] = []
        last: list[ApiRequest] = []
        for key in dirty:
            owner = self._owners.get(key)
            if owner is not None and "deletionTimestamp" not in owner["metadata"]:
                agenda = self._work(key, owner, now)
                first += agenda.first
                requests += [*(Create(pack(child), user=self._rule.user) for child in agenda.new), *agenda.requests]
                last += agenda.last
        return [*first, *requests, *last]

    def _claims(self, key: Key, owner: Object) -> list[ApiRequest]:
        """Return the adoptions and releases of children; each is tried once, until the child changes."""
        belongs, adopts, user = self._orphans.test_of(key), self._rule.adopts, self._rule.user
        if belongs is None:
            return []
        found: list[ApiRequest] = [adoption(owner, adopts, child, user) for child in self._orphans.take(key)]
        mine = self._children.get(self._rule.mark_of(owner), {})
        strangers = [child for (kind, _), child in mine.items() if kind == adopts and not belongs(child)]
        found += [release(owner, adopts, child, user) for child in strangers if not is_leaving(child)]
        return found

    def _work(self, key: Key, owner: Object, now: float) -> Agenda:
        # adopted first: the rule would make anew what already exists
        if claims := self._claims(key, owner):
            self._dirty[key] = None
            return Agenda(requests=claims)
        work, held_until = self._rule.work(self._family(key, owner), now), self._held.get(key, 0.0)
        if held_until > now:
            work.later = held_until if work.later is None else min(work.later, held_until)
            # only creations wait after a refusal; deletions and the status go on
            work.new = []
        for timers, at in ((self._due, work.due), (self._later, work.later)):
            timers.cancel(key) if at is None else timers.set(key, max(at, now))
        if work.due is not None and work.due <= now:
            self._dirty[key] = None  # before those that the answers make to be looked at
        return work

    def _family(self, key: Key, owner: Object) -> OwnFamily:
        children = self._children.get(self._rule.mark_of(owner), {})
        return OwnFamily(owner, children, self._world, self._trouble.get(key, ""))

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """Take the answer to one request of the last step; answers come in order, before the next step."""
        match request, reply:
            case Create(), Accepted():
                self._created(self._read(reply.blob), now)
            case Create(), Refused():
                self._create_refused(unpack(request.blob), reply, now)
            case Delete(kind="Command"), _:
                self._command(request, reply, now)
            # Taken from the answer, it would be seen before changes that the log has earlier.
            case ((Patch() | Delete()), Accepted()) if request.kind == self._rule.heard_in_turn:
                pass
            case Delete(), Accepted():
                self._deleted(request, reply, now)
            case _, Accepted():
                if reply.blob:
                    self._heard(self._read(reply.blob))
            case ((UpdateStatus() | Patch() | Delete()), Refused()):
                self._try_again(self._concerned(request), reply, now)
            case _:
                pass

    def _concerned(self, request: UpdateStatus | Patch | Delete) -> Key | None:
        """Return the owner of a request: its object, or the owner of its object."""
        key = (request.namespace, request.name)
        return key if request.kind == self._owner_kind else self._keys.get(self._parents.get((request.kind, key), ""))

    def _try_again(self, key: Key | None, reply: Refused, now: float) -> None:
        if key is None or reply.code == NOT_FOUND:
            return  # the watch tells
        if self._held.get(key, 0.0) <= now:  # what is refused together counts once
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            # The exponent is bounded, for 2.0 ** 1024 overflows.
            self._held[key] = now + min(RETRY_S * 2.0 ** min(failures - 1, 20), RETRY_MOST_S)
        self._later.set(key, self._held[key])

    def _heard(self, obj: Object) -> None:
        group = str(obj["apiVersion"]).rpartition("/")[0]
        for kind in (f"{obj['kind']}.{group}", obj["kind"]):
            if kind in self._known:
                self.observe(kind, obj, int(obj["metadata"]["resourceVersion"]))
                return

    def _created(self, child: Object, now: float) -> None:
        self._heard(child)
        mark = self._rule.parent_of(child)
        owner = self._owner_of(mark)
        if mark is not None and owner is not None:
            # What was refused before (over a quota, say) may be possible by now.
            self._forgive(self._keys[mark])
            self._rule.made(owner, child)
            self._say(owner, child, now, lambda words: (words.made_as, words.made, False))

    def _command(self, request: Delete, reply: ApiReply, now: float) -> None:
        if (taken := self._commands.answered(request, reply)) is None:
            return
        namespace, name, action = taken
        owner = self._owners.get((namespace, name))
        if owner is not None and self._rule.commanded(self._rule.mark_of(owner), action, now):
            self._dirty[namespace, name] = None

    def _create_refused(self, child: Object, reply: Refused, now: float) -> None:
        mark = self._rule.parent_of(child)
        if reply.reason == "AlreadyExists" and child["kind"] == KIND:  # an owner of that name was here before
            self._said.append(taking_over(child, self._rule.user))
        if reply.reason == "AlreadyExists" or mark is None:
            return  # the watch tells
        key, owner = self._keys.get(mark), self._owner_of(mark)
        if self._rule.refused(mark, child, reply.message, now):
            self._look_at(mark)
            return
        if owner is not None and self._held.get(key or NO_OWNER, 0.0) <= now:
            self._say(owner, child, now, lambda words: _refused(words, reply.message))
        if key is not None and self._trouble.get(key) != reply.message:
            self._trouble[key] = reply.message
            self._dirty[key] = None
        self._try_again(key, reply, now)

    def _deleted(self, request: Delete, reply: Accepted, now: float) -> None:
        key = (request.namespace, request.name)
        parent = self._parents.get((request.kind, key))
        # Before the child is forgotten below: the words are about it.
        if (owner := self._owner_of(parent)) is not None and parent is not None:
            child = self._children[parent][request.kind, key]
            self._say(owner, child, now, lambda words: ("SuccessfulDelete", words.deleted, False))
        if reply.blob:
            self._heard(self._read(reply.blob))
        else:
            name = {"metadata": {"namespace": request.namespace, "name": request.name}}
            self.observe(request.kind, name, reply.revision, deleted=True)
            # The watch has older states of it yet to come; none of them may bring it back.
            self._removed[request.kind, key] = reply.revision

    def _owner_of(self, mark: str | None) -> Object | None:
        key = None if mark is None else self._keys.get(mark)
        return None if key is None else self._owners.get(key)

    def _say(
        self, owner: Object, child: Object, now: float, about: Callable[[ChildWords], tuple[str, str, bool]]
    ) -> None:
        if not self._aloud:
            return
        reason, text, warning = about(self._rule.words(owner, child))
        if text:
            told = self._sayings.say(owner, reason, text, now, source=self._rule.reporter, warning=warning)
            self._said.append(told)

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        dues: Iterable[float | None] = (self._due.next_due(), self._later.next_due())
        return min((due for due in dues if due is not None), default=None)

    def running_timers(self) -> int:
        """Return the number of running timers, without those that may never end."""
        return len(self._due)


def _refused(words: ChildWords, why: str) -> tuple[str, str, bool]:
    return words.refused_as, words.refused and words.refused + why, True

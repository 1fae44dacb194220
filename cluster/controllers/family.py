"""The form of controllers that make children for owners of one kind, and the machine that runs each of them.

What all of them have in common is here: which child belongs to which owner, which owner is to be looked at again and
when, and what is said about children that were made, refused or taken away. What one of them wants is its rule: a
function of an owner, its children and the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pumice.cluster.controllers.pods_of import adoption, is_controlled, is_leaving, release
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

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True)
class OwnFamily:
    """An owner and what it controls. `children` by kind, in the order of their names; `world` has all there is of the
    kinds that the rule follows as a whole, by kind. `trouble`: why the api has last refused a child of it.
    """

    owner: Object
    children: Mapping[str, Sequence[Object]]
    world: Mapping[str, Mapping[Key, Object]] = field(default_factory=dict[str, dict[Key, Object]])
    trouble: str = ""

    def of(self, kind: str) -> Sequence[Object]:
        """Its children of a kind."""
        return self.children.get(kind, ())


@dataclass(slots=True)
class Agenda:
    """Requests that a rule wants: children to make, and other requests.

    `due`: when to look again though nothing changed; a run is not idle before. `later`: the same, of what may be for
    ever to come (the next time of a schedule): a run does not wait for it.
    """

    new: list[Object] = field(default_factory=list[Object])
    requests: list[ApiRequest] = field(default_factory=list[ApiRequest])
    due: float | None = None
    later: float | None = None

    def no_later_than(self, at: float) -> None:
        """Look again then."""
        self.due = at if self.due is None else min(self.due, at)


@dataclass(frozen=True, slots=True)
class ChildWords:
    """Events on the owner about a child that was made, refused (with the reason) or deleted; "" is no event.

    `made_as` and `refused_as`: the reasons of those events.
    """

    made: str = ""
    refused: str = ""
    deleted: str = ""
    made_as: str = "SuccessfulCreate"
    refused_as: str = "FailedCreate"


class OwnerRule(ABC):
    """Rule of one controller. Pure; `owner` and `children` are kinds by key, children may be parts of kinds."""

    owner: str
    """The kind of the owners."""
    owner_type: tuple[str, str]
    """apiVersion and kind of the owners, as references name them."""
    children: tuple[str, ...]
    """What it makes."""
    others: tuple[str, ...] = ()
    """Kinds that it follows as a whole; a change looks at all owners of its namespace."""
    adopts: str = "Pod"
    """Kind of the children that it adopts by `belongs` when they have no controller, and releases when `belongs`
    says no.
    """
    reporter: str
    """Source of the events."""
    user: str
    """User of the requests: the actor in which it runs."""

    @abstractmethod
    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""

    def belongs(self, owner: Object) -> Callable[[Object], bool] | None:
        """Return a test that picks the owner's among those that it `adopts`; None: those that the owner made."""
        return None

    def gone(self, owner_uid: str, child: Object) -> None:
        """A child was removed; `child` as it was last seen. For a rule that keeps something of its own."""
        return

    def forget(self, owner_uid: str) -> None:
        """The owner was removed. For a rule that keeps something of its own."""
        return

    def words(self, owner: Object, child: Object) -> ChildWords:
        """Return the events about a child: for pods those of most of Kubernetes' controllers, for other kinds none."""
        name = child["metadata"].get("name", "")
        pod = child["kind"] == "Pod"
        return ChildWords(f"Created pod: {name}", "Error creating: ", f"Deleted pod: {name}") if pod else ChildWords()


NOBODY: Final = ("", "")
RETRY_S: Final = 1.0
NOT_FOUND: Final = 404
RETRY_MOST_S: Final = 300.0
"""An owner with a refused request is looked at again after this time, twice as long each time, until something
changes about it."""


class FamilyMachine(Machine):
    """Makes, keeps and deletes children for owners of one kind, as their `OwnerRule` says."""

    def __init__(self, rule: OwnerRule) -> None:
        self.kinds = (rule.owner, *rule.children, *rule.others)
        self._rule = rule
        self._owners: dict[Key, Object] = {}
        self._keys: dict[str, Key] = {}
        self._children: dict[str, dict[tuple[str, Key], Object]] = {}
        self._parents: dict[tuple[str, Key], str] = {}
        self._child_kinds = frozenset(map(kind_of, rule.children))
        self._world: dict[str, dict[Key, Object]] = {kind_of(kind): {} for kind in rule.others}
        self._revisions: dict[tuple[str, Key], int] = {}
        self._dirty: dict[Key, None] = {}
        self._orphans: dict[Key, Object] = {}
        self._due: Timers[Key] = Timers()
        self._later: Timers[Key] = Timers()
        self._failures: dict[Key, int] = {}
        self._held: dict[Key, float] = {}
        self._trouble: dict[Key, str] = {}
        self._said: list[ApiRequest] = []
        self._sayings = Sayings(rule.user)

    # --- what changed

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """An object is there, or is gone, as of `revision`."""
        key = (obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        if revision <= self._revisions.get((kind, key), -1):
            return
        if deleted:
            self._revisions.pop((kind, key), None)
        elif kind == self._rule.owner or kind in self._world or self._controller(obj) is not None:
            self._revisions[kind, key] = revision
        if kind == self._rule.owner:
            self._owner(key, obj, deleted=deleted)
        if kind in self._child_kinds:
            if kind == self._rule.adopts:
                self._orphan(key, obj, deleted=deleted)
            self._child(kind, key, obj, deleted=deleted)
        if kind in self._world:
            self._other(kind, key, obj, deleted=deleted)

    def _owner(self, key: Key, obj: Object, *, deleted: bool) -> None:
        old = self._owners.get(key)
        if old is not None and (deleted or old["metadata"]["uid"] != obj["metadata"]["uid"]):
            self._lost(key, old["metadata"]["uid"])
        if deleted:
            return
        self._owners[key] = obj
        self._keys[obj["metadata"]["uid"]] = key
        if old is None or old["metadata"].get("generation") != obj["metadata"].get("generation"):
            self._forgive(key)
        self._dirty[key] = None

    def _lost(self, key: Key, uid: str) -> None:
        del self._owners[key]
        self._keys.pop(uid, None)
        self._forgive(key)
        for timers in (self._due, self._later):
            timers.cancel(key)
        self._rule.forget(uid)

    def _forgive(self, key: Key) -> None:
        self._failures.pop(key, None)
        self._held.pop(key, None)
        self._trouble.pop(key, None)

    def _child(self, kind: str, key: Key, obj: Object, *, deleted: bool) -> None:
        owner = None if deleted else self._controller(obj)
        parent = self._parents.pop((kind, key), None)
        # another uid under the same name is another child, and the known one has gone
        if parent is not None and (deleted or not self._same(parent, (kind, key), owner, obj)):
            self._rule.gone(parent, self._children[parent].pop((kind, key)))
            self._look_at(parent)
            if not self._children[parent]:
                del self._children[parent]
        if owner is not None:
            self._parents[kind, key] = owner
            self._children.setdefault(owner, {})[kind, key] = obj
            self._look_at(owner)

    def _orphan(self, key: Key, child: Object, *, deleted: bool) -> None:
        """Keep a child without a controller, and look again at the owners that might adopt it."""
        if deleted or is_controlled(child) or is_leaving(child):
            self._orphans.pop(key, None)
            return
        self._orphans[key] = child
        for each, owner in self._owners.items():
            belongs = self._rule.belongs(owner) if each[0] == key[0] else None
            if belongs is not None and belongs(child):
                self._dirty[each] = None

    def _same(self, parent: str, name: tuple[str, Key], owner: str | None, obj: Object) -> bool:
        """Return whether the child of that name is the known one, and still belongs to its parent."""
        return owner == parent and self._children[parent][name]["metadata"]["uid"] == obj["metadata"]["uid"]

    def _look_at(self, uid: str) -> None:
        if (key := self._keys.get(uid)) is not None:
            self._dirty[key] = None

    def _other(self, kind: str, key: Key, obj: Object, *, deleted: bool) -> None:
        if deleted:
            self._world[kind].pop(key, None)
        else:
            self._world[kind][key] = obj
        self._dirty.update(dict.fromkeys(each for each in self._owners if not key[0] or each[0] == key[0]))

    # --- what to do

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is to do before the next news or timer."""
        for timers in (self._due, self._later):
            self._dirty.update(dict.fromkeys(timers.take_due(now)))
        dirty, self._dirty = self._dirty, {}
        requests, self._said = self._said, []
        for key in dirty:
            owner = self._owners.get(key)
            if owner is not None and "deletionTimestamp" not in owner["metadata"]:
                requests += self._work(key, owner, now)
        return requests

    def _claims(self, key: Key, owner: Object) -> list[ApiRequest]:
        """Adopts and releases children; each is tried once, until something changes about it."""
        belongs, adopts, user = self._rule.belongs(owner), self._rule.adopts, self._rule.user
        if belongs is None:
            return []
        found: list[ApiRequest] = []
        for name, child in [*self._orphans.items()]:
            if name[0] == key[0] and belongs(child):
                del self._orphans[name]
                found.append(adoption(owner, adopts, child, user))
        mine = self._children.get(owner["metadata"]["uid"], {})
        strangers = [child for (kind, _), child in mine.items() if kind == adopts and not belongs(child)]
        found += [release(owner, adopts, child, user) for child in strangers if not is_leaving(child)]
        return found

    def _work(self, key: Key, owner: Object, now: float) -> list[ApiRequest]:
        # adopted first: the rule would make anew what already exists
        if claims := self._claims(key, owner):
            self._dirty[key] = None
            return claims
        work, held_until = self._rule.work(self._family(owner), now), self._held.get(key, 0.0)
        if held_until > now:
            work.later = held_until if work.later is None else min(work.later, held_until)
            # only creations wait after a refusal; deletions and the status go on
            work.new = []
        for timers, at in ((self._due, work.due), (self._later, work.later)):
            timers.cancel(key) if at is None else timers.set(key, max(at, now))
        return [*(Create(pack(child), user=self._rule.user) for child in work.new), *work.requests]

    def _family(self, owner: Object) -> OwnFamily:
        held = self._children.get(owner["metadata"]["uid"], {})
        children: dict[str, list[Object]] = {}
        for kind, key in sorted(held):
            children.setdefault(kind, []).append(held[kind, key])
        key = self._keys[owner["metadata"]["uid"]]
        return OwnFamily(owner, children, self._world, self._trouble.get(key, ""))

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """The answer to one request of the last step; they come in order, before the next step."""
        match request, reply:
            case Create(), Accepted():
                child = unpack(reply.blob)
                self._heard(child)
                self._forgive(self._keys.get(self._controller(child) or "", NOBODY))
                self._say(child, now, lambda words: (words.made_as, words.made, False))
            case Create(), Refused():
                self._create_refused(unpack(request.blob), reply, now)
            case Delete(), Accepted():
                self._deleted(request, reply, now)
            case _, Accepted():
                if reply.blob:
                    self._heard(unpack(reply.blob))
            case ((UpdateStatus() | Patch() | Delete()), Refused()):
                self._try_again(self._concerned(request), reply, now)
            case _:
                pass

    def _concerned(self, request: UpdateStatus | Patch | Delete) -> Key | None:
        """Return the owner of a request: its object, or the owner of its object."""
        key = (request.namespace, request.name)
        return key if request.kind == self._rule.owner else self._keys.get(self._parents.get((request.kind, key), ""))

    def _try_again(self, key: Key | None, reply: Refused, now: float) -> None:
        if key is None or reply.code == NOT_FOUND:
            return  # the watch tells
        if self._held.get(key, 0.0) <= now:  # what is refused together counts once
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self._held[key] = now + min(RETRY_S * 2.0 ** min(failures - 1, 20), RETRY_MOST_S)
        self._later.set(key, self._held[key])

    def _heard(self, obj: Object) -> None:
        if obj.get("kind") != "Event" and (kind := self._kind(obj)) is not None:
            self.observe(kind, obj, int(obj["metadata"]["resourceVersion"]))

    def _kind(self, obj: Object) -> str | None:
        """The key of its kind, of those that are followed."""
        group = str(obj["apiVersion"]).rpartition("/")[0]
        names = (obj["kind"], f"{obj['kind']}.{group}")
        known = {self._rule.owner, *self._child_kinds, *self._world}
        found = [name for name in reversed(names) if name in known]
        return found[0] if found else None

    def _create_refused(self, child: Object, reply: Refused, now: float) -> None:
        owner = self._controller(child)
        if reply.reason == "AlreadyExists" and child["kind"] == KIND:  # an owner of that name was here before
            self._said.append(taking_over(child, self._rule.user))
        if reply.reason == "AlreadyExists" or owner is None:
            return  # the watch tells
        key = self._keys.get(owner)
        if self._held.get(key or NOBODY, 0.0) <= now:
            self._say(child, now, lambda words: _refused(words, reply.message))
        if key is not None and self._trouble.get(key) != reply.message:
            self._trouble[key] = reply.message
            self._dirty[key] = None
        self._try_again(key, reply, now)

    def _deleted(self, request: Delete, reply: Accepted, now: float) -> None:
        key = (request.namespace, request.name)
        parent = self._parents.get((request.kind, key))
        if parent is not None:
            child = self._children[parent][request.kind, key]
            self._say(child, now, lambda words: ("SuccessfulDelete", words.deleted, False))
        if reply.blob:
            self._heard(unpack(reply.blob))
        else:
            name = {"metadata": {"namespace": request.namespace, "name": request.name}}
            self.observe(request.kind, name, reply.revision, deleted=True)

    def _say(self, child: Object, now: float, about: Callable[[ChildWords], tuple[str, str, bool]]) -> None:
        uid = self._controller(child)
        owner = None if uid is None or uid not in self._keys else self._owners.get(self._keys[uid])
        if owner is None or child.get("kind") == "Event":
            return
        reason, text, warning = about(self._rule.words(owner, child))
        if text:
            told = self._sayings.say(owner, reason, text, now, source=self._rule.reporter, warning=warning)
            self._said.append(told)

    def next_due(self) -> float | None:
        """Return the time when `step` has work though nothing changed; None: never."""
        dues: Iterable[float | None] = (self._due.next_due(), self._later.next_due())
        return min((due for due in dues if due is not None), default=None)

    def running_timers(self) -> int:
        """Return the number of running timers; timers that may never end do not count."""
        return len(self._due)

    def _controller(self, obj: Object) -> str | None:
        """The uid of its controller, if that is one of the owners' kind."""
        references: list[Object] = obj["metadata"].get("ownerReferences") or []
        for each in references:
            if each.get("controller"):
                known = (each.get("apiVersion"), each["kind"]) == self._rule.owner_type
                return str(each["uid"]) if known else None
        return None


def _refused(words: ChildWords, why: str) -> tuple[str, str, bool]:
    return words.refused_as, words.refused and words.refused + why, True

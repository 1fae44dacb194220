"""What a controller that makes children for its owners wants: a function of an owner, its children and the time.

Source of the shape: the reconcilers of Kubernetes' controllers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pumice.core.messages.commands import ApiRequest
from pumice.core.objects.metadata import Object

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
    """What a rule wants: children to be made, and other requests.

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
    """What is said on the owner of a child that was made, refused (with the reason) or taken away; "" says nothing.

    `made_as` and `refused_as`: the reasons of those events.
    """

    made: str = ""
    refused: str = ""
    deleted: str = ""
    made_as: str = "SuccessfulCreate"
    refused_as: str = "FailedCreate"


class OwnerRule(ABC):
    """What one controller wants. Pure; `owner` and `children` are kinds by key, children may be parts of kinds."""

    owner: str
    """The kind of the owners."""
    owner_type: tuple[str, str]
    """apiVersion and kind of the owners, as references name them."""
    children: tuple[str, ...]
    """What it makes."""
    others: tuple[str, ...] = ()
    """Kinds that it follows as a whole; a change looks at all owners of its namespace."""
    adopts: str = "Pod"
    """Of which kind it takes what `belongs` and is nobody's, and lets go what does not."""
    reporter: str
    """Who events are from."""
    user: str
    """Who asks: the actor in which it runs."""

    @abstractmethod
    def work(self, family: OwnFamily, now: float) -> Agenda:
        """What to ask of the api for an owner that is not being deleted."""

    def belongs(self, owner: Object) -> Callable[[Object], bool] | None:
        """Which of those that it `adopts` are the owner's, by what they are like; None: those that it has made."""
        del owner
        return None

    def gone(self, owner_uid: str, child: Object) -> None:
        """A child was removed; `child` as it was last seen. For a rule that keeps something of its own."""
        del owner_uid, child

    def forget(self, owner_uid: str) -> None:
        """The owner was removed. For a rule that keeps something of its own."""
        del owner_uid

    def words(self, owner: Object, child: Object) -> ChildWords:
        """What is said about a child: of pods what most of Kubernetes' controllers say, of anything else nothing."""
        del owner
        name = child["metadata"].get("name", "")
        pod = child["kind"] == "Pod"
        return ChildWords(f"Created pod: {name}", "Error creating: ", f"Deleted pod: {name}") if pod else ChildWords()

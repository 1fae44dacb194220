# SPDX-License-Identifier: Apache-2.0
"""Plain data from the events of YAML text: the common part of configurations and manifests.

Built on libyaml's events rather than on PyYAML's loader: constructing from events costs a third, and the loader would
turn timestamps into dates where Kubernetes keeps text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import yaml

from pumice.config.scalars import Scalar, key_text, resolve_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser, or PyYAML's own where it is missing."""

# --- Events
# They are bounded in depth: libyaml's composer calls itself for every level, without looking at the stack, and 50,000
# brackets end the process. Newer ones read no further than 1,000 levels themselves, and may reach them before we
# do, as they read ahead.

DEEPEST: Final = 128
"""Levels of mappings and lists in what is meant for a person to read; an object of the API may have as many."""
LIBYAML_SAYS: Final = "exceeded maximum nesting depth"


class TooDeepError(yaml.MarkedYAMLError):
    """More levels than a real file has; its mark is where the first level too many begins."""


def bounded_events(text: str, loader: Any, deepest: int = DEEPEST) -> Iterator[Any]:
    """Yield the events in order, as ``yaml.parse`` gives them. Raises yaml.YAMLError, and TooDeepError for more levels
    than `deepest`, which is 1,000 at most.
    """
    depth, problem = 0, f"nested deeper than {deepest} levels"
    events: Iterator[Any] = yaml.parse(text, Loader=loader)
    try:
        for event in events:
            kind: Any = event.__class__
            if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                depth += 1
                if depth > deepest:
                    raise TooDeepError(problem=problem, problem_mark=event.start_mark)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                depth -= 1
            yield event
    except yaml.MarkedYAMLError as error:
        # libyaml has only words for it, no code; as it reads ahead it may come to its limit before ours.
        if error.problem != LIBYAML_SAYS:
            raise
        raise TooDeepError(problem=problem, problem_mark=error.problem_mark) from error


# --- Values


class OpenValue:
    """A mapping or a sequence that is being filled."""

    __slots__ = ("anchored", "before", "inherited", "key", "key_event", "keyed", "merged_into", "merges", "value")

    def __init__(
        self, value: dict[Any, Any] | list[Any], anchored: Anchored | None, before: int, merged_into: OpenValue | None
    ) -> None:
        self.value = value
        self.anchored = anchored
        self.before = before  # so many values came first
        self.merged_into = merged_into  # the mapping whose merge key this is the value of
        self.key: Any = None
        self.key_event: Any = None
        self.keyed = False
        self.merges = False  # its key is a merge key: one that is quoted is a key like any other
        self.inherited: set[Any] = set()  # keys that only merge keys have given


@dataclass(slots=True)
class Anchored:
    """Value of an anchor, the number of values it contains (None while it is being filled), and where it begins."""

    value: Any
    size: int | None
    event: Any


class ValueBuilder:
    """Builds the value of one document from its events, without a call for every level.

    Aliases share the value of their anchor. `plain` and `tagged` give the values of scalars: `plain(text)`,
    `tagged(tag, text)`; aliases may stand for `most_aliased` values. Subclass and override what happens to a key given
    twice and to list items, and which error is raised; the texts of errors are here.
    """

    KEY: ClassVar[str] = "expected a text as key"
    MERGE: ClassVar[str] = "expected a mapping to merge"
    NO_ANCHOR: ClassVar[str] = "the alias {!r} has no anchor"
    ITSELF: ClassVar[str] = "the alias {!r} contains itself"
    TOO_MANY: ClassVar[str] = "aliases stand for more than {} values"

    def __init__(self, plain: Callable[[str], Scalar], tagged: Callable[[str, str], Scalar], most_aliased: int) -> None:
        self.value: Any = None
        self.root: Any = None  # the event that begins it
        self._plain = plain
        self._tagged = tagged
        self._most_aliased = most_aliased
        self._stack: list[OpenValue] = []
        self._anchors: dict[str, Anchored] = {}
        self._values = 0  # that there are, each alias counted as what it stands for
        self._aliased = 0

    def build(self, events: Iterator[Any]) -> None:
        """Fill `value`; `events` stand behind the document's start, and end up behind its end."""
        for event in events:
            kind: Any = event.__class__
            if kind is yaml.ScalarEvent:
                self._value(self._scalar(event), event)
            elif kind is yaml.MappingStartEvent:
                self._open({}, event)
            elif kind is yaml.SequenceStartEvent:
                self._open([], event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close(self._stack.pop(), event)
            elif kind is yaml.AliasEvent:
                self._value(self._alias(event), event)
            else:
                break  # the document's end

    # --- Overridden

    def _error(self, problem: str, event: object) -> Exception:
        raise NotImplementedError

    def _twice(self, top: OpenValue, event: object) -> None:
        """Report a key of `top` that the mapping has already; `event`: of the value."""
        raise NotImplementedError

    def _item(self, top: OpenValue, event: object) -> None:
        """Add the last item of a list."""
        raise NotImplementedError

    # --- The same for all

    def _open(self, value: dict[Any, Any] | list[Any], event: Any) -> None:
        before = self._values
        merged_into = self._stack[-1] if self._stack and self._stack[-1].merges and self._stack[-1].keyed else None
        self._value(value, event)
        anchored = None
        if event.anchor is not None:
            anchored = self._anchors[event.anchor]
            anchored.size = None
        self._stack.append(OpenValue(value, anchored, before, merged_into))

    def _value(self, value: Any, event: Any) -> None:
        self._values += 1
        if event.anchor is not None and event.__class__ is not yaml.AliasEvent:
            self._anchors[event.anchor] = Anchored(value, 1, event)
        if not self._stack:
            self.value = value
            self.root = event
            return
        top = self._stack[-1]
        if type(top.value) is list:
            top.value.append(value)
            self._item(top, event)
        elif top.keyed:
            top.keyed = False
            self._entry(top, value, event)
        else:
            top.keyed = True
            top.key_event = event
            top.key = value if value.__class__ is str else self._key(value, event)
            # Not an alias and not quoted: those are keys of that name.
            top.merges = value == "<<" and event.__class__ is yaml.ScalarEvent and event.implicit[0]

    def _entry(self, top: OpenValue, value: object, event: object) -> None:
        mapping: Any = top.value
        if top.merges:
            if event.__class__ is yaml.AliasEvent or event.__class__ is yaml.ScalarEvent:
                self._merge(top, value, event)
            return  # a mapping or list is merged when it is whole
        if top.key in mapping:
            # A key may stand beside a merged one of the same name, once.
            if top.key not in top.inherited:
                self._twice(top, event)
            top.inherited.discard(top.key)
        mapping[top.key] = value

    def _close(self, ended: OpenValue, event: object) -> None:
        if ended.anchored is not None:
            ended.anchored.size = self._values - ended.before
        if ended.merged_into is not None:
            self._merge(ended.merged_into, ended.value, event)

    def _merge(self, top: OpenValue, value: Any, event: Any) -> None:
        """Merge at the key's place: later keys override, earlier ones are overridden, as in yaml.v2."""
        mapping: Any = top.value
        for source in reversed(value if value.__class__ is list else [value]):
            if source.__class__ is not dict:
                raise self._error(self.MERGE, event)
            top.inherited |= source.keys() - mapping.keys()
            mapping.update(source)

    def _key(self, value: Any, event: Any) -> str:
        if value.__class__ is dict or value.__class__ is list:
            raise self._error(self.KEY, event)
        event = self._origin(event)
        try:
            return key_text(resolve_plain(event.value) if event.implicit[0] else value)
        except ValueError as error:
            raise self._error(str(error), event) from error

    def _scalar(self, event: Any) -> Scalar:
        tag: str | None = event.tag
        try:
            if tag is None:
                return self._plain(event.value) if event.implicit[0] else event.value
            return self._tagged(tag, event.value)
        except ValueError as error:
            raise self._error(str(error), event) from error

    def _alias(self, event: Any) -> Any:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise self._error(self.NO_ANCHOR.format(event.anchor), event)
        # Still open: the alias stands inside its own anchor, and the value would have no end.
        if anchored.size is None:
            raise self._error(self.ITSELF.format(event.anchor), event)
        # `_value` counts one for every event; the rest of what the alias stands for comes on top.
        self._values += anchored.size - 1
        self._aliased += anchored.size
        if self._aliased > self._most_aliased:
            raise self._error(self.TOO_MANY.format(self._most_aliased), event)
        return anchored.value

    def _origin(self, event: Any) -> Any:
        """Return the event that begins the value: of an alias, its anchor's."""
        if event.__class__ is yaml.AliasEvent and event.anchor in self._anchors:
            return self._anchors[event.anchor].event
        return event

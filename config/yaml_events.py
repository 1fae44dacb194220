"""The events of a YAML text, bounded in depth before anything is built of them.

libyaml's composer calls itself for every level, without looking at the stack: 50,000 brackets end the process. Newer
ones read no further than 1,000 levels themselves, and may come to them before we do, as they read ahead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST: Final = 128
"""Levels of mappings and lists in what is meant for a person to read; an object of the API may have as many."""
LIBYAML_SAYS: Final = "exceeded maximum nesting depth"


class TooDeepError(yaml.MarkedYAMLError):
    """More levels than anybody writes; its mark is where the first one too many begins."""


def bounded_events(text: str, loader: Any, deepest: int = DEEPEST) -> Iterator[Any]:
    """The events in order, as ``yaml.parse`` gives them. Raises yaml.YAMLError, and TooDeepError for more levels than
    `deepest`, which is 1,000 at most.
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
        if error.problem != LIBYAML_SAYS:
            raise
        raise TooDeepError(problem=problem, problem_mark=error.problem_mark) from error

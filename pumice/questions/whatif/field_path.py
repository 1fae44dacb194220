"""A field of an object by its path, and what it is to be: `spec.weight=3`, `spec.tasks[name=worker].replicas=4`,
`metadata.labels["pool/x"]=fast`, `spec.taints[0]=null`.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any, Final, cast

import yaml

from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.shapes import is_list, is_mapping

_STEP: Final = re.compile(
    r'\.?(?:(?P<key>[^.\[\]=]+)|\["(?P<quoted>[^"]*)"\]|\[(?P<index>\d+)\]|\[(?P<by>[^\]=]+)=(?P<of>[^\]]*)\])'
)
EXPECTED: Final = (
    'a path and a value, such as spec.weight=3, spec.tasks[name=worker].replicas=2 or metadata.labels["a/b"]=c'
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step down: to a key of a mapping, the place `index` of a list, or the element whose `by` is `of`."""

    key: str = ""
    index: int = -1
    by: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What stands at a path; None takes it away."""

    path: str
    steps: tuple[Step, ...]
    value: Any

    def on(self, obj: Object) -> Object:
        """The object with it. Raises InputError where the path leads nowhere."""
        after = copy.deepcopy(obj)
        place: Any = after
        for step, following in zip(self.steps, self.steps[1:], strict=False):
            place = self._down(place, step, following)
        self._put(place, self.steps[-1])
        return after

    def _down(self, place: Any, step: Step, following: Step) -> Any:
        where = self._where(place, step)
        if isinstance(where, int):
            return place[where]
        if place.get(where) is None:
            place[where] = {} if following.key else []
        return place[where]

    def _put(self, place: Any, step: Step) -> None:
        if step.index >= 0 and is_list(place) and step.index == len(place) and self.value is not None:
            place.append(self.value)
            return
        where, there = self._where(place, step), cast("dict[str | int, Any]", place)
        if self.value is not None:
            there[where] = self.value
        elif isinstance(where, int):
            del there[where]
        else:
            there.pop(where, None)

    def _where(self, place: Any, step: Step) -> str | int:
        if step.key:
            if not is_mapping(place):
                raise self._lost(f"{step.key!r} is asked of what has no fields")
            return step.key
        if not is_list(place):
            raise self._lost("it asks for an element of what is no list")
        elements = place
        if step.index >= 0:
            if step.index >= len(elements):
                raise self._lost(f"there are {len(elements)} elements, no number {step.index}")
            return step.index
        found = [i for i, each in enumerate(elements) if is_mapping(each) and str(each.get(step.by)) == step.of]
        if not found:
            raise self._lost(f"no element has {step.by}={step.of}")
        return found[0]

    def _lost(self, why: str) -> InputError:
        return InputError(why, path=self.path)


def assignment_of(text: str) -> Assignment:
    """Of `PATH=VALUE`; the value is YAML. Raises InputError."""
    steps, position = list[Step](), 0
    while position < len(text) and text[position] != "=":
        match = _STEP.match(text, position)
        if match is None:
            raise InputError(f"expected {EXPECTED}, was {text!r}")
        key = match["key"] if match["key"] is not None else match["quoted"] or ""
        index = int(match["index"]) if match["index"] is not None else -1
        steps.append(Step(key, index, match["by"] or "", match["of"] or ""))
        position = match.end()
    if not steps or position >= len(text):
        raise InputError(f"expected {EXPECTED}, was {text!r}")
    try:
        value = yaml.safe_load(text[position + 1 :])
    except yaml.YAMLError as error:
        raise InputError(f"the value is no YAML: {error}", path=text[:position]) from error
    return Assignment(text[:position], tuple(steps), value)

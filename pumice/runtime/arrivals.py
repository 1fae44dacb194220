# SPDX-License-Identifier: Apache-2.0
"""Objects that come later: `pumice.dev/arrival`, a time after the beginning of the run (`90s`, `1h30m`) or a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.config.durations import duration_s
from pumice.core.messages.commands import Announced
from pumice.core.objects.metadata import Object, is_list, is_mapping, parse_time, text_map
from pumice.storage import codec

ARRIVAL: Final = "pumice.dev/arrival"


@dataclass(slots=True)
class Arriving:
    """Objects divided by their arrival. `problems`: objects whose annotations are not a time, which never come, and
    why.
    """

    now: list[Object] = field(default_factory=list[Object])
    later: list[Announced] = field(default_factory=list[Announced])
    problems: list[tuple[Object, str]] = field(default_factory=list[tuple[Object, str]])


def part(objects: Sequence[Object], began: float) -> Arriving:
    """Divide objects by their arrival. `began`: seconds since the epoch. Objects without an arrival, or with a past
    one, come immediately.
    """
    found = Arriving()
    for obj in objects:
        said = arriving(obj)
        at = None if said is None else arrival_at(said, began)
        if said is not None and at is None:
            why = f"{ARRIVAL}: expected a duration such as 1h30m or a time such as 2026-01-31T12:00:00Z, was {said!r}"
            found.problems.append((obj, why))
        elif at is None or at <= began:
            found.now.append(obj)
        else:
            found.later.append(Announced(at, codec.pack(obj)))
    return found


def arriving(obj: Object) -> str | None:
    """Return an object's arrival annotation, None for none; objects that a server has stored have arrived."""
    if obj["metadata"].get("resourceVersion"):
        return None
    return text_map(obj["metadata"].get("annotations")).get(ARRIVAL)


def arrival_at(said: str, began: float) -> float | None:
    """Return the arrival in seconds since the epoch; None for a text that is not a time."""
    after = duration_s(said)
    if after is not None:
        return began + after
    try:
        return parse_time(said)
    except ValueError:
        return None


def hastened(objects: Sequence[Object], times: float) -> Sequence[Object]:
    """Return the objects with all that is said of arrivals and durations so many times as soon."""
    return objects if times == 1.0 else [_hastened(obj, times) for obj in objects]


def _hastened(value: object, times: float) -> Any:
    if is_list(value):
        return [_hastened(one, times) for one in value]
    if not is_mapping(value):
        return value
    # At any depth: templates of pods have annotations as well.
    return {
        key: _sooner(one, times) if key in (ARRIVAL, DURATION) else _hastened(one, times) for key, one in value.items()
    }


def _sooner(said: object, times: float) -> Any:
    seconds = duration_s(said) if isinstance(said, str) else None
    return said if seconds is None else duration_text(seconds / times)


def duration_text(seconds: float) -> str:
    """Return the duration in the form that Go writes and reads, to the millisecond."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"

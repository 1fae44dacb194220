"""Events: when last, what kind, why, about whom."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import since
from pumice.actors.gateway.tables.column import Printer, TableColumn, text
from pumice.actors.gateway.tables.words import count, name_of
from pumice.core.objects.metadata import Object, section


def _cells(event: Object, now: float) -> list[Any]:
    about = section(event, "involvedObject")
    first = since(event.get("firstTimestamp") or event.get("eventTime"), now)
    last, times = _last(event, first, now)
    kind = str(about.get("kind") or "").lower()
    return [
        last,
        event.get("type") or "",
        event.get("reason") or "",
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath") or "",
        _source(event),
        str(event.get("message") or "").strip(),
        first,
        times,
        name_of(event),
    ]


def _last(event: Object, first: str, now: float) -> tuple[str, int]:
    """When it was last seen, and how often: a series counts for itself, a single event once."""
    series = event.get("series")
    if series:
        return since(series.get("lastObservedTime"), now), count(series, "count")
    stamp = event.get("lastTimestamp")
    return (since(stamp, now) if stamp else first), count(event, "count") or 1


def _source(event: Object) -> str:
    source = section(event, "source")
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)


EVENTS: Final = Printer(
    (
        text("Last Seen", "Time since it was last seen."),
        text("Type", "Normal or Warning."),
        text("Reason", "Why, in one word."),
        text("Object", "What it is about."),
        text("Subobject", "The part of the object that it is about.", wide=True),
        text("Source", "Who says so.", wide=True),
        text("Message", "What happened."),
        text("First Seen", "Time since it was first seen.", wide=True),
        text("Count", "How often it was seen.", wide=True),
        TableColumn("Name", format="name", priority=1, description="The event's own name."),
    ),
    _cells,
)

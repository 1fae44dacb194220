# SPDX-License-Identifier: Apache-2.0
"""Amounts in the units that people write: `500m`, `8Gi`, `2 nvidia.com/gpu`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pumice.core.messages.queue_tables import SCALARS
from pumice.core.resources.lists import is_counted_whole

BYTES: Final = (("Ti", 2.0**40), ("Gi", 2.0**30), ("Mi", 2.0**20), ("Ki", 2.0**10))


def amounts_of(figures: Mapping[str, float], what: str) -> str:
    """Return one of a queue's amounts from its gauges (`allocated_milli_cpu`, …): "4 cpu, 8Gi memory"; zeroes
    left out.
    """
    found: dict[str, float] = {}
    for name, value in figures.items():
        resource = name.removeprefix(f"{what}_")
        if resource != name:
            found[{"milli_cpu": "cpu", "memory_bytes": "memory"}.get(resource, resource).removeprefix(SCALARS)] = value
    return listed(found)


def listed(amounts: Mapping[str, float]) -> str:
    """Return amounts by resource in the scheduler's units as text: "4 cpu, 8Gi memory"; zeroes left out."""
    return ", ".join(amount(resource, value) for resource, value in amounts.items() if value)


def amount(resource: str, value: float) -> str:
    """Format so much of a resource in the scheduler's units (memory in bytes, pods and volumes whole, all others in
    thousandths) as people write it: `1.4 cpu`, `8Gi memory`, `60Gi ephemeral-storage`, `1.5 nvidia.com/gpu`, `1 pod`.
    """
    text = figure(resource, value)
    return counted(text, "pod") if resource == "pods" else f"{text} {resource}"


def figure(resource: str, value: float) -> str:
    """Format the same without the name of the resource: `1.4`, `8Gi`."""
    if resource == "memory":
        return byte_count(value)
    if is_counted_whole(resource):
        return f"{value:.12g}"
    if resource == "ephemeral-storage" or resource.startswith("hugepages-"):
        return byte_count(value / 1000)
    return milli(value) if resource == "cpu" else _plain(value / 1000)


def counted(count: float | str, noun: str) -> str:
    """Format a count with its noun: `1 node`, `3 nodes`."""
    return f"{count} {noun}" if str(count) == "1" else f"{count} {noun}s"


def short_quantity(text: str) -> str:
    """Return a quantity with thousandths from one on as a decimal number, which is the same: `233.8` for `233800m`."""
    number = text.removesuffix("m")
    return milli(int(number)) if number != text and number.isdecimal() else text


def milli(value: float) -> str:
    """Format thousandths: `500m`, `2`, `2.5`."""
    return f"{value:g}m" if 0 < abs(value) < 1000 else _plain(value / 1000)


def _plain(value: float) -> str:
    """Return a number to three decimals, without an exponent."""
    return f"{round(value, 3):.12g}"


def byte_count(value: float) -> str:
    """Return bytes in the largest unit that is not above them, to three digits: `8Gi`, `1.5Gi`, `512Mi`."""
    for unit, size in BYTES:
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}" if abs(value) < 1000 * size else f"{value / size:.0f}{unit}"
    return f"{value:g}"


def time_span(seconds: float) -> str:
    """Return seconds in the two largest units that they fill: `0.4s`, `40s`, `3m20s`, `1h5m`, `2d3h`."""
    if abs(seconds) < 59.5:
        return f"{seconds:.2g}s"
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole % 86400 // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s")]
    first = next((place for place, (count, _) in enumerate(parts) if count), len(parts) - 1)
    shown = parts[first : first + 2]
    return "".join(f"{count}{unit}" for count, unit in shown if count) or "0s"


# --- Moments as people write them and as the core takes them


DEFAULT_NOW: Final = "2026-11-21T02:00:00Z"
"""The clock of a case that names none; only "long ago" and "far ahead" matter there."""

BEGAN: Final = 1_577_836_800.0
"""2020-01-01T00:00:00Z, when a workload begins that names no start: the same in every run, so that scores repeat.
"""


def parse_moment(text: str) -> float:
    """Return seconds since the epoch of an RFC 3339 text or a plain number; ValueError for another text."""
    try:
        return float(text)
    except ValueError:
        pass
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"expected a time zone (for example a trailing Z) in {text!r}")
    return moment.timestamp()


def format_moment(seconds: float) -> str:
    """Return an API timestamp: RFC 3339, UTC, second resolution."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

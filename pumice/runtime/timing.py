"""How long cycles took, out of the metrics that the system keeps anyway."""

from __future__ import annotations

from typing import Final

LATENCY: Final = "volcano_e2e_scheduling_latency_milliseconds"


def mean_cycle_s(exposition: bytes) -> float:
    """Mean seconds of a cycle from snapshot to written statuses; 0.0 before the first one."""
    values = {name: float(value) for name, _, value in map(_split, exposition.decode().splitlines())}
    count = values.get(f"{LATENCY}_count", 0.0)
    return values.get(f"{LATENCY}_sum", 0.0) / count / 1000 if count else 0.0


def _split(line: str) -> tuple[str, str, str]:
    if line.startswith("#"):
        return "", "", "0"
    name, space, value = line.rpartition(" ")
    return name, space, value or "0"

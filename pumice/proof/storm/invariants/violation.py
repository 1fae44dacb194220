"""What a storm has found: a broken invariant, and how it ends the storm."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant by name, in words, at a virtual time."""

    invariant: str
    words: str
    at: float = 0.0


class ViolationFoundError(Exception):
    """Ends the storm."""

    def __init__(self, violation: Violation) -> None:
        self.violation = violation
        super().__init__(f"{violation.invariant}: {violation.words}")

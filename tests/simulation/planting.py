"""Putting a defect in for as long as a test takes, and what forgotten calls do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Plant = Callable[[pytest.MonkeyPatch], None]


def replace(owner: Any, name: str, new: Any) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner, name, new)

    return plant


def wrap(owner: Any, name: str, make: Callable[[Any], Any]) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner, name, make(getattr(owner, name)))

    return plant


def together(*plants: Plant) -> Plant:
    """A defect that nobody else makes good."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for each in plants:
            each(patch)

    return plant


def nothing(*_: Any, **__: Any) -> None:
    """What a forgotten call does."""


def always(*_: Any, **__: Any) -> bool:
    return True


def asks_nothing(*_: Any) -> tuple[()]:
    return ()

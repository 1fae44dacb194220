"""Fixtures of the tests of the application."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.fixture(autouse=True, scope="session")
def what_was_frozen_stays_so() -> Generator[None]:
    """Commands that unfreeze what they loaded would have the collector look through all that is collected of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "unfreeze", lambda: None)
        yield

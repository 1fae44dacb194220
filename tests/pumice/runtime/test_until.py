"""When a run ends."""

from __future__ import annotations

import pytest

from pumice.runtime.waiting import Until, parse_until


@pytest.mark.parametrize(
    ("text", "until"),
    [
        (None, Until("forever")),
        ("idle", Until("idle")),
        ("1.5s", Until("seconds", 1.5)),
        ("1h30m", Until("seconds", 5400.0)),
        ("cycles=7", Until("cycles", 7)),
    ],
)
def test_reading(text: str | None, until: Until) -> None:
    assert parse_until(text) == until


@pytest.mark.parametrize("text", ["", "soon", "cycles=", "cycles=x", "5"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_until(text)

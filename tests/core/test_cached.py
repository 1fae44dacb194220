"""What is made once: when it is asked for, for each holder, and again only when the holder forgets it."""

from __future__ import annotations

from pumice.core.cached import cached


class Counted:
    """Counts how often it makes its number."""

    def __init__(self) -> None:
        self.made = 0

    @cached
    def number(self) -> int:
        """How many were made, this one included."""
        self.made += 1
        return self.made


def test_it_is_made_when_asked_for_and_kept() -> None:
    counted = Counted()
    assert counted.made == 0
    assert [counted.number, counted.number] == [1, 1]
    assert Counted().number == 1, "each holder has its own"


def test_who_forgets_it_has_it_made_again() -> None:
    counted = Counted()
    assert counted.number == 1
    vars(counted).pop("number")
    assert counted.number == 2


def test_it_says_what_it_is() -> None:
    assert Counted.number.__doc__ == "How many were made, this one included."

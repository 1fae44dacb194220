"""Regular expressions from outside: Go's syntax, and an end to every search."""

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.kube.patterns import LONGEST, PatternError, Patterns, pattern_of


def test_what_takes_other_engines_for_ever_takes_no_time() -> None:
    began = process_time()
    assert not pattern_of("^(a+)+$").is_in("a" * 60_000 + "!")
    assert not pattern_of("^(([a-z])+.)+[A-Z]([a-z])+$").is_in("a" * 60_000)
    assert process_time() - began < 1


@pytest.mark.parametrize("bad", ["(", "(?=a)", "(?!a)", r"(a)\1", r"\Z", "a{1001}", "\ud800"])
def test_what_go_refuses_is_refused(bad: str) -> None:
    with pytest.raises(PatternError):
        pattern_of(bad)


@pytest.mark.parametrize(
    "large", [r"\pL{1000}", "x" * (LONGEST + 1), "(" + "|".join(f"x{n}y" for n in range(690)) + "){9}"]
)
def test_large_ones_are_refused(large: str) -> None:
    with pytest.raises(PatternError, match=r"large|longer"):
        pattern_of(large)


def test_too_long_a_text_is_an_error_not_an_answer() -> None:
    with pytest.raises(PatternError, match="a text of 40000 bytes is too long for a pattern of"):
        pattern_of("(a|b)*a(a|b){200}c").is_in("ab" * 20_000)


def test_letters_are_letters_not_bytes() -> None:
    assert pattern_of("^é{2}$").is_in("éé")
    assert pattern_of("^.$").is_in("🙂")
    assert not pattern_of("^.$").is_in("ab")
    assert not pattern_of("x").is_in("\ud800")


PATTERNS = st.lists(st.sampled_from(("a", "b", "[ab]", ".", "a*", "(ab)?", "b+", "^", "$", "a|b", "[^a]")), max_size=6)


@given(PATTERNS, st.text("abc", max_size=8))
def test_simple_ones_mean_what_they_mean_elsewhere(parts: list[str], text: str) -> None:
    pattern = "".join(parts)
    assert pattern_of(pattern).is_in(text) == (re.search(pattern, text) is not None)


@given(st.lists(PATTERNS, max_size=8), st.lists(st.text("abc", max_size=8), max_size=4))
def test_several_in_one_pass_find_what_each_finds(several: list[list[str]], texts: list[str]) -> None:
    patterns = [pattern_of(text) for parts in several if _compiles(text := "".join(parts))]
    together = Patterns(patterns)
    for text in texts:
        assert together.those_in(text) == [place for place, each in enumerate(patterns) if each.is_in(text)]


def _compiles(text: str) -> bool:
    try:
        pattern_of(text)
    except PatternError:
        return False
    return True


def test_where_one_pass_has_no_room_each_is_tried() -> None:
    """Alone each of them needs most of the room there is."""
    dear = [pattern_of(f"(a|b)*a(a|b){{{number}}}c") for number in range(380, 412)]
    text = "ab" * 200 + "a" + "b" * 400 + "c"
    assert Patterns(dear).those_in(text) == [place for place, each in enumerate(dear) if each.is_in(text)] != []

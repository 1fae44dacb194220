"""Texts of others, made fit for a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.config.printable import printable


def test_what_moves_the_cursor_is_spelled_out() -> None:
    assert printable("a\x1b[31mb\nc\r\x9b\u202e") == "a\\x1b[31mb\\nc\\r\\x9b\\u202e"
    assert printable("zwei\nZeilen\t!", keep="\n\t") == "zwei\nZeilen\t!"
    assert printable("Grüße, 世界") == "Grüße, 世界"


@given(st.text())
def test_nothing_else_is_left(text: str) -> None:
    found = printable(text)
    assert found.isprintable()
    assert printable(found) == found

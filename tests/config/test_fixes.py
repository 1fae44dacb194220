"""The switches that mend defects: named once, described, and the page about them up to date."""

from __future__ import annotations

import re

from docs.making import write_fixes
from pumice.config.fixes import BUILT_FIXES, FIXES, KNOWN_FIXES


def test_names_are_distinct_and_plain() -> None:
    assert len(set(KNOWN_FIXES)) == len(FIXES)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in KNOWN_FIXES)


def test_every_switch_says_what_it_is() -> None:
    for fix in FIXES:
        assert fix.where
        assert fix.volcano.endswith(".")
        assert fix.pumice.endswith(".")


def test_unbuilt_ones_are_marked() -> None:
    page = write_fixes.page()
    for name in KNOWN_FIXES:
        assert (f"`{name}` (not supported yet)" in page) == (name not in BUILT_FIXES)


def test_the_page_is_up_to_date() -> None:
    assert write_fixes.PAGE.read_text(encoding="utf-8") == write_fixes.page()

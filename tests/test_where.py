"""Which tests reach a source file, by what imports what."""

from __future__ import annotations

import ast

import pytest

from tests.kit import source
from tests.where import imports, mirrored, steps_to

KNOWN = {
    "pumice.core.a": {"pumice/b.py", "tests/core/test_a.py", "tests/kit/a.py"},
    "pumice.b": {"tests/pumice/test_b.py", "pumice/c.py"},
    "pumice.c": {"tests/pumice/test_c.py"},
    "tests.kit.a": {"tests/core/test_kit.py"},
}


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("core/a.py", {"tests/core/test_a.py": 1, "tests/core/test_kit.py": 1, "tests/pumice/test_b.py": 2}),
        ("pumice/c.py", {"tests/pumice/test_c.py": 1}),
        ("pumice/d.py", {}),
    ],
)
def test_steps_to_a_file_are_those_of_its_importers_outside_the_tests(path: str, steps: dict[str, int]) -> None:
    assert steps_to(path, KNOWN) == steps


def test_steps_to_a_file_go_on_until_a_test_is_found() -> None:
    known = {"pumice.core.a": {"pumice/b.py"}, "pumice.b": {"pumice/c.py"}, "pumice.c": {"tests/test_c.py"}}
    assert steps_to("core/a.py", known) == {"tests/test_c.py": 3}


def test_imports_of_a_module_are_found_in_every_form() -> None:
    tree = ast.parse("import a.b\ndef f():\n    from c import d\n    from . import e\n")
    assert list(imports("core/x/y.py", tree)) == ["a.b", "c", "c.d", "pumice.core.x", "pumice.core.x.e"]


def test_own_test_of_a_file_has_its_path_below_tests() -> None:
    assert mirrored("core/state/view.py") == "tests/core/state/test_view.py"
    assert (source.ROOT / mirrored("core/state/view.py")).exists()

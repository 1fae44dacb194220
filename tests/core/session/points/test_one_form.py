"""A rule about nodes is stated once: what is said of many rows and of one row is never written twice."""

import ast
from typing import Final

import pytest

from tests.kit import source

FORM: Final = {"__call__", "one"}
BOTH: Final = {
    "core/plugins/device_plugin.py",  # states no rule: passes on what families say of rows, and remember of one
    "core/plugins/user.py",  # passes on what a user's plugin says
}


def both_in(tree: ast.Module) -> list[str]:
    """Classes that define what is said of many rows as well as of one."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    methods = {each.name: {m.name for m in each.body if isinstance(m, ast.FunctionDef)} for each in classes}
    return [name for name, defined in methods.items() if defined >= FORM]


@pytest.mark.parametrize("folder", ["core", "pumice", "examples"])
def test_no_rule_about_nodes_is_stated_twice(folder: str) -> None:
    found = {
        f"{path}: {name}"
        for path, tree in source.modules(folder)
        if path not in BOTH and not path.startswith("core/session/points/")
        for name in both_in(tree)
    }
    assert found == set()


def test_who_states_it_twice_is_found() -> None:
    twice = "class A:\n  def __call__(self): ...\n  def one(self): ...\nclass B:\n  def __call__(self): ..."
    assert both_in(ast.parse(twice)) == ["A"]

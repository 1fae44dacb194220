"""Edits of a scheduler.conf: each reaches every tier, and what the configuration does not have is an error."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.config.errors import ConfigError
from pumice.core.configuration import parse_scheduler_config
from pumice.questions.evaluation.edited import EditedConfig

TEXT = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: priority
- plugins:
  - name: binpack
    arguments:
      binpack.weight: 3
  - name: drf
"""
CONFIG_MAP = "kind: ConfigMap\nmetadata: {name: c}\ndata:\n  volcano-scheduler.conf: |\n" + "".join(
    f"    {line}\n" for line in TEXT.splitlines()
)


@pytest.mark.parametrize("text", [TEXT, CONFIG_MAP])
def test_all_edits_are_in_the_text_that_is_written(text: str) -> None:
    edited = EditedConfig(text, "x")
    edited.set_actions("allocate, backfill")
    edited.set_argument("binpack", "binpack.cpu", 5, "p")
    edited.set_flag("drf", "enablePreemptable", False, "p")
    edited.drop("priority", "p")
    edited.reorder(1, ["drf", "binpack"], "p")
    config = parse_scheduler_config(edited.text, source="x")
    assert list(config.actions) == ["allocate", "backfill"]
    assert [[plugin.name for plugin in tier.plugins] for tier in config.tiers] == [["gang"], ["drf", "binpack"]]
    assert edited.plugins == ["gang", "drf", "binpack"]
    assert "binpack.weight: 3" in edited.text
    assert "binpack.cpu: 5" in edited.text
    assert "enablePreemptable: false" in edited.text


def test_an_edit_leaves_other_edits_of_the_same_text_alone() -> None:
    EditedConfig(TEXT, "x").drop("gang", "p")
    assert EditedConfig(TEXT, "x").plugins == ["gang", "priority", "binpack", "drf"]


NO_PLUGIN = "here: the configuration has no plugin 'sla'"


@pytest.mark.parametrize(
    ("edit", "arguments", "message"),
    [
        ("set_argument", ("sla", "x", 1), NO_PLUGIN),
        ("set_flag", ("sla", "x", True), NO_PLUGIN),
        ("drop", ("sla",), NO_PLUGIN),
        ("demand", ("sla",), NO_PLUGIN),
        ("reorder", (2, ["gang"]), "here: the configuration has no tier 2"),
        ("reorder", (-1, ["gang"]), "here: the configuration has no tier -1"),
        ("reorder", (0, ["gang"]), "here: tier 0 does not have just the plugins gang"),
    ],
)
def test_an_edit_of_what_is_missing_names_its_place(edit: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        getattr(EditedConfig(TEXT, "x"), edit)(*arguments, "here")


@pytest.mark.parametrize("text", ["", "- a\n", "actions: [\n"])
def test_a_text_that_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        EditedConfig(text, "x")

"""Edits of a scheduler.conf: each reaches every tier, and what the configuration does not have is an error."""

from __future__ import annotations

from collections.abc import Callable

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


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda edited: edited.set_argument("sla", "x", 1, "here"), "here: the configuration has no plugin 'sla'"),
        (lambda edited: edited.set_flag("sla", "x", True, "here"), "here: the configuration has no plugin 'sla'"),
        (lambda edited: edited.drop("sla", "here"), "here: the configuration has no plugin 'sla'"),
        (lambda edited: edited.demand("sla", "here"), "here: the configuration has no plugin 'sla'"),
        (lambda edited: edited.reorder(2, [], "here"), "here: the configuration has no tier 2"),
        (lambda edited: edited.reorder(-1, [], "here"), "here: the configuration has no tier -1"),
        (lambda edited: edited.reorder(0, ["gang"], "here"), "here: tier 0 does not have just the plugins gang"),
    ],
)
def test_an_edit_of_what_is_missing_names_its_place(edit: Callable[[EditedConfig], None], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        edit(EditedConfig(TEXT, "x"))


@pytest.mark.parametrize("text", ["", "- a\n", "actions: [\n"])
def test_a_text_that_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        EditedConfig(text, "x")

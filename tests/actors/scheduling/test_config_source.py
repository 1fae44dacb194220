"""A text is parsed once for all systems, and no two systems that were told something else share the outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.actors.scheduling.config_source import ConfigSource
from pumice.config.errors import ConfigError, IgnoredFileError
from pumice.config.load import BUILT_IN
from pumice.core.plugins import PLUGINS

TEXT = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: unheard-of}]}]\n'


def test_systems_of_one_text_share_its_configuration() -> None:
    one, other = (ConfigSource("") for _ in range(2))
    assert one.loaded.config is other.loaded.config


@pytest.mark.parametrize("first", ["strict", "lenient"])
def test_what_one_system_is_allowed_another_is_not(first: str) -> None:
    for each in (first, "strict", "lenient"):
        if each == "strict":
            with pytest.raises(ConfigError, match="unheard-of"):
                ConfigSource(TEXT)
        else:
            assert ConfigSource(TEXT, lenient=True).loaded.config.warnings


def test_installed_plugin_counts_for_systems_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="unheard-of"):
        ConfigSource(TEXT)
    monkeypatch.setitem(PLUGINS, "unheard-of", PLUGINS["gang"])
    assert [option.name for option in ConfigSource(TEXT).loaded.config.tiers[0].plugins] == ["gang", "unheard-of"]


def test_an_error_is_told_each_time_and_names_its_source() -> None:
    source = ConfigSource("", offers=True)
    for name in ("one", "other", "one"):
        assert source.check("actions: 5", name).startswith(name)


def test_a_text_changes_only_where_another_one_may_be_offered(tmp_path: Path) -> None:
    """Nobody looks for a change otherwise."""
    path = tmp_path / "scheduler.conf"
    path.write_text("actions: allocate\n")
    assert not ConfigSource("").can_change
    assert ConfigSource("", offers=True).can_change
    assert ConfigSource("", path=path).can_change


def test_a_file_that_does_not_change_is_taken_or_refused_once(tmp_path: Path) -> None:
    """It is looked at before every cycle: a bad one would fill the log, and the journal."""
    path = tmp_path / "scheduler.conf"
    path.write_text("actions: allocate\n")
    source = ConfigSource("", path=path)
    assert source.look() is None
    path.write_text("actions: alocate\n")
    with pytest.raises(ConfigError, match="alocate"):
        source.look()
    assert source.look() is None
    path.write_text("actions: enqueue, allocate\n")
    loaded = source.look()
    assert loaded is not None
    assert source.look() is None
    assert source.loaded is loaded


IGNORED = 'actions: "enqueue, preemptall"\ntiers: [{plugins: [{name: gang}]}]\n'


def test_file_with_an_unknown_action_leaves_the_built_in_default_at_first() -> None:
    loaded = ConfigSource(IGNORED, lenient=True).loaded
    assert loaded.config.actions == ("enqueue", "allocate", "backfill")
    assert loaded.text == BUILT_IN
    assert "the whole file is ignored" in loaded.config.warnings[0]


def test_file_with_an_unknown_action_leaves_the_one_before_it_later(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text("actions: allocate\n")
    source = ConfigSource("", path=path, lenient=True)
    path.write_text(IGNORED)
    with pytest.raises(IgnoredFileError, match="preemptall"):
        source.look()
    assert source.loaded.config.actions == ("allocate",)


def test_changed_plugin_is_said_to_need_a_restart_when_the_file_is_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLUGINS, "mine", PLUGINS["gang"])
    path, changed = tmp_path / "scheduler.conf", list[str]()
    path.write_text(FOR_MINE)
    source = ConfigSource("", path=path, lenient=True, user_plugins={"mine": "1"}, changed_plugins=lambda: changed)
    changed += ["mine", "other"]
    path.write_text(f"{FOR_MINE}# again\n")
    source.look()
    (record,) = caplog.records
    assert "files of users' plugins have changed (mine)" in record.getMessage()
    assert "until the process is started again" in record.getMessage()


FOR_MINE = "actions: allocate\ntiers: [{plugins: [{name: mine}]}]\n"

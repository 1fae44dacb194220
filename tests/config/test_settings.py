"""Pumice's own settings: defaults, ranges, precedence, and the tables in the README."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

import pumice.config
from docs.making.list_volcano import actions_table, flags_table
from pumice.config.errors import ConfigError, NotBuiltError, RemovedSettingError, UnknownNameError, WrongTypeError
from pumice.config.fixes import BUILT_FIXES, KNOWN_FIXES
from pumice.config.pumice_arguments import PumiceArguments, settings
from pumice.config.schema import SchedulerConfig
from pumice.config.settings import (
    DURATIONS,
    ConfigMapName,
    Duration,
    ProcessSettings,
    config_map_of,
    process_settings,
    read_process_settings,
)
from pumice.core.configuration import parse_scheduler_config

README = Path(pumice.config.__file__).parent / "README.md"


def parsed(arguments: str, *, lenient: bool = False) -> SchedulerConfig:
    text = f"actions: allocate\nconfigurations:\n- name: pumice\n  arguments: {arguments}\n"
    return parse_scheduler_config(text, source="s.conf", lenient=lenient)


def read(arguments: str) -> PumiceArguments:
    return parsed(arguments).pumice


@pytest.mark.parametrize("table", [flags_table, actions_table])
def test_the_readme_has_the_tables(table: Any) -> None:
    assert table() in README.read_text("utf-8")


def test_the_settings_stand_on_one_page() -> None:
    text = README.read_text("utf-8")
    assert "](../docs/reference/settings.md)" in text
    assert not [key for key in settings() if f"| `{key}` |" in text]


class TestPumiceArguments:
    def test_defaults(self) -> None:
        assert read("{}") == read("") == PumiceArguments()
        assert PumiceArguments().schedule_period_s == 0.1

    def test_all_of_them(self) -> None:
        found = read(
            "{ties: hash, schedulePeriod: 1.5s, percentageOfNodesToFind: 0, minimumFeasibleNodes: 7, bindWorkers: 8,"
            " minimumPercentageOfNodesToFind: 1, evictWorkers: 3, dryRunWorkers: 16,"
            " ignoredProvisioners: [a], checkpointEvery: 9, timeZone: Asia/Tokyo}"
        )
        assert msgspec.structs.astuple(found) == ("hash", (), 1.5, 0, 7, 1, ("a",), "Asia/Tokyo", 8, 3, 16, 9)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("{bindWorkers: 0}", "bindWorkers: expected an integer from 1 to 1024, was 0"),
            ("{bindWorkers: '4'}", "bindWorkers: expected an integer from 1 to 1024, was '4'"),
            ("{bindWorkers: true}", "bindWorkers: expected an integer from 1 to 1024, was true"),
            ("{ties: coin}", "ties: expected documented or hash, was 'coin'"),
            ("{schedulePeriod: 5}", "schedulePeriod: expected a duration from 1ms to 1h, such as 100ms or 1.5s, was 5"),
            (
                "{schedulePeriod: 2h}",
                "schedulePeriod: expected a duration from 1ms to 1h, such as 100ms or 1.5s, was '2h'",
            ),
            ("{percentageOfNodesToFind: 101}", "percentageOfNodesToFind: expected an integer from 0 to 100, was 101"),
            ("{fix: x}", "fix: expected a list of names, was 'x'"),
            (
                "{timeZone: Mars/Olympus}",
                "timeZone: expected the IANA name of a time zone, such as Europe/Berlin, was 'Mars/Olympus'",
            ),
            (
                "{timeZone: ../zone}",
                "timeZone: expected the IANA name of a time zone, such as Europe/Berlin, was '../zone'",
            ),
            ("{timeZone: 2}", "timeZone: expected the IANA name of a time zone, such as Europe/Berlin, was 2"),
        ],
    )
    def test_wrong_values(self, arguments: str, message: str) -> None:
        with pytest.raises(WrongTypeError) as caught:
            read(arguments)
        assert str(caught.value) == f"s.conf:4: configurations[0].arguments.{message}"

    def test_unknown_ones(self) -> None:
        with pytest.raises(
            UnknownNameError, match="unknown setting of pumice 'bindWorker', did you mean 'bindWorkers'"
        ):
            read("{bindWorker: 1}")
        with pytest.raises(UnknownNameError, match="unknown fix 'everything'"):
            read("{fix: [everything]}")

    def test_a_setting_that_went_is_named_and_where_it_is_ignored_is_warned_of(self) -> None:
        with pytest.raises(RemovedSettingError) as caught:
            read("{dryRunProcesses: 2}")
        assert str(caught.value) == (
            "s.conf:4: configurations[0].arguments.dryRunProcesses: this setting is gone"
            " (dry runs in processes were slower than in one, so all are made in this one): remove it"
        )
        found = parsed("{dryRunProcesses: 2}", lenient=True)
        assert found.pumice == PumiceArguments()
        assert [warning.partition(" (")[0] for warning in found.warnings] == [
            "s.conf:4: configurations[0].arguments.dryRunProcesses: this setting is gone"
        ]

    @pytest.mark.parametrize("fix", KNOWN_FIXES)
    def test_fixes(self, fix: str) -> None:
        if fix in BUILT_FIXES:
            assert read(f"{{fix: [{fix}]}}").fix == (fix,)
        else:
            with pytest.raises(NotBuiltError, match=rf"arguments\.fix\[0\]: the fix '{fix}' is not supported yet"):
                read(f"{{fix: [{fix}]}}")

    def test_every_setting_is_described(self) -> None:
        for setting in settings().values():
            assert setting.description.endswith(".")
            assert setting.expected


class TestProcessSettings:
    def test_flag_over_environment_over_default(self) -> None:
        environ = {"PUMICE_DB": "env.db", "PUMICE_SEED": "7", "PUMICE_LENIENT": "true", "PUMICE_HTTP": "", "HOME": "x"}
        found = read_process_settings({"db": "flag.db", "seed": None}, environ)
        assert found == ProcessSettings(db="flag.db", seed=7, lenient=True)

    def test_names_follow_from_the_field(self) -> None:
        setting = process_settings()["log_level"]
        assert (setting.flag, setting.variable, setting.default) == ("--log-level", "PUMICE_LOG_LEVEL", "warning")

    @pytest.mark.parametrize(
        ("flags", "environ", "message"),
        [
            ({"backend": "curio"}, {}, "--backend: expected asyncio or trio, was 'curio'"),
            (
                {},
                {"PUMICE_HTTP": "80"},
                "environment: PUMICE_HTTP: expected HOST:PORT, such as 127.0.0.1:8080, was '80'",
            ),
            ({}, {"PUMICE_SEED": "-1"}, "environment: PUMICE_SEED: expected an integer of at least 0, was '-1'"),
            ({"dbb": "x"}, {}, "unknown setting 'dbb', did you mean 'db'?"),
        ],
    )
    def test_errors_name_who_said_it(self, flags: dict[str, object], environ: dict[str, str], message: str) -> None:
        with pytest.raises(ConfigError) as caught:
            read_process_settings(flags, environ)
        assert str(caught.value) == message

    @pytest.mark.parametrize("until", ["idle", "30s", "1.5s", "1h30m", "cycles=3"])
    def test_until(self, until: str) -> None:
        assert read_process_settings({"until": until}, {}).until == until

    @pytest.mark.parametrize("until", ["cycle=3", "30", "forever", "cycles="])
    def test_until_refused(self, until: str) -> None:
        with pytest.raises(WrongTypeError):
            read_process_settings({"until": until}, {})


def test_a_configuration_of_the_cluster_is_named_by_two_names() -> None:
    assert config_map_of(None) is None
    assert config_map_of("scheduler.conf") is None
    assert config_map_of("configmap:kube-system/mine") == ConfigMapName("kube-system", "mine")


@pytest.mark.parametrize("half", ["configmap:", "configmap:mine", "configmap:/mine", "configmap:a/b/c"])
def test_half_a_name_of_a_config_map_is_refused(half: str) -> None:
    with pytest.raises(WrongTypeError, match="configmap:NAMESPACE/NAME"):
        config_map_of(half)


def test_every_setting_that_is_a_duration_is_listed() -> None:
    _, duration = get_args(Duration)
    hints = get_type_hints(ProcessSettings, include_extras=True)
    found = [name for name, hint in hints.items() if duration in get_args(hint)]
    assert sorted(found) == sorted(DURATIONS)


@pytest.mark.parametrize("name", DURATIONS)
def test_durations_are_read_as_go_reads_them(name: str) -> None:
    for text in ("1us", ".5s", "1h30m", "0", "2562047h"):
        assert getattr(read_process_settings({name: text}, {}), name) == text
    for text in ("2562048h", "-1s", "5", "5d", "s", ""):
        with pytest.raises(WrongTypeError, match=f"{name.replace('_', '-')}: expected a duration such as 90s"):
            read_process_settings({name: text}, {})

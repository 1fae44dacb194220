"""A scheduler.conf becomes a SchedulerConfig, or an error that says where and what."""

import re
from pathlib import Path
from textwrap import dedent, indent

import pytest

from pumice.config.errors import (
    ConfigError,
    ConfigSyntaxError,
    ConflictError,
    UnknownNameError,
    WrongTypeError,
)
from pumice.config.known import FLAGS, Flag
from pumice.config.load import BUILT_IN, default_text
from pumice.config.schema import SchedulerConfig
from pumice.core.configuration import from_parsed, load_scheduler_config, parse_or_built_in, parse_scheduler_config
from pumice.core.plugins import PLUGINS


def parse(text: str, **options: object) -> SchedulerConfig:
    return parse_scheduler_config(dedent(text), source="s.conf", **options)  # type: ignore[arg-type]


def refused(text: str, kind: type[ConfigError], **options: object) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, **options)
    assert type(caught.value) is kind, caught.value
    return str(caught.value)


def test_the_stock_configuration() -> None:
    config = load_scheduler_config(None)
    assert config.actions == ("enqueue", "allocate", "backfill")
    assert [[option.name for option in tier.plugins] for tier in config.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]
    assert config.warnings == ()


class TestFlags:
    def test_defaults_are_the_loaders(self) -> None:
        option = parse("actions: allocate\ntiers: [{plugins: [{name: gang}]}]").tiers[0].plugins[0]
        off = [flag.point for flag in FLAGS if not option.is_enabled(flag.point)]
        assert off == ["Hierarchy", "ClusterOrder"]

    @pytest.mark.parametrize("flag", FLAGS)
    def test_every_spelling(self, flag: Flag) -> None:
        for written, on in (("true", True), ("off", False), ("y", True), ("~", flag.on_by_default)):
            text = f"actions: allocate\ntiers: [{{plugins: [{{name: drf, {flag.key}: {written}}}]}}]"
            assert parse(text).tiers[0].plugins[0].is_enabled(flag.point) is on

    def test_a_quoted_boolean_is_a_text(self) -> None:
        text = "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: 'true'}]}]"
        assert refused(text, WrongTypeError) == (
            "s.conf:2: tiers[0].plugins[0].enableJobOrder: expected true or false, was 'true'"
        )

    def test_the_wrong_spelling_is_named(self) -> None:
        text = """\
            actions: allocate
            tiers:
            - plugins:
              - name: gang
                enabledJobOrder: true
            """
        assert refused(text, UnknownNameError) == (
            "s.conf:5: tiers[0].plugins[0].enabledJobOrder: unknown key or flag 'enabledJobOrder', "
            "did you mean 'enableJobOrder'?"
        )


class TestNames:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("actions: enqueue, alocate", "s.conf:1: actions: unknown action 'alocate', did you mean 'allocate'?"),
            ("action: enqueue", "s.conf:1: action: unknown key 'action', did you mean 'actions'?"),
            (
                "actions: allocate\ntiers: [{plugins: [{name: Gang}]}]",
                "s.conf:2: tiers[0].plugins[0].name: unknown plugin 'Gang', did you mean 'gang'?",
            ),
            (
                "actions: allocate\ntiers: [{plugins: [{name: nodeorder, arguments: {leastrequested.wieght: 1}}]}]",
                (
                    "s.conf:2: tiers[0].plugins[0].arguments[leastrequested.wieght]: unknown argument "
                    "'leastrequested.wieght', did you mean 'leastrequested.weight'?"
                ),
            ),
            (
                "actions: allocate\nmetrics: {adress: x}",
                "s.conf:2: metrics.adress: unknown key 'adress', did you mean 'address'?",
            ),
            (
                "actions: allocate\nconfigurations: [{name: preempt, arguments: {minCandidateNodesPercent: 1}}]",
                (
                    "s.conf:2: configurations[0].arguments.minCandidateNodesPercent: unknown argument "
                    "'minCandidateNodesPercent', did you mean 'minCandidateNodesPercentage'?"
                ),
            ),
        ],
    )
    def test_unknown(self, text: str, message: str) -> None:
        assert refused(text, UnknownNameError) == message
        if "tiers" in text or "metrics" in text:
            assert f"{message}; ignored" in parse(text, lenient=True).warnings

    def test_nothing_near_lists_what_there_is(self) -> None:
        assert refused("actions: frobnicate", UnknownNameError).endswith("; known: " + ", ".join(sorted((
            "enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle",
        ))))  # fmt: skip

    def test_lenient_leaves_out_what_it_does_not_know(self) -> None:
        text = """\
            actions: enqueue, dance, allocate
            colour: red
            tiers:
            - plugins:
              - name: gang
              - name: tango
                enableJobOrdr: true
            """
        config = parse(text, lenient=True)
        assert config.actions == ("enqueue", "allocate")
        assert [option.name for option in config.tiers[0].plugins] == ["gang"]
        assert len(config.warnings) == 4

    def test_a_plugin_of_the_users_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "actions: allocate\ntiers: [{plugins: [{name: mine, arguments: {anything: [1]}}]}]"
        assert "'mine'" in refused(text, UnknownNameError)
        monkeypatch.setitem(PLUGINS, "mine", PLUGINS["gang"])
        config = parse(text)
        assert config.tiers[0].plugins[0].arguments == {"anything": [1]}


class TestActions:
    @pytest.mark.parametrize(
        "text", ["tiers: []", "actions: ''", "actions: 'allocate,'", "actions: [allocate]", "actions:"]
    )
    def test_an_empty_name_is_refused_as_volcano_does(self, text: str) -> None:
        assert "actions: expected action names with commas between" in refused(text, WrongTypeError)

    def test_blanks_are_trimmed(self) -> None:
        assert parse("actions: ' enqueue ,allocate'").actions == ("enqueue", "allocate")


class TestConflict:
    HDRF = (
        "actions: allocate\ntiers:\n- plugins: [{name: gang}]\n"
        "- plugins: [{name: drf, enableHierarchy: %s}, {name: proportion}]"
    )

    def test_hierarchy_and_proportion_in_one_tier(self) -> None:
        assert refused(self.HDRF % "true", ConflictError).startswith("s.conf:4: tiers[1]: proportion and drf with")

    def test_lenient_refuses_it_too(self) -> None:
        refused(self.HDRF % "true", ConflictError, lenient=True)

    def test_off_or_apart_is_fine(self) -> None:
        parse(self.HDRF % "false")
        parse((self.HDRF % "true").replace("}, {name: proportion}]", "}]\n- plugins: [{name: proportion}]"))


class TestConfigurations:
    def test_arguments_by_action_the_first_counts(self) -> None:
        text = """\
            actions: preempt
            configurations:
            - name: preempt
              arguments: {enableTopologyAwarePreemption: true}
            - name: preempt
              arguments: {enableTopologyAwarePreemption: false}
            """
        assert "configurations[1].name: 'preempt' is configured twice" in refused(text, ConflictError)
        config = parse(text, lenient=True)
        assert config.action_arguments("preempt") == {"enableTopologyAwarePreemption": True}
        assert config.action_arguments("allocate") == {}

    def test_metrics_are_texts(self) -> None:
        config = parse("actions: allocate\nmetrics: {type: prometheus, interval: 030, tls.insecureSkipVerify: true}")
        assert config.metrics == {"type": "prometheus", "interval": "030", "tls.insecureSkipVerify": "true"}


class TestShape:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "s.conf: is empty: expected actions and tiers"),
            ("# only a comment", "s.conf: is empty: expected actions and tiers"),
            ("- 1", "s.conf:1: expected a mapping with actions and tiers, or a ConfigMap, was a list"),
            ("actions: allocate\ntiers: 5", "s.conf:2: tiers: expected a list, was 5"),
            ("actions: allocate\ntiers: [5]", "s.conf:2: tiers[0]: expected a mapping, was 5"),
            ("actions: allocate\ntiers: [{plugins: [gang]}]",
             "s.conf:2: tiers[0].plugins[0]: expected a mapping, was 'gang'"),
            ("actions: allocate\ntiers: [{plugins: [{}]}]",
             "s.conf:2: tiers[0].plugins[0].name: expected the name of a plugin, was nothing"),
            ("actions: allocate\nactions: enqueue", "s.conf:2: the key 'actions' stands here twice"),
            ("actions: allocate\n---\nactions: enqueue",
             "s.conf:3: a second YAML document: expected one configuration"),
            ("a: &a [*a]", "s.conf:1: an alias contains itself"),
            ("actions: !!int x", "s.conf:1: 'x' is not a int"),
            ("? [a]\n: b", "s.conf:1: a mapping's key must be a text"),
        ],
    )  # fmt: skip
    def test_refused(self, text: str, message: str) -> None:
        with pytest.raises(ConfigError) as caught:
            parse(text)
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        "text", ["a: [", "a: b: c", "\tactions: x", "a: *nobody", "[" * 5000, "a: '\x00'", "[" * 600 + "]" * 600]
    )
    def test_what_is_no_yaml_names_the_file(self, text: str) -> None:
        with pytest.raises(ConfigError, match=r"^s\.conf"):
            parse(text)

    def test_an_alias_bomb_is_refused(self) -> None:
        lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
        assert re.search(r"more than \d+ values", refused("\n".join(lines), ConfigSyntaxError))


class TestConfigMap:
    CONF = "actions: enqueue\ntiers:\n- plugins:\n  - name: gang\n"

    def config_map(self, key: str = "volcano-scheduler.conf", conf: str = CONF) -> str:
        head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: volcano-scheduler-configmap\ndata:\n"
        return f"{head}  {key}: |\n{indent(conf, '    ')}"

    @pytest.mark.parametrize("key", ["volcano-scheduler.conf", "volcano-scheduler-ci.conf"])
    def test_is_looked_into(self, key: str) -> None:
        config = parse(self.config_map(key))
        assert config.actions == ("enqueue",)
        assert config.plugin("gang") is not None
        assert config.plugin("drf") is None

    def test_lines_are_those_of_the_file(self) -> None:
        text = self.config_map(conf=self.CONF.replace("gang", "gong"))
        message = refused(text, UnknownNameError)
        assert text.splitlines()[9].strip() == "- name: gong"
        assert message.startswith("s.conf:10: tiers[0].plugins[0].name: unknown plugin 'gong'")

    def test_folded_text_names_the_key(self) -> None:
        text = 'kind: ConfigMap\ndata:\n  a.conf: "actions: alocate"\n'
        assert refused(text, UnknownNameError).startswith("s.conf:3: actions: unknown action")

    def test_among_other_documents(self) -> None:
        assert parse("kind: Namespace\n---\n" + self.config_map()).actions == ("enqueue",)

    def test_without_a_configuration(self) -> None:
        assert "no key volcano-scheduler.conf" in refused("kind: ConfigMap\ndata: {a: b}", ConfigError)

    def test_with_two(self) -> None:
        assert "data[a.conf], data[b.conf]" in refused("kind: ConfigMap\ndata: {a.conf: x, b.conf: y}", ConfigError)

    @pytest.mark.parametrize("value", ["5", "", "- 1", "a: [", '""'])
    def test_with_something_else_in_it(self, value: str) -> None:
        with pytest.raises(ConfigError, match=r"^s\.conf:[38]:"):
            parse(f"kind: ConfigMap\ndata:\n  a.conf: {value}\n" if value != "a: [" else self.config_map(conf=value))


class TestParsed:
    def test_flags_that_nobody_set_are_off(self) -> None:
        conf = {"actions": ["enqueue"], "tiers": [{"plugins": [{"name": "gang", "enableJobReady": True}]}]}
        option = from_parsed(conf, False).tiers[0].plugins[0]
        assert (option.is_enabled("JobReady"), option.is_enabled("JobOrder")) == (True, False)
        assert from_parsed(conf, True).tiers[0].plugins[0].is_enabled("JobOrder")

    def test_built_by_hand_passes_the_loaders_check(self) -> None:
        plugins = [{"name": "drf", "enableHierarchy": True}, {"name": "proportion"}]
        conf = {"actions": ["allocate"], "tiers": [{"plugins": plugins}]}
        assert len(from_parsed(conf, False).tiers[0].plugins) == 2
        with pytest.raises(ConflictError):
            from_parsed(conf, True)


class TestFiles:
    def test_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "scheduler.conf"
        path.write_text(default_text())
        assert load_scheduler_config(path) == load_scheduler_config(None)

    def test_what_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"missing\.conf: does not exist"):
            load_scheduler_config(tmp_path / "missing.conf")
        binary = tmp_path / "binary.conf"
        binary.write_bytes(b"actions: \xff")
        with pytest.raises(ConfigSyntaxError, match=r"not UTF-8 text \(byte 9\)"):
            load_scheduler_config(binary)


UNKNOWN_ACTION = 'actions: "enqueue, preemptall, allocate"\ntiers:\n- plugins:\n  - name: gang\n'


def test_file_with_an_unknown_action_is_ignored_whole_when_lenient() -> None:
    config, text = parse_or_built_in(UNKNOWN_ACTION, source="c", lenient=True)
    assert text == BUILT_IN
    assert config.actions == ("enqueue", "allocate", "backfill")
    assert config.plugin("overcommit") is not None
    (warning,) = config.warnings
    assert "c:1: actions: unknown action 'preemptall', did you mean 'preempt'?" in warning
    assert "the whole file is ignored" in warning
    with pytest.raises(UnknownNameError):
        parse_or_built_in(UNKNOWN_ACTION, source="c", lenient=False)


def test_text_of_a_journal_leaves_out_only_the_unknown_action() -> None:
    assert parse_scheduler_config(UNKNOWN_ACTION, source="c", lenient=True).actions == ("enqueue", "allocate")

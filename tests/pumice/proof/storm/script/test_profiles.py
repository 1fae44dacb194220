"""Fault profiles: what the packaged ones hold, how they compose, and what a file of the user's may not say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pumice.actors.api_server.faults.strikes import KINDS
from pumice.config.errors import ConfigError
from pumice.proof.storm.script import profiles as module
from pumice.proof.storm.script.profile_file import NOWHERE
from pumice.proof.storm.script.profiles import PACKAGED, profile, profiles
from pumice.proof.storm.script.workload import DISTURBANCES, Size, inputs
from tests.pumice.cli.terminal import pumice

MINE = """
mild: {include: [half], rates: {crash: 0.01}, disturbances: {cordon: 3}}
own: {include: [evictions, other], config: 'actions: "allocate"'}
other: {config: 'actions: "enqueue, allocate"', claims: 0.5}
"""
CONFIG = "mine:\n  config: |\n    actions: allocate\n    tiers:\n    - plugins:\n      - name: gag\n"
SMALL = ("--nodes", "4", "--pods", "20", "--seeds", "2", "--workers", "2", "-o", "json")


def file_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


def test_the_names_of_the_help_are_those_of_the_file() -> None:
    assert tuple(profiles()) == PACKAGED
    assert all(
        each.rates.keys() <= KINDS and each.disturbances.keys() <= set(DISTURBANCES) for each in profiles().values()
    )


@pytest.mark.parametrize("what", DISTURBANCES)
def test_every_disturbance_happens(what: str) -> None:
    quiet = inputs(3, Size(4, 40), {})
    assert len(inputs(3, Size(4, 40), {what: 2})) >= len(quiet) + 2


def test_a_file_adds_profiles(tmp_path: Path) -> None:
    own = file_of(tmp_path, MINE)
    assert list(profiles(own))[-3:] == ["mild", "own", "other"]
    mild = profile("mild", own)
    assert (mild.varied, mild.rates["crash"], mild.disturbances) == (True, 0.01, {"cordon": 3})
    assert mild.rates["bind-lost"] == profile("half").rates["bind-lost"]
    whole = profile("own+clock", own)
    assert (whole.config, whole.claims) == ('actions: "allocate"', 0.5)
    assert whole.disturbances == {"rush": 12, "crowd": 3, "clock-jump": 2}
    assert whole.place == NOWHERE
    assert "mild" not in profiles()


def test_one_configuration_goes_with_any_that_has_none() -> None:
    assert profile("half+evictions").config == profile("victims+evictions").config == profile("evictions").config != ""
    assert profile("storm").config == ""


def test_two_configurations_do_not_compose(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"expected one scheduler configuration, was 2 different ones in other\+victims"
    ):
        profile("other+victims", file_of(tmp_path, MINE))


def test_rates_that_are_too_much_together_do_not_compose(tmp_path: Path) -> None:
    own = file_of(tmp_path, "most: {rates: {bind-pod-deleted: 0.9}}")
    with pytest.raises(ConfigError, match=r"at most for all that can strike one bind, was 1\.55 in most\+binds"):
        profile("most+binds", own)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mine: {rate: {}}", "1: mine.rate: unknown key 'rate', did you mean 'rates'?"),
        ("mine: {place: 1}", "1: mine.place: unknown key 'place'; known: claims, config, "),
        ("a: {}\nmine: {rates: {bind-lots: 0}}", "2: mine.rates.bind-lots: unknown fault 'bind-lots', did you mean"),
        ("mine: {disturbances: {cordn: 1}}", "1: mine.disturbances.cordn: unknown disturbance 'cordn', did you mean"),
        ("mine: {rates: {crash: -2}}", "1: mine.rates.crash: expected a share from 0 to 1, was -2"),
        ("mine: {rates: {crash: .nan}}", "1: mine.rates.crash: expected a share from 0 to 1, was nan"),
        ("mine: {rates: {crash: yes}}", "1: mine.rates.crash: expected a share from 0 to 1, was true"),
        ("mine: {rates: [crash]}", "1: mine.rates: expected a mapping, was a list"),
        ("mine: {claims: 7}", "1: mine.claims: expected a share from 0 to 1, was 7"),
        ("mine: {disturbances: {cordon: 1e9}}", "1: mine.disturbances.cordon: expected a number from 0 to 1000, was"),
        ("mine: {varied: 1}", "1: mine.varied: expected true or false, was 1"),
        ("mine: {config: [1]}", "1: mine.config: expected the text of a scheduler.conf, was a list"),
        (CONFIG, "6: mine.config.tiers[0].plugins[0].name: unknown plugin 'gag', did you mean 'gang'?"),
        ("mine: {include: half}", "1: mine.include: expected a list, was 'half'"),
        ("mine: {include: [calm, halv]}", "1: mine.include[1]: unknown profile 'halv', did you mean 'half'?"),
        ("mine: {include: [mine]}", "1: mine.include[0]: expected no circle, was mine > mine"),
        ("a: {include: [b]}\nb: {include: [a]}", "2: b.include[0]: expected no circle, was a > b > a"),
        (
            "mine: {rates: {status-lost: 0.9, crash: 0.9}}",
            "1: mine.rates: expected 1 at most for all that can strike one status, was 1.8 in mine: status-lost 0.9 + ",
        ),
        ("mine: {include: [half], rates: {crash: 0.7}}", "1: mine.rates: expected 1 at most for all that can strike"),
        (
            "a: {config: 'actions: allocate'}\nmine: {include: [a, victims]}",
            "2: mine.include: expected one scheduler configuration, was 2 different ones in mine",
        ),
        ("storm: {}", "1: storm: expected a name of its own, storm is a packaged profile"),
        ("../mine: {}", "1: [../mine]: expected a name of at most 50 letters, digits, - _ and ., was '../mine'"),
        ("[mine]", "1: expected a mapping, was a list"),
        ("mine: 3", "1: mine: expected a mapping, was 3"),
        ("", " expected one YAML document, was 0"),
        ("mine: [\n", "2: not YAML: "),
        (
            "".join(f"p{number}: {{include: [p{number + 1}]}}\n" for number in range(2000)) + "p2000: {}",
            "50: p49.include[0]: expected at most 50 profiles within each other",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_said(text: str, words: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        profiles(path)
    assert str(error.value).startswith(f"{path}:{words}")


def test_many_that_include_the_same_are_read_once(tmp_path: Path) -> None:
    lines = [f"p{number}: {{include: [p{number + 1}, p{number + 1}, p{number + 1}]}}" for number in range(40)]
    own = file_of(tmp_path, "\n".join([*lines, "p40: {rates: {crash: 0.1}}"]))
    assert profile("p0", own).rates == {"crash": 0.1}


@pytest.mark.parametrize("command", [("stress", "--profile"), ("run", "--until", "idle", "--faults")])
def test_a_wrong_file_is_a_sentence_and_exit_code_2(command: tuple[str, ...], tmp_path: Path) -> None:
    own = file_of(tmp_path, "mine: {rates: {crash: 7}}")
    db = ("--db", tmp_path / "p.db") if command[0] == "run" else ()
    said = pumice(*command, "mine", "--profiles", own, *db)
    assert (said.code, said.out) == (2, "")
    assert said.err == f"pumice: {own}:1: mine.rates.crash: expected a share from 0 to 1, was 7\n"
    assert pumice(*command, "mine", "--profiles", tmp_path / "none", *db).code == 2
    assert pumice(*command, "mine", *db).code == 2


@pytest.mark.slow
def test_workers_know_the_profile_of_a_file(tmp_path: Path) -> None:
    own = file_of(tmp_path, "mine: {rates: {bind-refused: 0.9}}")
    said = pumice("stress", "--profiles", own, "--profile", "mine", "--into", tmp_path, *SMALL)
    assert said.code == 0
    found = json.loads(said.out)
    assert list(found["faults_injected"]) == ["bind-refused"]


def test_a_run_takes_the_profile_of_a_file(tmp_path: Path) -> None:
    own = file_of(tmp_path, "mine: {rates: {watch-broken: 0.9}}")
    where = ("--db", tmp_path / "p.db", "--time", "virtual", "--until", "idle", "-o", "json")
    said = pumice("run", *where, "--faults", "mine", "--profiles", own)
    assert said.code == 0
    assert list(json.loads(said.out)["faults_injected"]) == ["watch-broken"]


def test_what_ships_may_be_broken_and_the_others_still_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE", file_of(tmp_path, "storm: {rate: {}}"))
    profiles.cache_clear()
    try:
        assert pumice("decide", "--help").code == pumice("stress", "--help").code == 0
        said = pumice("stress", "--seeds", "1")
        assert (said.code, said.out) == (2, "")
        assert "mine.yaml:1: storm.rate: unknown key 'rate'" in said.err
    finally:
        profiles.cache_clear()

"""What `pumice schema` prints, what results validate against, and the keys that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import anyio
import pytest

from pumice.actors.metrics.summary import PodCounts
from pumice.cli.app import COMMANDS
from pumice.core.messages.events import ShadowTold
from pumice.lab.builders import gang, nodes
from pumice.proof.storm.report import BrokenStorm, StressResult
from pumice.proof.storm.script.events import Event
from pumice.proof.strangers.report import SubjectFinding
from pumice.proof.strangers.stress import SubjectTally, result_of
from pumice.questions.evaluation.evaluate import evaluate
from pumice.questions.history.entries import JournalRecord, entries
from pumice.results import DIALECT, FORMS, Result, forms_of, json_schema, tag_of
from pumice.runtime.summary import BrokenInvariant, FaultsFound, MirrorResult
from pumice.storage.sqlite import SqliteJournal
from tests.pumice.cli import published
from tests.pumice.cli.terminal import pumice

Validate = Callable[[str, Any], None]

EXAMPLES: Final = Path(__file__).parents[3] / "examples"

CLUSTER: Final = ("-f", EXAMPLES / "cluster.yaml", "-f", EXAMPLES / "queues", "-f", EXAMPLES / "work.yaml")
SMALL: Final = ("-f", EXAMPLES / "job.yaml", "-f", EXAMPLES / "queues")
SWEEP: Final = f"fixed: {{input: [{EXAMPLES}/job.yaml, {EXAMPLES}/queues], until: 1m}}\ngrid: {{seed: [0]}}\n"
BENCH: Final = ("allocate", "--nodes", 4, "--pods", 4, "--gang", 2, "--runs", 1)
STRESS: Final = ("--seeds", 1, "--nodes", 3, "--pods", 6, "--workers", 1)


@pytest.fixture(scope="module")
def validate() -> Validate:
    """Validate what a command printed; the schema itself is valid too."""
    validator = cast("Any", import_module("jsonschema")).Draft202012Validator
    made: dict[str, Any] = {}

    def demand(command: str, instance: Any) -> None:
        if command not in made:
            schema = json_schema(command)
            validator.check_schema(schema)
            made[command] = validator(schema)
        made[command].validate(instance)
        assert next(iter(instance)) == "schema"
        assert instance["schema"] == tag_of(forms_of(command)[0])

    return demand


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, validate: Validate) -> Path:
    """Return a folder with the journal of a run, and of a run that goes otherwise."""
    folder = tmp_path_factory.mktemp("schema")
    run = pumice("run", *CLUSTER, "--db", folder / "j.db", "--time", "virtual", "--until", "1200s")
    assert run.code == 0, run.err
    validate("run", run.json)
    (folder / "sweep.yaml").write_text(SWEEP)
    return folder


@pytest.mark.parametrize(
    ("command", "arguments", "code"),
    [
        ("run", (*SMALL, "--db", "{}/faults.db", "--time", "virtual", "--until", "idle", "--faults", "calm"), 0),
        ("decide", CLUSTER, 0),
        ("decide", ("--db", "{}/j.db", "--cycle", 1), 0),
        ("check", (EXAMPLES / "scheduler.conf",), 0),
        ("conformance", (EXAMPLES / "cases", "--workers", 1), 0),
        ("journal", ("{}/j.db",), 0),
        ("journal", ("{}/j.db", "--check"), 0),
        ("journal", ("{}/j.db", "--cycle", 1), 0),
        ("journal", ("{}/j.db", "--about", "research/sweep"), 0),
        ("journal", ("{}/j.db", "--backup", "{}/copy.db"), 0),
        ("explain", ("--db", "{}/j.db", "job", "research/sweep"), 0),
        ("explain", ("--db", "{}/j.db", "pod", "research/sweep-worker-0"), 0),
        ("queue", ("--db", "{}/j.db"), 0),
        ("queue", (*CLUSTER, "--eta"), 0),
        ("whatif", ("--db", "{}/j.db", "--submit", EXAMPLES / "urgent.yaml", "--horizon", "10m"), 1),
        ("whatif", (*SMALL, "-f", EXAMPLES / "cluster.yaml", "--until-starts", "default/test-job"), 0),
        ("eta", ("--db", "{}/j.db", "--samples", 2, "--horizon", "1h"), 0),
        ("eta", ("--db", "{}/j.db", "--samples", 2, "--horizon", "1h", "--score", 2), 0),
        ("replay", ("{}/j.db", "--verify", "--workers", 1), 0),
        ("replay", ("{}/j.db", "--config", EXAMPLES / "other.conf"), 1),
        ("measures", ("{}/j.db",), 0),
        ("report", ("{}/j.db", "-o", "{}/report.html"), 0),
        ("sweep", ("{}/sweep.yaml", "--workers", 1), 0),
        ("timeline", ("{}/j.db", "-o", "{}/trace"), 0),
        ("top", ("--db", "{}/j.db", "--once"), 0),
        ("kubeconfig", ("--http", "127.0.0.1:8080", "-o", "json"), 0),
        ("bench", BENCH, 0),
        ("stress", STRESS, 0),
        ("schema", (), 0),
    ],
)
def test_what_a_command_prints_is_valid(
    command: str, arguments: tuple[object, ...], code: int, folder: Path, validate: Validate
) -> None:
    said = pumice(command, *(str(each).format(folder) for each in arguments))
    assert said.code == code, said.err
    validate(command, said.json)


def test_a_page_over_a_journal_is_valid(folder: Path, validate: Validate, monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(db: Path, plugins: str | None, host: str, port: int, tell: Callable[[str], None], _: object) -> None:
        tell(f"http://{host}:{port}")

    monkeypatch.setattr("pumice.cli.view.view_journal", serve)
    validate("view", pumice("view", folder / "j.db").json)


def test_lines_of_a_journal_that_is_followed_are_valid(folder: Path, validate: Validate) -> None:
    async def read() -> list[Any]:
        async with await SqliteJournal.open(folder / "j.db", read_only=True) as journal:
            return [JournalRecord(each.told()).plain() async for each in entries(journal)]

    records = anyio.run(read)
    assert {each["kind"] for each in records} >= {"api", "cycle", "decision", "outcome", "config"}
    for each in records:
        validate("journal-record", each)


def test_an_evaluation_is_valid(validate: Validate) -> None:
    objects = [*nodes(2), *(gang(f"j{each}", 1, cpu=8, duration="10s") for each in range(3))]
    found = evaluate(None, objects, seeds=2, expect=[{"measure": "wait.max", "op": "<", "value": "1s"}])
    validate("evaluate", found.plain())


def odd_ones() -> Iterator[tuple[str, Result]]:
    """Results of what is slow to bring about."""
    difference = {"cycle": 1, "what": "bind", "name": "a/b", "there": "n0", "here": "", "why_there": "", "why_here": ""}
    counts = dict.fromkeys(("decisions", "same", "ties", "other_node", "only_there", "only_here"), 1)
    shadow = cast("ShadowTold", {**counts, "share": 1.0, "differences": [difference]})
    yield (
        "mirror",
        MirrorResult(cycles=1, pods=PodCounts(), jobs={}, seconds=1.0, pods_per_s=0.0, db="j.db", shadow=shadow),
    )
    yield "run", FaultsFound({"crash": 1}, [BrokenInvariant("one-node", "it moved")])
    broken = BrokenStorm(
        seed=1,
        invariant="one-node",
        message="it moved",
        events=1,
        event_list=[Event("node", target="n0")],
        reproduces=None,
        events_file=None,
        file_error="full",
        command=None,
    )
    yield (
        "stress",
        StressResult(
            seeds=1,
            seeds_lost=[],
            first_seed_left=None,
            events=1,
            seeds_per_s=1.0,
            seconds=1.0,
            faults_injected={},
            violations=[broken],
            digest="d",
        ),
    )
    strange = SubjectFinding(
        seed=1,
        seeds=[1],
        invariant="one-node",
        promise="https://kubernetes.io",
        message="it moved",
        moment=1.5,
        tries=3,
        shown=1,
        event_list=[Event("node", target="n0")],
        events_file=None,
        journal_file=None,
        report_file=None,
        file_error="full",
        command=None,
    )
    yield "stress", result_of(SubjectTally(seeds=1, first_left=2), ["vc-scheduler"], "volcano", 1.0, [strange])


@pytest.mark.parametrize(("command", "result"), [*odd_ones()])
def test_a_result_that_is_slow_to_bring_about_is_valid(command: str, result: Result, validate: Validate) -> None:
    validate(command, result.plain())


def test_a_key_that_is_missing_is_not_valid(validate: Validate) -> None:
    (_, result), *_ = odd_ones()
    plain = result.plain()
    del plain["pods"]["bound"]
    with pytest.raises(Exception, match="'bound' is a required property"):
        validate("mirror", plain)


# --- the schemas


def test_a_schema_is_one_of_2020_12_with_descriptions() -> None:
    said = pumice("schema", "queue", "-o", "table")
    assert said.code == 0
    schema = said.json
    assert (schema["$schema"], schema["$id"], schema["title"]) == (DIALECT, "urn:pumice:queue/1", "Standings")
    assert "The queues as `cycle` opened" in schema["description"]
    assert next(iter(schema["properties"].items())) == ("schema", {"const": "queue/1"})
    assert schema["$defs"]["QueueStanding"]["properties"]["borrowed"]["description"] == "allocated beyond deserved"
    assert "description" not in schema["$defs"]["Estimate"]["properties"]["known"]  # what is said is of "Not `known`"
    assert schema["$defs"]["WaitingRow"]["required"][-1] == "before_it"  # `eta` is there where it was asked for


def test_names_of_jobs_stand_beside_the_version() -> None:
    (estimates, _) = json_schema("eta")["anyOf"]
    assert estimates["properties"] == {"schema": {"const": "eta/1"}}
    assert estimates["additionalProperties"] == {"$ref": "#/$defs/Estimate"}


def test_one_schema_as_json_has_a_version_of_its_own() -> None:
    said = pumice("schema", "queue", "-o", "json").json
    assert (said["schema"], [*said["schemas"]]) == ("schema/1", ["queue"])
    assert said["schemas"]["queue"]["$id"] == "urn:pumice:queue/1"


def test_without_a_name_it_lists_commands_and_versions() -> None:
    lines = pumice("schema", "-o", "table", env={"COLUMNS": "200"}).out.splitlines()
    assert [line.split()[0] for line in lines] == ["command", *FORMS]
    assert "journal/1" in next(line for line in lines if line.startswith("journal "))


def test_a_name_that_is_none_is_refused_with_a_near_one() -> None:
    said = pumice("schema", "quue")
    assert (said.code, "near: queue" in said.err) == (2, True)


def test_every_command_has_a_schema_and_all_forms_its_name() -> None:
    assert FORMS.keys() - COMMANDS.keys() == {"evaluate", "journal-record"}
    assert not COMMANDS.keys() - FORMS.keys()
    for command in FORMS:
        (tag,) = {tag_of(form) for form in forms_of(command)}
        assert tag.partition("/")[0] == command
        assert all(form.__doc__ for form in forms_of(command))


# --- the keys


def test_published_keys_stay_and_are_all_listed() -> None:
    was, now = published.published(), published.current()
    assert published.broken(was, now) == [], published.ADVICE
    new = {form: sorted(keys.items() - was.get(form, {}).items()) for form, keys in now.items()}
    assert {form: keys for form, keys in new.items() if keys} == {}, "run python -m tests.pumice.cli.published"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"a/1 A": {"x": "string", "z": "integer"}}, ["a/1 A: y is gone"]),
        ({"a/1 A": {"x": "string", "y": "integer?"}}, ["a/1 A: y was integer, is integer?"]),
        ({"a/1 A": {"x": "string", "y": "integer", "z": "null"}}, []),
        ({"a/2 A": {"x": "string"}}, []),
        ({"a/1 B": {"x": "string"}}, ["a/1 A is gone"]),
        ({"b/1 B": {"x": "string"}}, ["a/1 A is gone"]),
    ],
)
def test_a_published_key_goes_only_with_a_new_version(now: dict[str, dict[str, str]], said: list[str]) -> None:
    assert published.broken({"a/1 A": {"x": "string", "y": "integer"}}, now) == said

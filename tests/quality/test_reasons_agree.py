"""All commands give one reason for one cause, with the same numbers: of clusters as files, and of the journal of a
run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
import pytest
import yaml

from pumice.actors.gateway.advice import AdviserQuestion
from pumice.actors.gateway.site import exposed
from pumice.questions.adviser.answers import answer
from pumice.questions.adviser.reasons import WaitCode, WaitReason
from pumice.questions.adviser.waiting_jobs import waits_at_the_end
from pumice.questions.report.cycle_reasons import reasons_by_cycle
from tests.pumice.cli.terminal import pumice
from tests.quality.broken_clusters import CAUSES, broken_cluster

CLUSTERS: Final = range(2 * len(CAUSES))
QUICK: Final = CLUSTERS[1 : len(CAUSES) : 3]
UNTRIED: Final = {
    WaitCode.NOT_ADMITTED,
    WaitCode.NO_POD_GROUP,
    WaitCode.QUEUES_UNUSABLE,
    WaitCode.PLACEMENT_REFUSED,
    WaitCode.BIND_REFUSED,
    WaitCode.TOPOLOGY,
    WaitCode.NOT_VALID,
}
"""Codes whose causes are no matter of a few objects: `test_reasons.py` of the adviser has them."""
Wait = dict[str, Any]


def asked(*words: object) -> Any:
    """What a command prints; exit code 2 is that some object was refused."""
    said = pumice(*words, "-o", "json")
    assert said.code in (0, 2), said.err
    return said.json


def adviser(db: Path, resource: str, namespace: str = "", name: str = "", **query: str) -> Any:
    """What the HTTP endpoint answers, in this process."""
    found = answer(str(db), None, AdviserQuestion(resource, namespace, name, tuple(query.items())))
    assert found.code == 200, found.message
    return msgspec.json.decode(found.body)


def by_job(rows: list[dict[str, Any]]) -> dict[str, Wait]:
    """Rows of `queue`, which say in their older keys what the reason says."""
    for row in rows:
        assert (row["reason"], row["class"], row["because"]) == words_of(row["wait"])
    return {row["job"]: row["wait"] for row in rows}


def plain(wait: WaitReason) -> Wait:
    found: Wait = msgspec.json.decode(msgspec.json.encode(wait))
    return found


def words_of(wait: Wait) -> tuple[str, str, str]:
    return wait["code"], wait["class"], wait["sentence"]


def explained(job: str, of: str, *source: object) -> Wait | None:
    told = asked("explain", of, job, "--budget", 0, *source)
    if told["wait"] is not None:
        assert (told["reason"], told["class"]) == words_of(told["wait"])[:2]
        assert told["wait"]["sentence"] in told["message"]
    wait: Wait | None = told["wait"]
    return wait


def agree(told: dict[str, Wait | None], who: str) -> Wait:
    """The one reason that all of them give."""
    first = next(iter(told.values()))
    for name, wait in told.items():
        assert wait == first, f"{who}: {name} differs from {next(iter(told))}"
    assert first is not None, who
    return first


def of_files(source: tuple[object, ...]) -> Iterator[tuple[str, Wait]]:
    """The reasons in a cluster that is described by files: of each job, and of its pods."""
    rows = asked("queue", *source)["waiting"]
    queued, names = by_job(rows), {row["job"]: row["made_for"] for row in rows}
    pods = asked("decide", *source)["pending"]
    for pod, why in pods.items():
        assert (why["reason"], why["class"]) == words_of(why["wait"])[:2]
        agree({"decide": why["wait"], "explain pod": explained(pod, "pod", *source)}, pod)
    estimates = asked("eta", *source, "--samples", 1, "--horizon", "1m")
    for job, wait in queued.items():
        of = "pod" if job in pods else "podgroup"
        told = {"queue": wait, f"explain {of}": explained(job, of, *source)} if exists(job, of, *source) else {}
        told |= {"eta": estimates[names[job]]["wait"]} if names[job] in estimates else {}
        assert {why["reason"] for pod, why in pods.items() if pod.rpartition("-")[0] == job} <= {wait["code"]}
        yield names[job], agree({"queue": wait, **told}, job)


def exists(job: str, of: str, *source: object) -> bool:
    """A PodGroup that pods name may be the very thing that does not exist."""
    return pumice("explain", of, job, "--budget", 0, *source).code in (0, 2)


def of_journal(db: Path, at_end: dict[str, dict[str, Any]]) -> Iterator[tuple[str, Wait]]:
    """The reasons at the end of a run: `at_end` is what the run itself said."""
    source = ("--db", db)
    standings = adviser(db, "standings")["waiting"]
    queued, counted = by_job(asked("queue", *source)["waiting"]), adviser(db, "waitclasses")
    on_top = by_job(asked("top", *source, "--once")["standings"]["waiting"])
    estimates = asked("eta", *source, "--samples", 1, "--horizon", "1m")
    names = {row["job"]: row["made_for"] for row in standings}
    assert list(at_end) == list(dict.fromkeys(names.values()))
    at_report = {row.job: plain(row.wait) for row in waits_at_the_end(db)}
    newest = anyio.run(reasons_by_cycle, db)[-1].reasons
    for job, wait in by_job(standings).items():
        name = names[job]
        told = {"standings": wait, "queue": queued[job], "top": on_top[job], "run": at_end[name]["wait"]}
        assert (at_end[name]["reason"], at_end[name]["class"], at_end[name]["because"]) == words_of(wait)
        told |= {"judged": plain(newest.jobs[job])} if job in newest.jobs else {}
        told |= {"report": at_report[name]} | ({"eta": estimates[name]["wait"]} if name in estimates else {})
        if exists(job, "podgroup", *source):
            told["explain"] = explained(job, "podgroup", *source)
            namespace, _, bare = job.partition("/")
            told["explanations"] = adviser(db, "explanations", namespace, bare, of="podgroup")["wait"]
        yield name, agree(told, job)
        assert of_story(db, f"{job}-0") <= {wait["code"]}
    gauges = exposed(counted).decode()
    for row in standings:
        assert f'class="{row["class"]}",queue="{row["queue"]}",reason="{row["reason"]}"' in gauges


def of_story(db: Path, pod: str) -> set[str]:
    """The codes in the story of a pod: those of Events, and what it waits for at the end. Some jobs have no pods."""
    told = pumice("journal", db, "--about", pod)
    story: dict[str, Any] = told.json if told.code == 0 else {"story": [], "waits": None}
    states = {each.get("state", "").partition(":")[0] for each in story["story"] if "Event" in each.get("object", "")}
    return states & {*WaitCode} | ({story["waits"]["reason"]} if story["waits"] else set())


def check(seed: int, folder: Path) -> set[WaitCode]:
    """All agree about the cluster of a seed; return the codes that were given."""
    draft = broken_cluster(seed)
    (folder / "all.yaml").write_text(yaml.safe_dump_all(draft.objects), "utf-8")
    (folder / "c.conf").write_text(draft.config, "utf-8")
    source = ("-f", folder / "all.yaml", "--config", folder / "c.conf")
    before = dict(of_files(source))
    if not draft.lasts:
        return {WaitCode(wait["code"]) for wait in before.values()}
    run = asked("run", *source, "--time", "virtual", "--until", "idle", "--db", folder / "j.db")
    after = dict(of_journal(folder / "j.db", run.get("waiting", {})))
    codes = [{job: wait["code"] for job, wait in waits.items()} for waits in (before, after)]
    assert codes[0] == codes[1]
    return {WaitCode(wait["code"]) for wait in (*before.values(), *after.values())}


@pytest.mark.parametrize("seed", QUICK)
def test_broken_cluster_has_one_reason_in_all_commands(tmp_path: Path, seed: int) -> None:
    assert check(seed, tmp_path)


@pytest.mark.slow
def test_every_broken_cluster_has_one_reason_and_every_code_comes(tmp_path: Path) -> None:
    codes = set[WaitCode]()
    for seed in CLUSTERS:
        (tmp_path / str(seed)).mkdir()
        codes |= check(seed, tmp_path / str(seed))
    assert codes == set(WaitCode) - UNTRIED

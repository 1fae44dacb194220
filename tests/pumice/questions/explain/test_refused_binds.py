"""A bind that the api refuses shows in explain and queue: a pod with a node in every cycle, and on none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
import yaml

from pumice.cluster.kube.events import not_bound, not_prepared, refused_bind
from pumice.core.objects.metadata import Object
from pumice.questions.adviser.reasons import WaitCode
from pumice.questions.adviser.waiting_jobs import waiting_jobs_of
from pumice.questions.explain.account import account_of
from pumice.questions.explain.refused import RefusedBind, refused_in
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice
from tests.pumice.questions.adviser.test_reasons import scene

WHY = "planted"


def told(objects: list[Object], message: str) -> list[Object]:
    """The pods say that binding them failed."""
    said = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": message}
    return [
        each if each["kind"] != "Pod" else {**each, "status": {"phase": "Pending", "conditions": [said]}}
        for each in objects
    ]


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (not_bound("n0", WHY), f"bind to n0 refused: {WHY}"),
        (not_prepared("default/g-0", WHY), f"bind refused: execute preBind for pod default/g-0 failed: {WHY}, resync"),
    ],
)
def test_pod_whose_bind_was_refused_waits_for_that_in_explain_and_queue(message: str, sentence: str) -> None:
    here = scene(node("n0"), *told(gang("g", pods=2, phase="Inqueue"), message))
    account = account_of(here, "pod", "default/g-0")
    assert (account.state, account.reason) == ("Pending", WaitCode.BIND_REFUSED)
    assert account.message.startswith(sentence)
    assert "placed" not in account.message
    (job,) = waiting_jobs_of(here).waiting
    assert (job.wait.code, job.pods, job.held) == (WaitCode.BIND_REFUSED, 2, 0)
    assert sentence in job.wait.sentence
    assert refused_bind(message)[0] in ("n0", "")


def test_refused_bind_beside_pods_without_room_is_told_after_these() -> None:
    first, second = told(gang("g", pods=2, min_member=1, cpu="3", phase="Inqueue"), not_bound("n0", WHY))[1:]
    second = {**second, "status": {"phase": "Pending"}}
    here = scene(node("n0", cpu="4"), gang("g", pods=2, min_member=1, phase="Inqueue")[0], first, second)
    account = account_of(here, "podgroup", "default/g")
    assert account.reason != WaitCode.BIND_REFUSED
    assert account.message.endswith(f"; default/g-0: bind to n0 refused: {WHY}")
    assert waiting_jobs_of(here).waiting[0].wait.code is not WaitCode.BIND_REFUSED


def test_counts_of_a_journal_come_before_what_the_pod_says() -> None:
    objects = told(gang("g", pods=1, phase="Inqueue"), not_bound("n0", WHY))
    here = scene(node("n0"), *objects)
    uid = here.view.tasks.by_key["default/g-0"].uid
    counted = replace(here, refused={uid: RefusedBind("n0", 4, WHY)})
    assert account_of(counted, "pod", "default/g-0").message == f"bind to n0 refused 4 times: {WHY}"
    other = replace(here, refused={"another pod": RefusedBind("n0", 4, WHY)})
    assert account_of(other, "pod", "default/g-0").refused["default/g-0"].times == 0


def test_run_that_refuses_all_binds_is_counted_by_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("never.yaml").write_text("never: {rates: {bind-refused: 1.0}}", "utf-8")
    Path("work.yaml").write_text(yaml.safe_dump_all([node("n0"), *gang("g", pods=1, phase="Inqueue")]), "utf-8")
    options = "--time virtual --until 9s --faults never --profiles never.yaml --db x.db"
    assert pumice("run", *options.split(), "-f", "work.yaml", "-o", "json").code == 0
    assert not anyio.run(refused_in, Path("x.db"), None)  # at the end the faults are over, and it is bound
    (refused,) = anyio.run(refused_in, Path("x.db"), 17).values()
    assert refused.times > 2
    told = pumice("explain", "--db", "x.db", "--cycle", 16, "pod", "default/g-0", "--budget", "0", "-o", "json").json
    assert told["reason"] == "BindRefused"
    assert told["message"] == f"bind to n0 refused {refused.times} times: {refused.why}"
    assert [each.times for each in anyio.run(refused_in, Path("x.db"), 1).values()] == [1]
    (job,) = pumice("queue", "--db", "x.db", "--cycle", 16, "-o", "json").json["waiting"]
    assert (job["reason"], f"refused {refused.times} times" in job["because"]) == ("BindRefused", True)

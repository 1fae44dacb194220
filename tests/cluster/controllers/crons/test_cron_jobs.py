"""CronJobs, Kubernetes' and Volcano's: a job at each time, and what becomes of those that ended."""

from __future__ import annotations

import pytest

from pumice.cluster.controllers.crons import KUBERNETES, VOLCANO, CronRule, Dialect
from pumice.cluster.controllers.family import FamilyMachine
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import START, Cluster
from tests.cluster.controllers.crons.cron_kit import JOBS, MINUTE, cron_job, end, jobs, said, started, status

FIRST = int(START // 60) + 1
"""The number of the first full minute."""
BOTH = pytest.mark.parametrize("dialect", [KUBERNETES, VOLCANO], ids=["kubernetes", "volcano"])


@BOTH
def test_a_job_at_each_time(dialect: Dialect) -> None:
    cluster = started(dialect)
    assert (jobs(cluster, dialect), cluster.timers()) == ([], 0)
    cluster.advance(40 - 1)
    assert jobs(cluster, dialect) == []
    cluster.advance(1)
    assert jobs(cluster, dialect) == [f"c-{FIRST}"]
    job = cluster.get(dialect.child, f"c-{FIRST}")
    assert job["metadata"]["labels"]["app"] == "c"
    assert job["metadata"]["annotations"] == {"a": "b", dialect.annotation: "2023-11-14T22:14:00Z"}
    [owner] = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("CronJob", True)
    assert status(cluster, dialect) == {"active": [f"c-{FIRST}"], "lastScheduleTime": "2023-11-14T22:14:00Z"}
    cluster.advance(2 * MINUTE)
    assert jobs(cluster, dialect) == [f"c-{FIRST + number}" for number in range(3)]
    made = "Created job c-{} for CronJob default/c" if dialect is VOLCANO else "Created job c-{}"
    assert said(cluster)[0] == ("SuccessfulCreate", made.format(FIRST))


@BOTH
def test_periods_are_counted_from_the_last_one_and_not_from_when_one_looked(dialect: Dialect) -> None:
    cluster = started(dialect, schedule="@every 20s")
    cluster.advance(20)
    [first] = jobs(cluster, dialect)
    cluster.advance(12)
    end(cluster, dialect, first)
    cluster.advance(8)
    assert len(jobs(cluster, dialect)) == 2
    again = Cluster(FamilyMachine(CronRule(dialect)))
    again.create(cron_job(dialect, schedule="@every 20s"))
    again.settle()
    again.advance(13)
    again.status(dialect.owner, "c", {})
    again.settle()
    again.advance(7)
    assert len(jobs(again, dialect)) == 1


@BOTH
def test_it_sees_how_they_end(dialect: Dialect) -> None:
    cluster = started(dialect, schedule="@hourly")
    cluster.advance(60 * MINUTE)
    [name] = jobs(cluster, dialect)
    end(cluster, dialect, name)
    found = status(cluster, dialect)
    assert (found["active"], found["lastSuccessfulTime"]) == ([], "2023-11-14T23:13:20Z")
    how = "in active, remove" if dialect is VOLCANO else ", condition: Complete"
    assert said(cluster)[-1] == ("SawCompletedJob", f"Saw completed job: {name} {how}".replace(" ,", ","))


@BOTH
def test_so_many_that_ended_are_kept(dialect: Dialect) -> None:
    cluster = started(dialect, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=2)
    for failed in (False, True, False, True, True, False):
        cluster.advance(MINUTE)
        end(cluster, dialect, jobs(cluster, dialect)[-1], failed=failed)
    assert jobs(cluster, dialect) == [f"c-{FIRST + number}" for number in (3, 4, 5)]
    assert [reason for reason, _ in said(cluster)].count("SuccessfulDelete") == 3


@BOTH
def test_it_may_wait_for_the_one_before(dialect: Dialect) -> None:
    cluster = started(dialect, concurrencyPolicy="Forbid")
    cluster.advance(3 * MINUTE)
    assert jobs(cluster, dialect) == [f"c-{FIRST}"]
    reason = "ForbidConcurrent" if dialect is VOLCANO else "JobAlreadyActive"
    assert [each for each, _ in said(cluster)].count(reason) == 2
    end(cluster, dialect, f"c-{FIRST}")
    assert jobs(cluster, dialect) == [f"c-{FIRST}", f"c-{FIRST + 2}"], "the last time that was missed comes late"


@BOTH
def test_it_may_replace_the_one_before(dialect: Dialect) -> None:
    cluster = started(dialect, concurrencyPolicy="Replace")
    cluster.advance(3 * MINUTE)
    assert jobs(cluster, dialect) == [f"c-{FIRST + 2}"]
    assert status(cluster, dialect)["active"] == [f"c-{FIRST + 2}"]
    assert not [reason for reason, _ in said(cluster) if reason in ("MissingJob", "StaleReference")]


@BOTH
def test_it_may_be_suspended(dialect: Dialect) -> None:
    cluster = started(dialect, suspend=True)
    cluster.advance(5 * MINUTE)
    assert jobs(cluster, dialect) == []
    cluster.patch(dialect.owner, "c", {"spec": {"suspend": False}})
    cluster.settle()
    assert jobs(cluster, dialect) == [f"c-{FIRST + 4}"], "one for all that were missed"


@BOTH
def test_what_is_too_late_does_not_start(dialect: Dialect) -> None:
    cluster = started(dialect, suspend=True, startingDeadlineSeconds=10)
    cluster.advance(5 * MINUTE)
    cluster.patch(dialect.owner, "c", {"spec": {"suspend": False}})
    cluster.settle()
    assert jobs(cluster, dialect) == []
    cluster.advance(40)
    assert jobs(cluster, dialect) == [f"c-{FIRST + 5}"]


@BOTH
def test_its_clock_may_hang_on_another_wall(dialect: Dialect) -> None:
    cluster = started(dialect, schedule="0 1 * * *", timeZone="Europe/Berlin")
    cluster.advance(3600)
    assert jobs(cluster, dialect) == []
    cluster.advance(3600)
    [job] = cluster.all(dialect.child)
    assert job["metadata"]["annotations"][dialect.annotation] == "2023-11-15T01:00:00+01:00"


@BOTH
def test_years_later_it_starts_once(dialect: Dialect) -> None:
    cluster = started(dialect, suspend=True)
    cluster.now += 3 * 365 * 86400
    cluster.patch(dialect.owner, "c", {"spec": {"suspend": False}})
    cluster.settle()
    assert len(jobs(cluster, dialect)) == 1
    assert "TooManyMissedTimes" in [reason for reason, _ in said(cluster)]


@BOTH
def test_a_controller_that_starts_anew_makes_none_twice(dialect: Dialect) -> None:
    cluster = started(dialect)
    cluster.advance(90)
    before = jobs(cluster, dialect)
    cluster.restart(FamilyMachine(CronRule(dialect)))
    cluster.settle()
    assert jobs(cluster, dialect) == before
    end(cluster, dialect, before[0])
    cluster.delete(dialect.child, before[0])
    cluster.settle()
    assert before[0] not in jobs(cluster, dialect)


@BOTH
def test_a_job_that_goes_is_missed(dialect: Dialect) -> None:
    cluster = started(dialect)
    cluster.advance(MINUTE)
    cluster.delete(dialect.child, f"c-{FIRST}")
    cluster.settle()
    assert said(cluster)[-1][0] == ("StaleReference" if dialect is VOLCANO else "MissingJob")
    assert status(cluster, dialect)["active"] == []


@BOTH
def test_a_job_that_somebody_else_made_is_none_of_its_active_ones(dialect: Dialect) -> None:
    cluster = started(dialect, schedule="@yearly")
    cron = cluster.get(dialect.owner, "c")
    owner = {"apiVersion": dialect.job_version, "kind": "CronJob", "name": "c", "uid": cron["metadata"]["uid"]}
    meta = {"name": "by-hand", "namespace": "default", "ownerReferences": [{**owner, "controller": True}]}
    cluster.create({"apiVersion": dialect.job_version, "kind": "Job", "metadata": meta, "spec": JOBS[dialect.child]})
    cluster.settle()
    assert said(cluster)[-1][0] == ("OrphanedJob" if dialect is VOLCANO else "UnexpectedJob")
    assert status(cluster, dialect) == {"active": []}


@BOTH
def test_jobs_go_with_it(dialect: Dialect) -> None:
    cluster = started(dialect)
    cluster.advance(MINUTE)
    cluster.delete(dialect.owner, "c")
    cluster.advance(5 * MINUTE)
    assert (jobs(cluster, dialect), cluster.timers()) == ([], 0)


@BOTH
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"schedule": ""}, "spec.schedule"),
        ({"schedule": "* * *"}, "spec.schedule"),
        ({"schedule": "TZ=UTC * * * * *"}, "spec.schedule"),
        ({"timeZone": ""}, "spec.timeZone"),
        ({"timeZone": "Local"}, "spec.timeZone"),
        ({"timeZone": "Nowhere/City"}, "spec.timeZone"),
        ({"concurrencyPolicy": "Sometimes"}, "spec.concurrencyPolicy"),
        ({"successfulJobsHistoryLimit": -1}, "spec.successfulJobsHistoryLimit"),
        ({"name": "c" * 53}, "metadata.name"),
    ],
)
def test_what_it_must_be_like(dialect: Dialect, spec: Object, field: str) -> None:
    cluster = Cluster()
    refused = cluster.refused(cron_job(dialect, **spec))
    assert [cause["field"] for cause in refused.details["causes"]] == [field]
    cluster.create(cron_job(dialect))
    if "name" not in spec:
        assert isinstance(cluster.patch(dialect.owner, "c", {"spec": spec}), Refused)


def test_the_words_of_volcanos_webhook() -> None:
    refused = Cluster().refused(cron_job(VOLCANO, schedule="nonsense", timeZone="Nowhere/City"))
    assert "schedule is not a valid cron expression" in refused.message
    assert "invalid timeZone" in refused.message


def test_the_template_of_kubernetes_is_looked_at() -> None:
    cron = cron_job(KUBERNETES)
    cron["spec"]["jobTemplate"]["spec"] = {"template": {"spec": {"containers": [{"name": "c"}]}}}
    refused = Cluster().refused(cron)
    assert [cause["field"] for cause in refused.details["causes"]] == [
        "spec.jobTemplate.spec.template.spec.restartPolicy"
    ]


@pytest.mark.parametrize("dialect", [KUBERNETES, VOLCANO], ids=["kubernetes", "volcano"])
def test_defaults(dialect: Dialect) -> None:
    spec = Cluster().create(cron_job(dialect))["spec"]
    assert [spec[name] for name in ("concurrencyPolicy", "suspend")] == ["Allow", False]
    assert [spec[f"{name}JobsHistoryLimit"] for name in ("successful", "failed")] == [3, 1]


@BOTH
def test_schedule_that_never_comes_is_told(dialect: Dialect) -> None:
    cluster = started(dialect, schedule="59 23 31 2 *")
    cluster.advance(MINUTE)
    why = "time difference between two schedules is less than 1 second"
    head = "Error getting schedule time" if dialect is VOLCANO else "invalid schedule"
    assert ("InvalidSchedule", f"{head}: {why}") in said(cluster)

"""Admission of Volcano Jobs: defaults, and each rule at its field."""

from collections.abc import Callable

import pytest

from pumice.cluster.api.admission.rules import MOST_PODS
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.jobs import job_task, vcjob
from tests.kit.queues import queue

Change = Callable[[Object], object]


def causes(reply: Refused) -> list[tuple[str, str]]:
    assert (reply.code, reply.reason) == (422, "Invalid")
    return [(cause["field"], cause["reason"].removeprefix("FieldValue")) for cause in reply.details["causes"]]


# --- defaults


def test_a_bare_job_gets_volcanos_defaults(cluster: Cluster) -> None:
    task: Object = {"replicas": 3, "template": job_task()["template"]}
    bare = {**vcjob("j"), "spec": {"tasks": [task, {**task, "replicas": 2, "minAvailable": 1}]}}
    spec = cluster.create(bare)["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "volcano", 3)
    assert [each["name"] for each in spec["tasks"]] == ["default0", "default1"]
    assert [each["minAvailable"] for each in spec["tasks"]] == [3, 1]
    assert [each["maxRetry"] for each in spec["tasks"]] == [3, 3]
    assert spec["minAvailable"] == 4


def test_what_is_given_stays(cluster: Cluster) -> None:
    given = vcjob("j", job_task("a", replicas=4, min_available=2), min_available=3, max_retry=7)
    spec = cluster.create(given)["spec"]
    assert (spec["minAvailable"], spec["maxRetry"], spec["tasks"][0]["minAvailable"]) == (3, 7, 2)


def test_frameworks_bring_the_plugins_they_need(cluster: Cluster) -> None:
    job = vcjob("j", job_task("master"))
    job["spec"]["plugins"] = {"mpi": ["--master=master"]}
    assert cluster.create(job)["spec"]["plugins"] == {"mpi": ["--master=master"], "svc": [], "ssh": []}


def test_partitions_set_the_minimum(cluster: Cluster) -> None:
    task = job_task(replicas=6) | {"partitionPolicy": {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}}
    spec = cluster.create(vcjob("j", task) | {})["spec"]
    assert spec["tasks"][0]["minAvailable"] == 4


def test_a_job_is_larger_than_any_node_and_welcome(cluster: Cluster) -> None:
    cluster.create(vcjob("j", job_task(cpu="100000", memory="100Ti")))


def numa(task: Object, policy: str, **resources: Object) -> None:
    task["topologyPolicy"] = policy
    task["template"]["spec"]["containers"][0]["resources"] = resources


@pytest.mark.parametrize(
    ("policy", "resources"),
    [("none", {"requests": {"cpu": "1500m"}}), ("restricted", {"limits": {"cpu": "2"}})],
)
def test_task_with_whole_cpus_or_without_numa_policy_is_taken(cluster: Cluster, policy: str, resources: Object) -> None:
    job = vcjob("j", job_task())
    numa(job["spec"]["tasks"][0], policy, **resources)
    cluster.create(job)


def test_partitioned_task_keeps_its_size_when_scaled(cluster: Cluster) -> None:
    cluster.create(vcjob("j", job_task(replicas=4) | {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}))
    tasks = cluster.get("Job", "j")["spec"]["tasks"]
    tasks[0] |= {"replicas": 3, "minAvailable": 3}
    reply = cluster.patch("Job", "j", {"spec": {"tasks": tasks, "minAvailable": 3}})
    assert isinstance(reply, Refused)
    assert causes(reply) == [("spec.tasks[0].partitionPolicy.totalPartitions", "Invalid")]


def test_job_whose_later_pods_have_long_names_is_taken(cluster: Cluster) -> None:
    """The name with the task's number has 63 letters, those of the pods from number 10 on have more."""
    cluster.create(vcjob("j" * 59, job_task("t", replicas=20)))
    assert causes(cluster.refused(vcjob("j" * 60, job_task("t")))) == [("spec.tasks[0].name", "Invalid")]


# --- refusals

CASES: list[tuple[str, Change, tuple[str, str]]] = [
    ("no tasks", lambda s: s.pop("tasks"), ("spec.tasks", "Required")),
    ("minAvailable above replicas", lambda s: s.update(minAvailable=4), ("spec.minAvailable", "Invalid")),
    ("negative minAvailable", lambda s: s.update(minAvailable=-1), ("spec.minAvailable", "Invalid")),
    ("negative maxRetry", lambda s: s.update(maxRetry=-1), ("spec.maxRetry", "Invalid")),
    ("negative ttl", lambda s: s.update(ttlSecondsAfterFinished=-1), ("spec.ttlSecondsAfterFinished", "Invalid")),
    ("minSuccess 0", lambda s: s.update(minSuccess=0), ("spec.minSuccess", "Invalid")),
    ("unknown queue", lambda s: s.update(queue="nowhere"), ("spec.queue", "NotFound")),
    ("root queue", lambda s: s.update(queue="root"), ("spec.queue", "Forbidden")),
    ("duplicate task", lambda s: s["tasks"][1].update(name="a"), ("spec.tasks[1].name", "Duplicate")),
    ("task name", lambda s: s["tasks"][1].update(name="A b"), ("spec.tasks[1].name", "Invalid")),
    (
        "negative replicas",
        lambda s: s["tasks"][0].update(replicas=-1, minAvailable=-1),
        ("spec.tasks[0].replicas", "Invalid"),
    ),
    ("task minimum", lambda s: s["tasks"][0].update(minAvailable=3), ("spec.tasks[0].minAvailable", "Invalid")),
    ("plugin", lambda s: s.update(plugins={"nothing": []}), ("spec.plugins[nothing]", "Invalid")),
    ("mpi without master", lambda s: s.update(plugins={"mpi": []}), ("spec.plugins[mpi]", "Invalid")),
    (
        "container name",
        lambda s: s["tasks"][0]["template"]["spec"]["containers"][0].update(name="A"),
        ("spec.tasks[0].template.spec.containers[0].name", "Invalid"),
    ),
    (
        "no containers",
        lambda s: s["tasks"][0]["template"]["spec"].update(containers=[]),
        ("spec.tasks[0].template.spec.containers", "Required"),
    ),
    (
        "negative request",
        lambda s: s["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["requests"].update(cpu="-1"),
        ("spec.tasks[0].template.spec.containers[0].resources.requests[cpu]", "Invalid"),
    ),
    (
        "both tiers",
        lambda s: s.update(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
        ("spec.networkTopology", "Forbidden"),
    ),
    (
        "unknown dependency",
        lambda s: s["tasks"][0].update(dependsOn={"name": ["z"]}),
        ("spec.tasks[0].dependsOn.name", "NotFound"),
    ),
    (
        "iteration",
        lambda s: s["tasks"][0].update(dependsOn={"name": ["b"], "iteration": "some"}),
        ("spec.tasks[0].dependsOn.iteration", "NotSupported"),
    ),
    (
        "volume without path",
        lambda s: s.update(volumes=[{"volumeClaimName": "c"}]),
        ("spec.volumes[0].mountPath", "Required"),
    ),
    (
        "volume without claim",
        lambda s: s.update(volumes=[{"mountPath": "/a"}]),
        ("spec.volumes[0].volumeClaimName", "Required"),
    ),
    (
        "volume with two claims",
        lambda s: s.update(volumes=[{"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": {}}]),
        ("spec.volumes[0].volumeClaim", "Forbidden"),
    ),
    (
        "volume twice",
        lambda s: s.update(volumes=[{"mountPath": "/a", "volumeClaimName": "c"}] * 2),
        ("spec.volumes[1].mountPath", "Duplicate"),
    ),
    (
        "partition size",
        lambda s: s["tasks"][0].update(partitionPolicy={"totalPartitions": 2, "partitionSize": 0}),
        ("spec.tasks[0].partitionPolicy.partitionSize", "Invalid"),
    ),
    (
        "partitions do not add up",
        lambda s: s["tasks"][0].update(partitionPolicy={"totalPartitions": 2, "partitionSize": 2}),
        ("spec.tasks[0].partitionPolicy.totalPartitions", "Invalid"),
    ),
    (
        "claim without a valid name",
        lambda s: s.update(volumes=[{"mountPath": "/a", "volumeClaimName": "C"}]),
        ("spec.volumes[0].volumeClaimName", "Invalid"),
    ),
    (
        "part of a CPU for a NUMA policy",
        lambda s: numa(s["tasks"][0], "restricted", requests={"cpu": "1500m"}),
        ("spec.tasks[0].topologyPolicy", "Invalid"),
    ),
    (
        "no CPU for a NUMA policy",
        lambda s: numa(s["tasks"][0], "best-effort", requests={"memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"}),
        ("spec.tasks[0].topologyPolicy", "Invalid"),
    ),
    ("replicas as text", lambda s: s["tasks"][0].update(replicas="many"), ("spec.tasks[0].replicas", "TypeInvalid")),
    ("tasks as text", lambda s: s.update(tasks="all"), ("spec.tasks", "TypeInvalid")),
]


@pytest.mark.parametrize(("change", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_rule_names_its_field(cluster: Cluster, change: Change, expected: tuple[str, str]) -> None:
    job = vcjob("j", job_task("a", replicas=2), job_task("b"))
    change(job["spec"])
    reply = cluster.refused(job)
    assert expected in causes(reply)
    assert 'Job.batch.volcano.sh "j" is invalid: ' in reply.message


def test_the_reasons_are_in_words(cluster: Cluster) -> None:
    reply = cluster.refused(vcjob("j", job_task(replicas=2), min_available=3, queue="x"))
    assert reply.message == (
        'admission webhook "validatejob.volcano.sh" denied the request: '
        "Job.batch.volcano.sh \"j\" is invalid: [spec.minAvailable: Invalid value: 3: job 'minAvailable' should not be "
        'greater than total replicas in tasks (2), spec.queue: Not found: "x": queue "x" does not exist]'
    )


WORDS: list[tuple[Change, str]] = [
    (lambda s: s.pop("tasks"), "No task specified in job spec"),
    (lambda s: s["tasks"][0].update(minAvailable=3), "'minAvailable' is greater than 'replicas' in task: a"),
    (lambda s: s.update(policies=[{"action": "AbortJob"}]), "either event and exitCode should be specified"),
    (lambda s: s.update(policies=[{"event": "PodFailed", "action": "Dance"}]), "invalid policy action"),
    (lambda s: s.update(policies=[{"exitCode": 1, "action": "AbortJob"}] * 2), "duplicate exitCode 1"),
    (lambda s: s.update(volumes=[{"mountPath": "/a", "volumeClaimName": "c"}] * 2), "duplicated mountPath: /a"),
    (lambda s: s.update(volumes=[{"mountPath": "/a"}]), "either VolumeClaim or VolumeClaimName must be specified"),
]


@pytest.mark.parametrize(("change", "words"), WORDS)
def test_scripts_find_the_words_of_volcanos_webhook(cluster: Cluster, change: Change, words: str) -> None:
    job = vcjob("j", job_task("a", replicas=2), job_task("b"))
    change(job["spec"])
    assert words in cluster.refused(job).message


def test_dependencies_go_round_in_no_circle(cluster: Cluster) -> None:
    circle = [job_task("a", depends_on=["b"]), job_task("b", depends_on=["c"]), job_task("c", depends_on=["a"])]
    assert causes(cluster.refused(vcjob("j", *circle))) == [("spec.tasks", "Invalid")]
    cluster.create(vcjob("k", job_task("a", depends_on=["b"]), job_task("b", depends_on=["c"]), job_task("c")))


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ([{"event": "PodFailed", "action": "RestartJob"}, {"event": "PodFailed", "action": "AbortJob"}], "[1].event"),
        ([{"events": ["PodFailed", "Nonsense"], "action": "RestartJob"}], "[0].event"),
        ([{"event": "OutOfSync", "action": "RestartJob"}], "[0].event"),
        ([{"event": "PodFailed", "action": "SyncJob"}], "[0].action"),
        ([{"event": "PodFailed"}], "[0].action"),
        ([{"event": "PodFailed", "exitCode": 3, "action": "RestartJob"}], "[0]"),
        ([{"action": "RestartJob"}], "[0]"),
        ([{"exitCode": 0, "action": "RestartJob"}], "[0].exitCode"),
        ([{"exitCode": 3, "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}], "[1].exitCode"),
        ([{"event": "*", "action": "RestartJob"}, {"event": "PodFailed", "action": "AbortJob"}], ""),
    ],
)
def test_policies(cluster: Cluster, policies: list[Object], expected: str) -> None:
    assert [field for field, _ in causes(cluster.refused(vcjob("j", policies=policies)))] == [
        f"spec.policies{expected}"
    ]
    in_task = vcjob("j", job_task(policies=policies))
    assert [field for field, _ in causes(cluster.refused(in_task))] == [f"spec.tasks[0].policies{expected}"]


def test_the_queue_is_open_and_a_leaf(cluster: Cluster) -> None:
    cluster.create(queue("parent"))
    cluster.create(queue("child", parent="parent"))
    assert "has 1 child queues" in cluster.refused(vcjob("j", queue="parent")).message
    cluster.create(vcjob("j", queue="child"))
    cluster.status("Queue", "child", {"state": "Closed"}, "")
    assert "queue `child` status is `Closed`" in cluster.refused(vcjob("k", queue="child")).message


# --- updates


def test_a_job_can_be_scaled(cluster: Cluster) -> None:
    cluster.create(vcjob("j", job_task(replicas=2)))
    tasks = cluster.get("Job", "j")["spec"]["tasks"]
    tasks[0] |= {"replicas": 5, "minAvailable": 4}
    assert isinstance(cluster.patch("Job", "j", {"spec": {"tasks": tasks, "minAvailable": 4}}), Accepted)
    assert cluster.get("Job", "j")["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"minAvailable": 9}, "spec.minAvailable"),
        ({"queue": "other"}, "spec"),
        ({"maxRetry": 9}, "spec"),
        ({"tasks": []}, "spec.tasks"),
    ],
)
def test_nothing_else_may_change(cluster: Cluster, patch: Object, field: str) -> None:
    cluster.create(vcjob("j", job_task(replicas=2)))
    reply = cluster.patch("Job", "j", {"spec": patch})
    assert isinstance(reply, Refused)
    assert [name for name, _ in causes(reply)] == [field]


@pytest.mark.parametrize("counts", [(MOST_PODS, 1), (2_000_000_000,)])
def test_a_job_has_no_more_pods_than_a_cluster_holds(cluster: Cluster, counts: tuple[int, ...]) -> None:
    tasks = [job_task(f"t{number}", replicas=count) for number, count in enumerate(counts)]
    assert causes(cluster.refused(vcjob("huge", *tasks, min_available=1))) == [("spec.tasks", "Invalid")]
    cluster.create(vcjob("most", job_task(replicas=MOST_PODS), min_available=1))

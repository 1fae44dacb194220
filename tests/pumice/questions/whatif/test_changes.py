"""Each change does what its words say, is named by them, and is refused in a sentence where it is impossible."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.errors import InputError
from pumice.questions.whatif import changes
from pumice.questions.whatif.ask import Chronicle, lived_with, what_if
from pumice.questions.whatif.changes import ForkChange, assignment_of, changed
from pumice.questions.whatif.search.starting import starts_s
from tests.kit.budgets import budget
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.questions.whatif.clusters import BEGAN, config_text, parsed

OBJECTS = (
    node("n0", cpu="4", labels={"kubernetes.io/hostname": "n0", "pool": "x"}, unschedulable=True),
    node("n1", cpu="4"),
    queue("q1"),
    *gang("runs", pods=2, nodes=["n1", "n1"], phase="Running", duration="20s"),
    *gang("waits", pods=4, cpu="2", queue="q1", duration="10s"),
    vcjob("job", job_task(replicas=2, cpu="1", duration="30s"), queue="q1"),
)
FORK = Fork(OBJECTS, BEGAN, parsed(config_text(0)))


def unheard(*_: object) -> None:
    """Nobody looks on."""


def the(fork: Fork, kind: str, name: str) -> dict[str, object]:
    return next(obj for obj in fork.objects if (obj["kind"], obj["metadata"]["name"]) == (kind, name))


def starts(change: ForkChange, job: str = "default/waits") -> float | None:
    return lived_with(FORK, [change], 60.0).jobs[job].start_s


def test_as_it_is_the_gang_waits_for_the_node_and_does_not_get_it() -> None:
    future = lived_with(FORK, [], 60.0)
    assert future.jobs["default/waits"].start_s is None
    assert future.pending["default/waits"].code == "LargerThanCluster"
    assert (future.jobs["default/runs"].start_s, future.jobs["default/runs"].end_s) == (0.0, 20.0)


def test_nodes_like_one_are_empty_open_and_called_otherwise() -> None:
    after = changed(FORK, [changes.add_nodes("2:like=n0")])
    more = [obj for obj in after.objects if obj["metadata"]["name"].startswith("n0-more-")]
    assert [obj["metadata"]["name"] for obj in more] == ["n0-more-0", "n0-more-1"]
    assert more[0]["metadata"]["labels"] == {"kubernetes.io/hostname": "n0-more-0", "pool": "x"}
    assert "unschedulable" not in more[0]["spec"]
    assert starts(changes.add_nodes("2:like=n0")) == 0.0


def test_a_field_of_any_object_is_set() -> None:
    assert starts(changes.set_field("node/n0:spec.unschedulable=null")) == 30.13  # when the Job has ended
    assert the(changed(FORK, [changes.set_field("q/q1:spec.capability={cpu: 2}")]), "Queue", "q1")["spec"] == {
        "weight": 1,
        "capability": {"cpu": 2},
    }


def test_what_a_job_told_its_group_is_to_be_set_there() -> None:
    life = Life(
        replace(FORK, objects=(node("n2", cpu="1"), queue("q1"), queue("q2"), OBJECTS[-1])),
        0,
        unheard,
        unheard,
    )
    life.run(2.0)
    fork = life.fork()
    (group,) = [obj for obj in fork.objects if obj["kind"] == "PodGroup"]
    instead = f"podgroup/default/{group['metadata']['name']}:spec.queue"
    with pytest.raises(InputError, match=f"set {instead} instead"):
        changed(fork, [changes.set_field("job/job:spec.queue=q2")])
    after = changed(fork, [changes.set_field(f"{instead}=q2")])
    assert [obj["spec"]["queue"] for obj in after.objects if obj["kind"] == "PodGroup"] == ["q2"]
    assert changed(fork, [changes.set_field("job/job:spec.maxRetry=2")])
    assert changed(FORK, [changes.set_field("job/job:spec.queue=q2")])  # it has none yet


@pytest.mark.parametrize(
    ("assigned", "path"),
    [
        ("metadata.name=c", "metadata.name"),
        ("metadata.namespace=c", "metadata.namespace"),
        ("metadata.uid=c", "metadata.uid"),
        ("metadata={name: c}", "metadata.name"),
        ("kind=Node", "kind"),
        ("apiVersion=v1", "apiVersion"),
    ],
)
def test_no_object_becomes_another(assigned: str, path: str) -> None:
    with pytest.raises(InputError, match=f"{path} says which object it is"):
        changed(FORK, [changes.set_field(f"queue/q1:{assigned}")])
    assert changed(FORK, [changes.set_field('queue/q1:metadata.labels["a/b"]=c')])


def test_a_beginning_just_before_the_first_moment_is_zero_and_not_below() -> None:
    told = Chronicle(BEGAN, BEGAN + 60.0)
    told.had_to_go(pod("p", node="n1"), BEGAN - 1e-4, "drain")
    assert [str(each.at_s) for each in told.told_evictions()] == ["0.0"]


def test_a_submitted_job_comes() -> None:
    found = what_if(FORK, [changes.submit([vcjob("new", job_task(cpu="1"))], "--submit x")], 60.0)
    assert found.jobs["default/new"].code == "Comes"
    assert not found.same


def test_a_drained_node_loses_its_pods_unless_a_budget_keeps_them() -> None:
    assert lived_with(FORK, [changes.drain("n1")], 60.0).jobs["default/runs"].end_s == 1.0
    kept = replace(FORK, objects=(*OBJECTS, budget("keep", minAvailable=2, selector={})))
    future = lived_with(kept, [changes.drain("n1")], 60.0)
    assert future.jobs["default/runs"].end_s == 20.0
    assert len(future.denied) == 2
    assert future.evictions == ()


def test_a_removed_node_takes_its_pods_along_when_that_is_noticed() -> None:
    assert lived_with(FORK, [changes.remove_node("n1")], 60.0).jobs["default/runs"].end_s == 40.0


@pytest.mark.parametrize(
    ("make", "action", "at_s"), [(changes.drain, "drain", 0.0), (changes.remove_node, "remove-node", 40.0)]
)
def test_who_has_to_go_with_a_node_is_told_and_whether_it_comes_back(
    make: Callable[[str], ForkChange], action: str, at_s: float
) -> None:
    train = vcjob("train", job_task(replicas=1, cpu="1", duration="300s"))
    train["spec"]["policies"] = [{"event": "PodEvicted", "action": "RestartJob"}]
    life = Life(replace(FORK, objects=(node("n2", cpu="1"), train)), 0, unheard, unheard)
    life.run(5.0)
    fork = replace(life.fork(), objects=(*life.fork().objects, node("n3", cpu="1")))
    future = lived_with(fork, [make("n2")], 120.0)
    (gone,) = future.evictions
    assert (gone.pod, gone.job, gone.node) == ("default/train-worker-0", "default/train", "n2")
    assert (gone.by, gone.action, gone.at_s) == ("", action, at_s)
    assert gone.returns_s is not None
    assert gone.returns_s > at_s
    assert future.jobs["default/train"].evictions == 1
    (other,) = [each for each in lived_with(FORK, [make("n1")], 60.0).evictions if each.pod == "default/runs-0"]
    assert other.returns_s is None


def test_a_job_that_waits_to_make_its_evicted_pods_again_has_not_ended() -> None:
    train = vcjob("train", job_task(replicas=4, cpu="2", duration="20s"))
    train["spec"]["policies"] = [{"event": "PodEvicted", "action": "RestartTask"}]
    after = node("n2", cpu="4"), node("n3", cpu="4"), queue("q1"), train
    life = Life(replace(FORK, objects=after), 0, unheard, unheard)
    life.run(5.0)
    future = lived_with(life.fork(), [changes.remove_node("n3")], 60.0)
    assert (future.jobs["default/train"].start_s, future.jobs["default/train"].end_s) == (0.0, None)
    assert future.pending["default/train"].pods > 0


def test_a_job_that_runs_and_is_deleted_does_not_end() -> None:
    fork = replace(FORK, objects=(node("n2", cpu="4"), queue("q1"), OBJECTS[-1]))
    life = Life(fork, 0, unheard, unheard)
    life.run(5.0)
    running = what_if(life.fork(), [changes.delete("job/job")], 60.0)
    assert (running.jobs["default/job"].code, running.after.jobs["default/job"].end_s) == ("Goes", None)


def test_a_job_without_pods_in_one_future_stays_a_job() -> None:
    """Not admitted, it has no pods there."""
    large = vcjob("large", job_task(replicas=1, cpu="12", duration="10s"))
    fork = replace(FORK, objects=(node("n0", cpu="4"), queue("q1"), large))
    found = what_if(fork, [changes.submit([node("big", cpu="16")], "--submit x")], 60.0)
    assert found.jobs["default/large"].code == "Starts"
    assert found.before.jobs["default/large"].pods == 0


def test_deleted_and_scaled_jobs() -> None:
    deleted = what_if(FORK, [changes.delete("job/job")], 60.0)
    assert (deleted.jobs["default/job"].code, deleted.after.jobs["default/job"].gone_s) == ("Goes", 0.0)
    back = what_if(FORK, [changes.cordon("n0")], 60.0, against=[changes.delete("job/job")])
    assert back.jobs["default/job"].code == "Comes"
    assert lived_with(FORK, [changes.scale("vcjob/job:worker=4")], 60.0).jobs["default/job"].pods == 4
    assert lived_with(FORK, [changes.cordon("n1")], 60.0).jobs["default/job"].start_s is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: changes.add_nodes("many:like=n0"), "COUNT:like=NODE"),
        (lambda: changes.add_nodes("1:like=n7"), "Node n7 does not exist"),
        (lambda: changes.add_nodes(f"{'9' * 5000}:like=n0"), "COUNT:like=NODE"),
        (lambda: changes.scale(f"job/job={'9' * 5000}"), "KIND/NAME[:TASK]=COUNT"),
        (lambda: changes.scale("job/job=9999999"), "must not have more than 150000 replicas in all"),
        (lambda: changes.set_field("queue/q1"), "KIND/NAME:PATH=VALUE"),
        (lambda: changes.set_field("queue/q1:spec.weight"), "a path and a value"),
        (lambda: changes.set_field("quue/q1:spec.weight=1"), "did you mean 'queue'"),
        (lambda: changes.set_field("queue/a/q1:spec.weight=1"), "in no namespace"),
        (lambda: changes.set_field("queue/q1:spec.weight.x=1"), "no fields"),
        (lambda: changes.set_field("job/job:spec.tasks[3].replicas=1"), "no number 3"),
        (lambda: changes.set_field("job/job:spec.tasks[name=x].replicas=1"), "no element has name=x"),
        (lambda: changes.set_field("queue/q1:spec.weight=-4"), "should be greater than or equal to 1"),
        (lambda: changes.set_field("queue/q1:spec.wieght=4"), "has no field 'spec.wieght', did you mean 'weight'?"),
        (lambda: changes.set_field("job/job:spec.tasks[name=worker].replica=1"), "did you mean 'replicas'?"),
        (lambda: changes.set_field("node/n1:spec.unschedulabl=true"), "did you mean 'unschedulable'?"),
        (lambda: changes.scale("queue/q1=3"), "has no replicas"),
        (lambda: changes.scale("job/job:x=3"), "no task 'x'"),
        (lambda: changes.scale("job/job=many"), "KIND/NAME[:TASK]=COUNT"),
        (lambda: changes.delete("job/jobb"), "near: default/job"),
        (lambda: changes.submit(OBJECTS[:1], "--submit x"), "already exists"),
    ],
)  # fmt: skip
def test_what_is_impossible_is_said(make: Callable[[], ForkChange], said: str) -> None:
    with pytest.raises(InputError) as caught:
        lived_with(FORK, [make()], 1.0)
    assert said in str(caught.value)


@given(st.lists(st.text("abc", min_size=1), min_size=1, max_size=4), st.integers())
def test_what_is_set_at_a_path_stands_there(names: list[str], value: int) -> None:
    obj: Any = assignment_of(f"{'.'.join(names)}={value}").on({})
    for name in names:
        obj = obj[name]
    assert obj == value


def test_the_given_objects_stay_as_they_are() -> None:
    before = repr(FORK.objects)
    changed(FORK, [changes.cordon("n1"), changes.scale("job/job=7"), changes.add_nodes("1:like=n0")])
    assert repr(FORK.objects) == before


def test_who_lives_through_a_future_makes_no_difference() -> None:
    change, twice = [changes.scale("job/job=3")], [changes.cordon("n1")]
    with ThreadPoolExecutor(1) as executor:
        beside = what_if(FORK, change, 60.0, against=twice, executor=executor)
        assert beside == what_if(FORK, change, 60.0, against=twice)
        with pytest.raises(InputError, match="should be greater than or equal to 1"):
            what_if(FORK, change, 60.0, against=[changes.set_field("queue/q1:spec.weight=-4")], executor=executor)


def test_a_change_without_effect_changes_nothing() -> None:
    assert what_if(FORK, [changes.set_field("queue/q1:metadata.labels.a=b")], 60.0).same


def test_what_was_there_keeps_its_uids_when_more_comes_by_the_same_seed() -> None:
    """New nodes are handed in before jobs and pods, whose uids may have been drawn from that seed, too."""

    def living(fork: Fork) -> Life:
        return Life(fork, 0, lambda mutation, at: None, lambda result, at: None)

    before = living(FORK).fork()
    after = living(changed(before, [changes.nodes_like("n1", len(before.objects))])).fork()
    uids = {(obj["kind"], obj["metadata"]["name"]): obj["metadata"]["uid"] for obj in after.objects}
    for obj in before.objects:
        assert uids[obj["kind"], obj["metadata"]["name"]] == obj["metadata"]["uid"]
    assert len(set(uids.values())) == len(uids)


@pytest.mark.parametrize(("before", "after", "start_s"), [(2, 1, 0.0), (1, 2, 15.0)], ids=["lowered", "raised"])
@pytest.mark.parametrize("field", ["job/two:spec.minAvailable", "podgroup/default/two:spec.minMember"])
def test_a_job_starts_by_the_minimum_that_it_has_now(field: str, before: int, after: int, start_s: float) -> None:
    """One pod has room immediately, the other after 15 s; whoever looks only for the start says the same. A job has
    a group by then, which its controller changes.
    """
    other = gang("other", pods=1, cpu="2", nodes=["n2"], phase="Running", duration="20s")
    two = gang("two", pods=2, min_member=before, cpu="2")
    if field.startswith("job"):
        two = [vcjob("two", job_task(replicas=2, cpu="2"), min_available=before)]
    life = Life(replace(FORK, objects=(node("n2", cpu="4"), *other, *two)), 0, unheard, unheard)
    life.run(5.0)
    fork, change = life.fork(), changes.set_field(f"{field}={after}")
    found = lived_with(fork, [change], 60.0).jobs["default/two"].start_s
    assert found == starts_s(changed(fork, [change]), "default/two", 60.0) == pytest.approx(start_s, abs=0.5)


def test_who_is_made_again_at_the_moment_of_its_eviction_comes_back() -> None:
    """And nobody who was there before, be it of that moment too, is taken for who came in the place of another."""
    two = node("n2", cpu="1"), node("n3", cpu="1"), vcjob("two", job_task(replicas=2))
    life = Life(replace(FORK, objects=two), 0, unheard, unheard)
    life.run(5.0)
    fork = life.fork()
    (gone,) = lived_with(fork, [changes.drain("n2")], 120.0).evictions
    assert (gone.at_s, gone.returns_s) == (0.0, None)
    (gone,) = lived_with(fork, [changes.remove_node("n2")], 120.0).evictions
    assert (gone.at_s, gone.returns_s) == (40.0, None)
    with_more = replace(fork, objects=(*fork.objects, node("n4", cpu="1")))
    (gone,) = lived_with(with_more, [changes.remove_node("n2")], 120.0).evictions
    assert gone.at_s == 40.0
    assert gone.returns_s == pytest.approx(40.0, abs=0.5)

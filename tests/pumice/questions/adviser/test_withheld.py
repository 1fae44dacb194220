# SPDX-License-Identifier: Apache-2.0
"""Answers for a user of one namespace: nothing of another one is in them, whatever is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.actors.gateway.advice import KINDS, AdviserQuestion
from pumice.questions.adviser.answers import answer
from pumice.questions.adviser.withheld import ANOTHER, Withholding
from tests.pumice.cli.terminal import pumice


def job(namespace: str, name: str, pods: int, cpu: int, **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}}
    annotations = {"pumice.dev/duration": "0"}
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [container], "restartPolicy": "Never"}}
    task = {"name": "w", "replicas": pods, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulerName": "volcano", "minAvailable": pods, "tasks": [task], **more},
    }


QUESTIONS = (
    AdviserQuestion("standings"),
    AdviserQuestion("waitclasses"),
    AdviserQuestion("estimates", query=(("samples", "2"), ("horizon", "1h"))),
    AdviserQuestion("estimates", "red", "mine", (("samples", "2"), ("horizon", "1h"))),
    AdviserQuestion("explanations", "red", "mine"),
    AdviserQuestion("explanations", "red", "mine", (("budget", "2"),)),
    AdviserQuestion("explanations", "red", "mine-w-0", (("of", "pod"),)),
    AdviserQuestion("explanations", "red", "theirs"),
    AdviserQuestion("explanations", "red", "theirs-w-0", (("of", "pod"),)),
    AdviserQuestion("stories", "red", "mine"),
    AdviserQuestion("stories", "red", "theirs"),
    AdviserQuestion("measures"),
    AdviserQuestion("cycles", name="newest"),
    AdviserQuestion("cycles", name="1"),
    AdviserQuestion("cycles", name="newest", query=(("task", "red/mine-w-0"),)),
    *(
        AdviserQuestion("whatifs", body=json.dumps({"changes": [change], "horizon": "1h"}).encode())
        for change in (
            {"scale": "job/red/mine:w=1"},
            {"delete": "job/red/mine"},
            {"delete": "job/red/theirs"},
            {"set": "job/red/mine:spec.minAvailable=1"},
            {"submit": [job("red", "urgent", 2, 7, priorityClassName="high")]},
        )
    ),
)
OTHERS: tuple[dict[str, Any], ...] = (
    {"delete": "job/blue/theirs"},
    {"delete": "job/blue/none"},
    {"delete": "node/n1"},
    {"delete": "secret/red/s"},
    {"scale": "job/blue/theirs:w=1"},
    {"set": "job/blue/theirs:spec.queue=q"},
    {"set": "queue/default:spec.weight=3"},
    {"addNodes": "1:like=n1"},
    {"cordon": "n1"},
    {"drain": "n1"},
    {"removeNode": "n1"},
    {"config": "actions: allocate"},
    {"submit": [job("blue", "new", 1, 1)]},
    {"submit": [{"apiVersion": "v1", "kind": "List", "items": [job("blue", "theirs", 1, 1)]}]},
    {"submit": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}]},
    {"submit": [{"metadata": []}]},
    {"submit": ["blue"]},
    {"submit": "blue"},
    {"set": ["blue"]},
    {"nothing": "blue"},
)
"""Changes of what a user of `red` may not see, or that are none."""


POD_NAMES = ("theirs-w-0", "nothing-w-0")
CONF = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf, enablePreemptable: false}, {name: predicates}, {name: nodeorder}]
"""


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A full cluster: a job of another namespace holds it, and one of each waits."""
    folder = tmp_path_factory.mktemp("withheld")
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": allocatable, "capacity": allocatable, "conditions": ready}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}, "status": status}
        for number in range(3)
    ]
    group = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    classes = [{**group, "metadata": {"name": name}, "value": value} for name, value in (("high", 99), ("middle", 9))]
    jobs = [
        job("blue", "theirs", 3, 7, minAvailable=1, priorityClassName="middle"),
        job("blue", "theirs-too", 2, 3),
        job("red", "mine", 2, 2),
    ]
    items = [*nodes, *classes, *jobs]
    (folder / "conf.yaml").write_text(CONF)
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    said = pumice(
        "run",
        "-f",
        folder / "all.json",
        "--db",
        folder / "all.db",
        "--time",
        "virtual",
        "--until",
        "30s",
        "-q",
        "--config",
        folder / "conf.yaml",
    )
    assert said.code in (0, 130), said.err
    return folder / "all.db"


def test_no_answer_names_or_counts_what_its_asker_may_not_see(journal: Path) -> None:
    for question in QUESTIONS:
        whole, part = (answer(str(journal), None, question._replace(sees=sees)) for sees in (None, ("red",)))
        assert part.code == whole.code, question
        text = (part.body.decode() + part.message).replace('"name":"theirs', "").replace("red/theirs", "")
        assert "theirs" not in text, (question, text)
        assert "blue" not in text, (question, text)
        if "theirs" in whole.body.decode() and part.code == 200:
            assert json.loads(part.body)["more"] is True, question


def asked_of(journal: Path, change: Any, *sees: str) -> tuple[int, str, dict[str, Any]]:
    """Return code, message and body of a what-if, for all namespaces where none is named."""
    body = json.dumps({"changes": [change], "horizon": "1h"}).encode()
    found = answer(str(journal), None, AdviserQuestion("whatifs", body=body, sees=sees or None))
    return found.code, found.message, json.loads(found.body) if found.body else {}


def test_a_what_if_shows_evictions_of_own_pods_alone(journal: Path) -> None:
    urgent = {"submit": [job("red", "urgent", 2, 7, priorityClassName="high")]}
    _, _, whole = asked_of(journal, urgent)
    _, _, part = asked_of(journal, urgent, "red")
    assert [row["job"] for row in whole["evicted"]] == ["blue/theirs"] * 2
    assert (part["evicted"], part["more"], part["same"]) == ([], True, False)
    assert part["jobs"] == {"red/urgent": whole["jobs"]["red/urgent"]}
    assert not {"queues", "utilisation", "cycles", "unknown"} & set(part)
    # who loses pods to another namespace's job is told that, and not which
    theirs = {"submit": [job("blue", "urgent", 2, 7, priorityClassName="high")]}
    code, _, _ = asked_of(journal, theirs, "red")
    assert code == 403
    _, _, both = asked_of(journal, urgent, "red", "blue")
    assert (both["evicted"], both["more"]) == (whole["evicted"], False)


def test_changes_of_what_is_not_seen_are_refused_alike(journal: Path) -> None:
    said = {(code, message) for code, message, _ in (asked_of(journal, each, "red") for each in OTHERS)}
    ((code, message),) = said
    assert code == 403
    assert message.startswith("changes[0]: you may ask about changes of pods")


def test_a_pod_of_another_namespace_is_as_unknown_as_none(journal: Path) -> None:
    asked = AdviserQuestion("cycles", name="newest", sees=("red",))
    said = [answer(str(journal), None, asked._replace(query=(("task", f"blue/{name}"),))) for name in POD_NAMES]
    assert [each.code for each in said] == [404, 404]
    assert said[0].message.replace(POD_NAMES[0], POD_NAMES[1]) == said[1].message


def test_measures_are_of_the_seen_namespaces_alone(journal: Path) -> None:
    asked = AdviserQuestion("measures")
    whole, part = (json.loads(answer(str(journal), None, asked._replace(sees=sees)).body) for sees in (None, ("red",)))
    assert [row["job"] for row in part["jobs"]] == ["red/mine"]
    assert (whole["summary"]["jobs"], part["summary"]["jobs"], part["summary"]["pods"]) == (3, 1, 2)
    assert whole["summary"]["resources"]["cpu"]["held_s"] > part["summary"]["resources"]["cpu"]["held_s"] == 0.0
    assert part["more"] is True


def test_evictions_of_own_pods_do_not_say_for_whom() -> None:
    withholding = Withholding(("red",))
    row = {"pod": "red/a-0", "job": "red/a", "for": "blue/b", "preemptor": "blue/b-0", "votes": ["drf: 3"], "new": True}
    hidden = {**row, "pod": "blue/c-0", "job": "blue/c", "for": "red/a"}
    loop: dict[str, Any] = {"jobs": ["red/a", "blue/b"], "by": [], "queues": [], "votes": {}}
    empty: dict[str, Any] = {"jobs": {}, "pending": {}, "moved_pods": {}}
    found: dict[str, Any] = {
        **empty,
        "evicted": [row, hidden],
        "loops": [loop],
        "loops_ended": [],
        "spared": ["blue/x"],
        "moved": 7,
    }
    kept = withholding.changes({**found, "queues": {"q": 1}, "same": False})
    redacted = {**row, "for": ANOTHER, "preemptor": ANOTHER, "votes": []}
    assert kept == {**found, "evicted": [redacted], "loops": [], "spared": [], "moved": 0, "same": False}
    assert withholding.answer(kept) == {**kept, "more": True}
    decided: dict[str, Any] = {
        "binds": [{"namespace": "blue", "name": "x"}],
        "digest": "d",
        "took": {},
        "turns": [],
        "endings": {},
    }
    evict = {"namespace": "red", "name": "a-0", "preemptor": "blue/b-0"}
    kept = Withholding(("red",)).cycle({**decided, "evicts": [evict, {**evict, "namespace": "blue"}]})
    assert (kept["binds"], kept["evicts"], "digest" in kept) == ([], [{**evict, "preemptor": ANOTHER}], False)


def test_a_list_counts_anew_and_says_that_there_is_more(journal: Path) -> None:
    asked = AdviserQuestion("standings", sees=("red",))
    standings = json.loads(answer(str(journal), None, asked).body)
    assert [(row["made_for"], row["position"]) for row in standings["waiting"]] == [("red/mine", 1)]
    assert sum(standings["classes"].values()) == 1
    assert (standings["queues"], standings["more"], standings["schema"]) == ({}, True, "queue/1")
    counts = json.loads(answer(str(journal), None, AdviserQuestion("waitclasses", sees=("red",))).body)["counts"]
    assert [each["jobs"] for each in counts] == [1]
    everything = json.loads(answer(str(journal), None, asked._replace(sees=("red", "blue"))).body)
    assert (len(everything["waiting"]), everything["more"]) == (2, False)


def test_only_names_of_other_namespaces_are_renamed() -> None:
    withholding = Withholding(("red",))
    kept = "0/3 nodes: nvidia.com/gpu 1/2, red/mine, kubernetes.io/hostname; https://x.example/blue"
    assert withholding.text(kept) == kept
    assert not withholding.any
    assert withholding.text("waits for blue/a, blue/b-0 and 'blue/c'.") == (
        f"waits for {ANOTHER}, {ANOTHER} and '{ANOTHER}'."
    )
    row = {"job": "blue/a", "asks": {"cpu": 1}}
    found = withholding.answer({"rows": [row, {"job": "red/a"}], "before": row, "by": {"blue/a": 1, "red/a": 2}})
    assert found == {"rows": [{"job": "red/a"}], "before": None, "by": {"red/a": 2}, "more": True}


def test_each_resource_is_for_some_namespaces_or_for_the_whole() -> None:
    """Whoever adds a resource must say which: what is not about the whole cluster is asked above."""
    assert {question.resource for question in QUESTIONS} == {row.plural for row in KINDS.values() if not row.whole}

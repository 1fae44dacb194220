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
)


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
    jobs = [job("blue", "theirs", 3, 7), job("blue", "theirs-too", 2, 3), job("red", "mine", 2, 2)]
    items = [*nodes, *jobs]
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    said = pumice(
        "run", "-f", folder / "all.json", "--db", folder / "all.db", "--time", "virtual", "--until", "30s", "-q"
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

"""Objects of the right types with values that nobody writes: refused one by one, or decided about; never a crash."""

from __future__ import annotations

import os
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.cluster.api.bootstrap import assumed_queues
from pumice.core.configuration import load_scheduler_config
from pumice.load.manifests import Loaded, load_text
from pumice.questions.oneshot.cycles import Setup, run_cycles
from pumice.questions.oneshot.expand import expanded
from pumice.questions.oneshot.prepare import usable
from tests.kit.hostile import hostile_object
from tests.kit.nodes import node

EXAMPLES = int(os.environ.get("PUMICE_TEST_FUZZ", "40"))
STOCK = load_scheduler_config(None)


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 2**32))
def test_every_hostile_object_is_a_problem_or_is_decided_about(seed: int) -> None:
    chance = Random(seed)
    given_objects = [hostile_object(chance) for _ in range(4)] + [node("good")]
    fit = usable(Loaded(objects=given_objects))
    taken = fit.taken
    assert len(taken) + len(fit.problems) == len(given_objects)
    assert given_objects[-1]["metadata"]["name"] in [obj["metadata"]["name"] for obj in taken]
    grown = expanded([*assumed_queues(taken), *taken], 1.7e9).objects
    first, second = run_cycles(Setup(grown, STOCK, 1.7e9), 2)
    assert (first.result.cycle, second.result.cycle) == (1, 2)


def test_a_number_too_large_for_its_field_is_named_by_file_and_line() -> None:
    text = "\n".join(
        f"---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}}}\n"
        f"spec: {{minMember: {members}, queue: default}}"
        for name, members in (("a", "9" * 23), ("b", "1"), ("c", "99999999999"))
    )
    loaded = Loaded()
    load_text(text, "f.yaml", loaded)
    fit = usable(loaded)
    assert [obj["metadata"]["name"] for obj in fit.taken] == ["b"]
    said, whole = "spec.minMember: Invalid value:", "expected a whole number"
    group, most = "PodGroup.scheduling.volcano.sh", "<= 2147483647, was 99999999999"
    assert [str(problem) for problem in fit.problems] == [
        f'f.yaml:2: PodGroup default/a: {group} "a" is invalid: {said} {whole}, was a number of more than 64 bits',
        f'f.yaml:12 (document 3): PodGroup default/c: {group} "c" is invalid: {said} {whole} {most}',
    ]


def test_a_wrong_type_is_said_in_words() -> None:
    text = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: a}\nspec: {%s}"
    said = {
        "minMember: x": "spec.minMember: Invalid value: expected a whole number, was 'x'",
        "minMember: true": "spec.minMember: Invalid value: expected a whole number, was true",
        "minMember: 1.5": "spec.minMember: Invalid value: expected a whole number, was 1.5",
        "queue: 1": "spec.queue: Invalid value: expected a text, was 1",
        "minTaskMember: {a: x}": "spec.minTaskMember[a]: Invalid value: expected a whole number, was 'x'",
    }
    for spec, words in said.items():
        loaded = Loaded()
        load_text(text % spec, "f.yaml", loaded)
        (problem,) = usable(loaded).problems
        assert str(problem).endswith(words), problem


def test_nulls_are_absent_fields() -> None:
    loaded = Loaded()
    load_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: null}\nspec: null\nstatus: null", "f", loaded)
    assert [str(problem) for problem in usable(loaded).problems] == [
        'f:1: Pod default/a: Pod "a" is invalid: spec.containers: Required value: a pod has at least one container'
    ]

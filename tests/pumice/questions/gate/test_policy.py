"""Policy files: what they may say, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.config.errors import PumiceError
from pumice.questions.gate.cases import case_text, read_case
from pumice.questions.gate.policy import read_policy

WORK = "workloads: [{generate: {jobs: 1}}]"


def refusal(folder: Path, text: str) -> str:
    file = folder / "gate.yaml"
    file.write_text(text)
    with pytest.raises(PumiceError) as caught:
        read_policy(file)
    return str(caught.value).removeprefix(f"{folder}/")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1", "gate.yaml:2: not YAML"),
        ("hello", "gate.yaml:1: expected a mapping"),
        ("policy: c", "gate.yaml:1: expected workloads or cases"),
        (f"{WORK}\nexpct: []", "unknown key 'expct', did you mean 'expect'?"),
        (f"{WORK}\npolicy: 7", "gate.yaml:2: policy: expected a text, was 7"),
        ("workloads: [{name: a}]", "workloads[0]: expected either `input` or `generate`"),
        ("workloads: [{input: a, generate: {jobs: 1}}]", "workloads[0]: expected either `input` or `generate`"),
        ("workloads: [{input: a, until: later}]", "workloads[0].until: expected a duration"),
        ("workloads: [{input: a, until: -5s}]", "workloads[0].until: expected a duration"),
        ("workloads: [{input: a, until: 0s}]", "workloads[0].until: expected a duration of more than 0s, or idle"),
        ("workloads: [{input: a, default_duration: -5s}]", "workloads[0].default_duration: expected a duration"),
        ("workloads: [{generate: {jobs: 1, over: -1h}}]", "generate.over: expected a duration"),
        (f"{WORK}\nnoise: {{arrivals: -2s}}", "noise.arrivals: expected a duration"),
        ("workloads: [{input: a, start: later}]", "workloads[0].start: expected a time like"),
        ("workloads: [{name: a, input: a}, {name: a, input: b}]", "workloads[1].name: 'a' is given twice"),
        ("workloads: [{generate: {jobs: 0}}]", "generate.jobs: expected a whole number"),
        ("workloads: [{generate: {jobs: 1, queues: []}}]", "generate.queues: expected a list"),
        ("workloads: [{generate: {jobs: 1, pods: [0]}}]", "generate.pods[0]: expected"),
        ("workloads: [{generate: {jobs: 1, duration: [x]}}]", "generate.duration[0]: expected a duration"),
        ("workloads: [{generate: {jobs: 1, queues: ['']}}]", "generate.queues[0]: expected a text of length >= 1"),
        ("workloads: [{generate: {jobs: 1, classes: ['']}}]", "generate.classes[0]: expected a text of length >= 1"),
        ("workloads: [{generate: {jobs: 1, node_memory: abc}}]", "generate.node_memory: expected an amount of memory"),
        ("workloads: [{generate: {jobs: 1, node_memory: '0'}}]", "generate.node_memory: expected an amount of memory"),
        ("workloads: [{generate: {jobs: 1, node_cpu: 0}}]", "generate.node_cpu: expected a number > 0"),
        ("workloads: [{generate: {jobs: 1, node_cpu: .inf}}]", "generate.node_cpu: expected a number of cores"),
        ("workloads: [{generate: {jobs: 1, cpu: [1, .nan]}}]", "generate.cpu"),
        (f"{WORK}\nnoise: {{days: 0s}}", "noise.days: expected a duration of at least 1m"),
        (f"{WORK}\nnoise: {{durations: 2}}", "noise.durations: expected a part between 0 and 1"),
        (f"{WORK}\nnoise: {{draws: 0}}", "noise.draws: expected a number of draws"),
        (f"{WORK}\ndefaults: {{off: [nonsense]}}", "defaults.off[0]: unknown default 'nonsense'"),
        (f"{WORK}\ndefaults: {{evicted_again_within: x}}", "evicted_again_within: expected a duration"),
        (f"{WORK}\nexpect: [{{measure: wait.x, op: <=, value: 1}}]", "expect[0].measure: wait: expected one of"),
        (f"{WORK}\nexpect: [{{measure: wait, op: is, value: 1}}]", "expect[0].op: "),
        (f"{WORK}\nexpect: [{{measure: wait, op: <=, value: .nan}}]", "expect[0].value: expected a number"),
        (f"{WORK}\nexpect: none.yaml", "none.yaml: does not exist"),
        ("workloads:\n- name: a\n  input: b\n  until: soon", "gate.yaml:4: workloads[0].until: expected a duration"),
        (f"{WORK}\nexpect: more.yaml", "more.yaml:2: [0].measure: "),
        ("cases: []\ncases: []", "gate.yaml:2: the key 'cases' stands here twice"),
    ],
)
def test_a_wrong_policy_file_is_refused_by_place(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("# expectations\n- {measure: nonsense, op: <=, value: 1}\n")
    assert said in refusal(tmp_path, text)


def test_a_policy_file_reads_off_and_times_as_texts(tmp_path: Path) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(
        "workloads: [{name: a, start: 2026-01-05T08:00:00Z, until: 1h, input: 'journal:a.db'}]\n"
        "defaults: {off: [no-eviction-loop]}\nboth_fail: fail\nempty: fail\nrenamed: {a: b}\n"
        "expect: [{name: n, measure: unstarted, op: ==, value: 0}]\n"
    )
    found = read_policy(file)
    (workload,) = found.workloads
    assert (workload.name, workload.start, workload.until_s) == ("a", "2026-01-05T08:00:00Z", 3600)
    assert (found.defaults.off, found.both_fail, found.empty_fails) == (("no-eviction-loop",), True, True)
    assert ([each.name for each in found.expect], found.renamed) == (["n"], {"a": "b"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("then: []", "then: expected at least one expectation"),
        ("when: [{pods: 2}]\nthen: [{measure: wait, op: <=, value: 1}]", "when[0]: expected one of the keys"),
        ("when: [{job: a, at: x}]\nthen: [{measure: wait, op: <=, value: 1}]", "when[0].at: expected a duration"),
        ("until: 0s\nthen: [{measure: wait, op: <=, value: 1}]", "until: expected a duration of more than 0s"),
        ("when: [{job: a, pod: 1}]\nthen: [{measure: wait, op: <=, value: 1}]", "unknown key 'pod'"),
        ("when:\n- job: a\n  pods: many\nthen: []", "a.case.yaml:3: when[0].pods: "),
        ("when: [{file: nope.yaml}]\nthen: [{measure: wait, op: <=, value: 1}]", "does not exist"),
    ],
)
def test_a_wrong_case_is_refused_by_place(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.case.yaml"
    file.write_text(text)
    with pytest.raises(PumiceError, match=r"a\.case\.yaml|nope\.yaml") as caught:
        read_case(file)
    assert said in str(caught.value)


def test_a_case_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    first, second = tmp_path / "a.case.yaml", tmp_path / "b.case.yaml"
    first.write_text(
        "name: n\ngiven: [{nodes: 3, cpu: 4, gpu: 2, labels: {a: b}}, {nodes: [x], cpu: 1}]\n"
        "when:\n- {job: a, pods: 3, cpu: 2, min: 2, class: c, queue: q, at: 5s, runs: 2m, labels: {t: u}}\n"
        "- {object: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: []}}}\n"
        "then: [{measure: 'wait.max[name=a]', op: <=, value: 10s}]\nuntil: 90s\n"
    )
    one = read_case(first)
    second.write_text(case_text("n", one.objects, one.expect, one.workload.until_s))
    other = read_case(second)

    def by_name(case: object) -> list[str]:
        return sorted(f"{each['kind']} {each['metadata']['name']}" for each in case.objects)  # type: ignore[attr-defined]

    assert by_name(one) == by_name(other)
    assert (one.expect, one.workload) == (other.expect, other.workload)
    assert "object" in second.read_text()
    assert second.read_text().count("job:") == 1

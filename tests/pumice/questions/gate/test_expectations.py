"""The language of expectations."""

from __future__ import annotations

import operator
import re
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.errors import ConfigError
from pumice.config.read import ValuePlace, shaped
from pumice.config.yaml_tree import Document
from pumice.questions.gate.cases import written_out
from pumice.questions.gate.expectations import RunLimit, expectation_of, limit_of
from pumice.questions.gate.measures import MEASURES
from pumice.questions.gate.policy import Operator, WrittenExpectation, read_expectation
from pumice.questions.gate.record import (
    RecordedBind,
    RecordedEviction,
    RecordedJob,
    RecordedNode,
    RecordedUse,
    RunRecord,
)
from pumice.questions.gate.scopes import OPERATORS, MeasureError, scope_of

RECORD = RunRecord(
    100.0,
    (
        RecordedJob("default/a-0", "prod", "high", {"team": "x"}, 8, 0.0, 10.0, 60.0, 50.0, 2, 12.0, 3.0),
        RecordedJob("default/a-1", "prod", "low", {"team": "y"}, 2, 20.0, None, None, None),
        RecordedJob("lab/b-0", "batch", "low", {}, 4, 0.0, 5.0, None, None, 1, 4.0),
    ),
    (
        RecordedEviction(
            8.0, "lab/b-0-w-0", "lab/b-0", "batch", 10, "preempt", "default/a-0", "prod", 10, 3.0, 1, True
        ),
        RecordedEviction(9.0, "default/a-0-w-0", "default/a-0", "prod", 5, "reclaim", "lab/b-0", "batch", 9, 1.0),
        RecordedEviction(30.0, "default/a-0-w-0", "default/a-0", "prod", 5, "reclaim", "lab/b-0", "batch", 9, 1.0),
    ),
    (
        RecordedBind(5.0, "lab/b-0-w-0", "lab/b-0", "w", "n1"),
        RecordedBind(5.0, "lab/b-0-w-1", "lab/b-0", "w", "n1"),
        RecordedBind(10.0, "default/a-0-ps-0", "default/a-0", "ps", "n2"),
        RecordedBind(10.0, "default/a-0-w-0", "default/a-0", "w", "n1"),
    ),
    nodes={"n1": RecordedNode({"pool": "cpu"}, {"tier1": "s0"}), "n2": RecordedNode({"pool": "gpu"}, {"tier1": "s0"})},
    uses={"cpu": RecordedUse(0.5, 0.25)},
    pending={"default/a-1": "InUse"},
)


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("wait", 31.6667),
        ("wait.max", 80.0),
        ("wait.max[queue=batch]", 5.0),
        ("wait.mean[name=a-*]", 45.0),
        ("wait.p50", 10.0),
        ("wait.min[class!=high]", 5.0),
        ("slowdown.max[name=a-1]", 8.0),
        ("unstarted", 1.0),
        ("unstarted[queue=batch]", 0.0),
        ("started", 2.0),
        ("unended", 2.0),
        ("jobs[namespace=default]", 2.0),
        ("jobs[ns=lab]", 1.0),
        ("jobs[pods>=4]", 2.0),
        ("jobs[pods<4,label.team=y]", 1.0),
        ("jobs[label.team=*]", 3.0),
        ("jobs[prio=low]", 2.0),
        ("evictions", 3.0),
        ("evictions[queue=batch]", 1.0),
        ("evictions.max", 2.0),
        ("evictions.again", 2.0),
        ("evictions.for_one[queue=batch]", 2.0),
        ("evictions.of_equal", 1.0),
        ("evictions.within_share", 1.0),
        ("evictions.not_youngest", 1.0),
        ("lostcpu", 16.0),
        ("lostgpu", 3.0),
        ("util.cpu", 0.5),
        ("frag.cpu", 0.25),
        ("util.gpu", 0.0),
        ("makespan", 60.0),
        ("placed", 4.0),
        ("placed[node=n1]", 3.0),
        ("placed[node.pool=gpu]", 1.0),
        ("placed[queue=prod,task=ps]", 1.0),
        ("where.n1[name=b-*]", 2.0),
        ("together", 1.0),
        ("domains.max", 2.0),
        ("domains.max[by=tier1]", 1.0),
        ("domains.max[by=pool,name=b-0]", 1.0),
        ("inversions[first=a-1,then=a-0]", 1.0),
        ("inversions[first=a-0,then=a-1]", 0.0),
        ("pending", 1.0),
        ("pending[reason=InUse]", 1.0),
        ("pending[reason=Gated]", 0.0),
    ],
)
def test_a_measure_is_of_its_scope(measure: str, value: float) -> None:
    assert expectation_of("", measure, "<=", 0).value(RECORD, 100.0) == value


@pytest.mark.parametrize(
    ("said", "base", "limit"),
    [
        (10, 3.0, 10.0),
        ("90s", 3.0, 90.0),
        ("1h30m", 3.0, 5400.0),
        ("base", 3.0, 3.0),
        ("base + 10%", 30.0, 33.0),
        ("base - 50%", 30.0, 15.0),
        ("base + 30s", 3.0, 33.0),
        ("base - 2", 3.0, 1.0),
    ],
)
def test_a_bound_is_a_number_or_that_of_base(said: float | str, base: float, limit: float) -> None:
    found = expectation_of("", "wait", "<=", said)
    assert found.bound.at(base) == pytest.approx(limit)
    assert found.is_met(limit, base)
    assert not found.is_met(limit + 1, base)


@pytest.mark.parametrize(
    ("measure", "value", "key", "said"),
    [
        ("waits", 1, "measure", "unknown measure 'waits'"),
        ("wait.p99", 1, "measure", "expected one of mean, max, p95, p50, min, was 'p99'"),
        ("util", 1, "measure", "expected util.NAME"),
        ("wait[team=x]", 1, "measure", "unknown condition 'team'"),
        ("wait[queue>x]", 1, "measure", "expected = or !=, was '>'"),
        ("wait[pods>=many]", 1, "measure", "expected a whole number, was 'many'"),
        ("wait.mean[queue=a", 1, "measure", "with both brackets; was 'wait.mean[queue=a'"),
        ("wait.mean queue=a]", 1, "measure", "with both brackets"),
        ("wait[queue]", 1, "measure", "expected conditions such as"),
        ("wait[node=n1]", 1, "measure", "unknown condition 'node'"),
        ("util.cpu[queue=a]", 1, "measure", "takes no scope"),
        ("inversions[first=a]", 1, "measure", "expected [first=NAME,then=NAME]"),
        ("pending[reason=Because]", 1, "measure", "unknown code 'Because'"),
        ("pending[reason!=Topology]", 1, "measure", "reason: expected =, was '!='"),
        ("placed[node>=n]", 1, "measure", "node: expected = or !=, was '>='"),
        ("wait", "nan", "value", "expected a number, a duration"),
        ("wait", "base + nan%", "value", "expected a number, a duration"),
        ("wait", float("inf"), "value", "expected a number, a duration"),
        ("wait", "soon", "value", "expected a number, a duration"),
        ("wait", "base + x", "value", "was 'x'"),
    ],
)
def test_what_cannot_be_read_says_which_key(measure: str, value: float | str, key: str, said: str) -> None:
    with pytest.raises(MeasureError, match=re.escape(said)) as raised:
        expectation_of("", measure, "<=", value)
    assert raised.value.key == key


WORDS = st.text("abcxyz019-", min_size=1, max_size=6)
SCOPES: dict[str, st.SearchStrategy[str]] = {
    **{key: st.builds(f"{key}{{}}{{}}".format, st.sampled_from(["=", "!="]), WORDS) for key in ("name", "queue")},
    **{key: st.builds(f"{key}{{}}{{}}".format, st.just("="), WORDS) for key in ("class", "namespace", "label.a/b")},
    "pods": st.builds("pods{}{}".format, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.integers(0, 99)),
}
BOUNDS = (
    st.integers(0, 10**6)
    | st.floats(0, 1e6, allow_nan=False)
    | st.sampled_from(["90s", "1h30m", "base", "base + 10%", "base - 5%", "base + 30s", "base - 2"])
)


@st.composite
def written(draw: st.DrawFn) -> WrittenExpectation:
    """An expectation of any form."""
    what, row = draw(st.sampled_from(sorted(MEASURES.items())))
    how = "cpu" if row.hows is None else draw(st.sampled_from(row.hows))
    scope: list[str] = [] if row.whole else draw(st.lists(st.one_of(*SCOPES.values()), max_size=3))
    if row.places:
        scope += draw(st.lists(st.sampled_from(["node=n*", "node!=n1", "task=ps", "node.pool=gpu"]), max_size=2))
    needed = {"inversions": ["first=a-*", "then=b"]}.get(what, [])
    optional = {"domains": ["by=tier1"], "pending": ["reason=InUse"]}.get(what, [])
    scope += [*needed, *draw(st.lists(st.sampled_from(optional), max_size=1) if optional else st.just([]))]
    measure = what + (f".{how}" if how else "") + (f"[{', '.join(scope)}]" if scope else "")
    name, words = draw(st.sampled_from([("", ""), ("n", ""), ("", "w"), ("n", "w")]))
    return WrittenExpectation(measure, draw(st.sampled_from(get_args(Operator))), draw(BOUNDS), name, words)


PLACE = ValuePlace(Document("gate.yaml", None))


@given(written())
def test_every_form_is_read_judged_and_written_out_again(said: WrittenExpectation) -> None:
    read = read_expectation(said, PLACE)
    assert read.name == (said.name or said.words or read.text)
    assert (read.op, read.measure) == (said.op, said.measure)
    again = read_expectation(shaped(PLACE, written_out(read), WrittenExpectation), PLACE)
    assert (again.scope, again.bound, again.name, again.text) == (read.scope, read.bound, read.name, read.text)
    value = read.value(RECORD, 100.0)
    assert read.is_met(value, value) is OPERATORS[said.op].holds(value, read.bound.at(value))


def test_an_expectation_that_cannot_be_read_names_its_place() -> None:
    with pytest.raises(ConfigError, match=r"then\[2\]\.value: expected a number, a duration"):
        read_expectation(WrittenExpectation("wait", "<=", "soon"), PLACE.at("then").at(2))


@given(st.integers(0, 20), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.integers(0, 20))
def test_a_scope_of_sizes_compares_numbers(pods: int, op: str, wanted: int) -> None:
    scope = scope_of(f"pods {op} {wanted}", placing=False, options=())
    compare = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[op]
    assert scope.holds(RecordedJob("d/j", pods=pods)) is getattr(operator, compare)(pods, wanted)


@given(WORDS, WORDS, st.sampled_from(["name", "namespace", "queue", "class", "label.t"]))
def test_a_scope_of_texts_holds_or_its_opposite_does(found: str, wanted: str, key: str) -> None:
    job = RecordedJob(f"{found}/{found}", found, found, {"t": found})
    is_, is_not = (scope_of(f"{key}{op}{wanted}", placing=False, options=()).holds(job) for op in ("=", "!="))
    assert (is_, is_not) == (found == wanted, found != wanted)
    assert scope_of(f"{key}={found[0]}*", placing=False, options=()).holds(job)


@given(st.text(max_size=40), st.text(max_size=20))
def test_whatever_is_written_is_read_or_refused(measure: str, value: str) -> None:
    with suppress(MeasureError):
        expectation_of("", measure, "<=", value).value(RECORD, 100.0)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=20))
def test_a_job_that_never_starts_waits_to_the_horizon(starts: list[float]) -> None:
    jobs = tuple(
        RecordedJob(f"default/j-{number}", submitted=0.0, started=at if at < 500 else None)
        for number, at in enumerate(starts)
    )
    worst = expectation_of("", "wait.max", "<=", 0).value(RunRecord(500.0, jobs), 500.0)
    assert worst == (500.0 if any(at >= 500 for at in starts) else round(max(starts), 3))


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(0, 300)), min_size=1, max_size=15), st.floats(0, 500))
@pytest.mark.parametrize("how", ["mean", "max", "p95", "p50", "min"])
def test_a_part_of_a_run_never_says_more_than_the_whole(how: str, spans: list[tuple[float, float]], at: float) -> None:
    jobs = [RecordedJob(f"d/{n}", submitted=came, started=came + waited) for n, (came, waited) in enumerate(spans)]
    expected = expectation_of("", f"wait.{how}", "<=", 0)
    whole = expected.value(RunRecord(600.0, tuple(jobs)), 600.0)
    part = RunRecord(
        at,
        tuple(
            RecordedJob(job.job, submitted=job.submitted, started=job.started if (job.started or 0) <= at else None)
            for job in jobs
            if job.submitted <= at
        ),
    )
    assert not RunLimit(expected, whole + 0.001, len(jobs)).is_broken_for_good(part, at)
    assert RunLimit(expected, whole - 0.001, len(jobs)).is_broken_for_good(RunRecord(600.0, tuple(jobs)), 600.0)


@pytest.mark.parametrize(
    ("measure", "op", "value", "base", "limited"),
    [
        ("wait.mean", "<=", "base", {"foreseen": True}, True),
        ("wait.mean", "<=", "base", {"idle": True, "foreseen": True}, False),
        ("wait.mean", "<=", "base", {"stopped": "loop"}, False),
        ("wait.max", "<=", 10, {"stopped": "loop"}, True),
        ("wait.max", ">=", 10, {}, False),
        ("wait.max", "!=", 10, {}, False),
        ("unstarted", "==", 0, {}, False),
        ("slowdown", "<=", 2, {}, False),
        ("evictions", "==", 0, {}, True),
    ],
)
def test_a_limit_is_what_a_part_of_a_run_can_break(
    measure: str, op: str, value: float | str, base: dict[str, Any], limited: bool
) -> None:
    waiting = RunRecord(100.0, (RecordedJob("d/j"),), **base)
    assert (limit_of(expectation_of("", measure, op, value), waiting) is not None) is limited


def test_a_mean_is_final_only_where_the_number_of_jobs_is_known() -> None:
    late = RunRecord(90.0, (RecordedJob("d/j"),))
    mean = expectation_of("", "wait.mean", "<=", 10)
    assert RunLimit(mean, 10.0, 2).is_broken_for_good(late, 90.0)
    assert not RunLimit(mean, 10.0, 20).is_broken_for_good(late, 90.0)
    assert not RunLimit(mean, 10.0, None).is_broken_for_good(late, 90.0)

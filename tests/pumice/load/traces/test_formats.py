"""Each format of trace becomes jobs with their arrivals; what cannot be read is named by line and column."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import yaml

import pumice
from pumice.errors import InputError
from pumice.load.manifests import load
from pumice.load.traces.jobs import GPU, Left
from pumice.load.traces.philly import read_philly
from pumice.load.traces.read import read_swf, read_trace
from pumice.load.traces.table import read_csv
from pumice.runtime.arrivals import ARRIVAL
from tests.kit import source
from tests.kit.queues import queue

TRACES = source.SHARED / "traces"
SWF = """\
; a comment
  1 0 -1 1451 128 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1
  2 30 -1 60 20 -1 -1 -1 -1 -1 -1 4 1 -1 1 -1 -1 -1
  3 40 -1 -1 4 -1 -1 -1 -1 -1 -1 4 1 -1 1 -1 -1 -1
  4 50 -1 10 -1 -1 -1 3 -1 -1 -1 4 1 -1 0 -1 -1 -1
"""
PHILLY = """\
vc,idx,arrival_s,gpus,job_type,total_steps,duration_s_on_v100
b,0,100,20,x,1,3600
b,1,120,1,x,1,
a,0,50,2,x,1,10
"""
TABLE = """\
arrival,duration,name,pods,gang,cpu,memory,gpu,queue,user,priority,example.com/fpga
0,10,one,4,2,500m,1Gi,1,research,ann,7,2
5.5,1.25,,,,,,,,,,
"""


def test_swf_takes_processors_as_cpus_and_splits_them_over_nodes() -> None:
    left = Left()
    jobs = list(read_swf(SWF, "t.swf", 16, left))
    assert [(job.name, job.arrival_s, job.duration_s) for job in jobs] == [
        ("job-1", 0, 1451),
        ("job-2", 30, 60),
        ("job-4", 50, 10),
    ]
    assert [job.pods for job in jobs] == [
        ((8, {"cpu": "16"}),),
        ((1, {"cpu": "16"}), (1, {"cpu": "4"})),
        ((1, {"cpu": "3"}),),
    ]
    assert [(job.queue, job.user) for job in jobs[:2]] == [("default", "user-1"), ("queue-1", "user-4")]
    assert left.out == {"no run time": 1}


FOLLOWING = """\
  1 0 -1 100 8 -1 -1 -1 -1 -1 -1 1 1 -1 1 -1 -1 -1
  2 10 -1 100 8 -1 -1 -1 -1 -1 -1 2 1 -1 1 -1 -1 -1
  3 120 -1 50 8 -1 -1 -1 -1 -1 -1 2 1 -1 1 -1 2 30
  4 400 -1 50 8 -1 -1 -1 -1 -1 -1 1 1 -1 1 -1 99 5
"""
"""On one node of 8 the second job waits for the first, and its user hands in the third 30 s after its end."""


def test_swf_jobs_follow_the_job_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "a.swf").write_text(FOLLOWING)
    objects = [*read_trace(f"swf:{tmp_path}/a.swf,nodes=1x8,ttl=60")[0]]
    kinds = [(obj["kind"], obj["metadata"]["name"]) for obj in objects if "volcano.sh" in obj["apiVersion"]]
    jobs = [("Job", "job-1"), ("Job", "job-4"), ("JobTemplate", "job-2"), ("JobTemplate", "job-3")]
    assert kinds == [("Queue", "queue-1"), *jobs, ("JobFlow", "of-job-2")]
    flow = objects[-1]
    assert flow["metadata"]["annotations"] == {ARRIVAL: "10s"}
    assert flow["spec"]["flows"] == [{"name": "job-2"}, {"name": "job-3", "dependsOn": {"targets": ["job-2"]}}]
    assert "ttlSecondsAfterFinished" not in objects[-2]["spec"]  # it would be made again
    plain = [obj["kind"] for obj in read_trace(f"swf:{tmp_path}/a.swf,feedback=no")[0]]
    assert (plain.count("Job"), plain.count("JobFlow")) == (4, 0)


def test_what_a_policy_delays_is_passed_on_to_the_next_job(tmp_path: Path) -> None:
    (tmp_path / "a.swf").write_text(FOLLOWING)
    lived = pumice.Cluster(*read_trace(f"swf:{tmp_path}/a.swf,nodes=1x8")[0]).run(until="2000s")
    first, second, third, fourth = (lived.job(name) for name in ("job-1", "of-job-2-job-2", "of-job-2-job-3", "job-4"))
    assert second.ended is not None
    assert second.ended - first.submitted > 200  # 110 s, had it not waited
    assert 29 <= third.submitted - second.ended < 32  # a Job says in whole seconds when it ended
    assert fourth.submitted - first.submitted == 400


def test_options_take_part_of_a_trace_and_have_it_come_sooner(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(SWF, "utf-8")
    objects = list(read_trace(f"swf:{tmp_path / 't.swf'},nodes=2x64,queues=user,arrivals=0.5,jobs=2")[0])
    jobs = [obj for obj in objects if obj["kind"] == "Job"]
    assert [job["metadata"]["annotations"][ARRIVAL] for job in jobs] == ["0s", "15s"]
    assert [job["spec"]["queue"] for job in jobs] == ["user-1", "user-4"]
    assert sum(obj["kind"] == "Node" for obj in objects) == 2
    group = list(read_trace(f"swf:{tmp_path / 't.swf'},queues=group")[0])
    assert {obj["spec"]["queue"] for obj in group if obj["kind"] == "Job"} == {"group-1"}


def test_jobs_of_a_trace_go_so_long_after_their_end(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(SWF, "utf-8")
    made = [list(read_trace(f"swf:{tmp_path / 't.swf'}{option}")[0]) for option in ("", ",ttl=60")]
    kept, gone = ([obj["spec"] for obj in each if obj["kind"] == "Job"] for each in made)
    assert [each.pop("ttlSecondsAfterFinished") for each in gone] == [60] * len(kept)
    assert gone == kept
    with pytest.raises(InputError, match="ttl=SECONDS"):
        read_trace(f"swf:{tmp_path / 't.swf'},ttl=soon")


def test_a_queue_that_is_given_stands_as_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(PHILLY, "utf-8")
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(queue("vc-a", weight=7)), "utf-8")
    loaded = load([str(tmp_path / "q.yaml"), f"philly:{tmp_path / 'p.csv'}"], io.StringIO())
    assert loaded.problems == []
    weights = {obj["metadata"]["name"]: obj["spec"]["weight"] for obj in loaded.objects if obj["kind"] == "Queue"}
    assert weights == {"vc-a": 7, "vc-b": 1}


GAVEL = (
    "LM (batch size 5)\tpython3 main.py\t--steps\t1\t900\t40.5\t12\n"
    "ResNet (batch size 8)\tpython3 main.py\t-s\t0\t0\t2.0\t1\n"
    "A3C\tpython3 main.py\t--max\t0\t30\t3\t1.0\t-1.0\t7.0\n"
)


def test_gavels_own_trace_is_read_with_steps_as_seconds() -> None:
    """Both forms: 7 columns with the size last, 9 with the arrival last."""
    left = Left()
    second, first = reversed(list(read_philly(GAVEL, "g.trace", 8, left, steps_per_s=3.0)))
    assert left.out == {"no duration": 1}
    assert (first.name, first.arrival_s, first.duration_s, first.size, first.queue) == (
        "job-3",
        7.0,
        10.0,
        1,
        "default",
    )
    assert (second.name, second.arrival_s, second.duration_s) == ("job-1", 40.5, 300.0)
    assert [(count, amounts[GPU]) for count, amounts in second.pods] == [(1, "8"), (1, "4")]


def test_philly_has_a_queue_for_each_virtual_cluster_and_comes_in_the_order_of_time() -> None:
    left = Left()
    small, large = read_philly(PHILLY, "p.csv", 8, left)
    assert (small.name, small.queue, small.pods) == ("a-0", "vc-a", ((1, {"cpu": "8", GPU: "2"}),))
    assert large.pods == ((2, {"cpu": "32", GPU: "8"}), (1, {"cpu": "16", GPU: "4"}))
    assert left.out == {"no duration": 1}


def test_a_table_says_what_it_likes_and_the_rest_is_usual() -> None:
    one, other = read_csv(TABLE, "t.csv")
    assert (one.name, one.size, one.gang, one.queue, one.user, one.priority) == ("one", 4, 2, "research", "ann", 7)
    assert one.pods[0][1] == {"cpu": "500m", "memory": "1Gi", GPU: "1", "example.com/fpga": "2"}
    assert (other.name, other.size, other.gang, other.queue, other.priority) == ("job-1", 1, None, "default", None)
    assert (other.arrival_s, other.duration_s, other.pods) == (5.5, 1.25, ((1, {"cpu": "1"}),))


def test_parquet_says_the_same_as_csv(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'pumice[tables]'")
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"arrival": [0.0, 5.5], "duration": [10, 20], "pods": [4, None], "queue": ["q", None]})
    parquet.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("arrival,duration,pods,queue\n0,10,4,q\n5.5,20,,\n", "utf-8")
    read = [list(read_trace(f"{form}:{tmp_path}/t.{form}")[0]) for form in ("csv", "parquet")]
    assert read[0] == read[1]
    assert [obj["kind"] for obj in read[0]] == ["Queue", "Job", "Job"]


def test_columns_that_nobody_reads_are_no_matter() -> None:
    (job,) = read_csv(",arrival,duration,comment\n0,1,2,slow\n", "t.csv")
    assert (job.arrival_s, job.duration_s) == (1, 2)


def test_a_job_becomes_a_volcano_job_with_its_arrival(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE, "utf-8")
    queue, priority, job, other = list(read_trace(f"csv:{tmp_path / 't.csv'}")[0])
    assert (queue["metadata"]["name"], priority["metadata"]["name"], priority["value"]) == ("research", "priority-7", 7)
    assert job["metadata"]["annotations"] == {"pumice.dev/arrival": "0s"}
    spec, task = job["spec"], job["spec"]["tasks"][0]
    assert (spec["minAvailable"], spec["queue"], spec["priorityClassName"]) == (2, "research", "priority-7")
    template: dict[str, Any] = task["template"]
    assert template["metadata"]["annotations"] == {"pumice.dev/duration": "10s", "pumice.dev/user": "ann"}
    assert template["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1", "example.com/fpga": "2"}
    assert other["metadata"]["annotations"] == {"pumice.dev/arrival": "5.5s"}


@pytest.mark.parametrize(
    ("argument", "content", "said"),
    [
        ("csv:{}", "arrival\n1\n", "expected the columns duration; found arrival"),
        ("csv:{}", "arrival,duration\n1,2\nx,2\n", ":3: arrival: expected a number ≥ 0, was 'x'"),
        ("csv:{}", "arrival,duration\n1,nan\n", ":2: duration: expected a number ≥ 0, was 'nan'"),
        ("csv:{}", "arrival,duration,pods\n1,2,0.5\n", ":2: pods: expected a whole number, was '0.5'"),
        ("csv:{}", "arrival,duration,pods\n1,2,0\n", ":2: pods: expected at least 1"),
        ("csv:{}", "arrival,duration,pods,gang\n1,2,2,3\n", ":2: gang: expected at most the 2 pods, was 3"),
        ("csv:{}", "arrival,duration,cpu\n1,2,1\n3,2,x\n", ":3: cpu: quantity 'x': expected a number"),
        ("csv:{}", "arrival,duration,memory\n1,2,-1Gi\n", ":2: memory: expected a quantity ≥ 0, was '-1Gi'"),
        ("csv:{}", "arrival,duration,a.b/c\n1,2,x\n", ":2: a.b/c: quantity 'x': expected a number"),
        ("csv:{}", "arrival,duration,gpu\n1,2,0.5\n", ":2: gpu: expected a whole number, was '0.5'"),
        ("csv:{}", "arrival,duration,name\n1,2,A b\n", ":2: name: a lowercase RFC 1123 subdomain must consist"),
        ("csv:{}", "arrival,duration,name\n1,2,a\n3,4,a\n", ":3: name: 'a' stands in line 2 already"),
        ("csv:{}", "arrival,duration,queue\n1,2,A b\n", ":2: queue: a lowercase RFC 1123 subdomain must consist"),
        ("csv:{}", "arrival,duration,memroy\n1,2,1Gi\n", ":1: unknown column 'memroy', did you mean 'memory'?"),
        ("csv:{}", "arrival,duration,CPU\n1,2,1\n", ":1: unknown column 'CPU', did you mean 'cpu'?"),
        ("csv:{}", "arrival,duration,arrival\n1,2,1\n", ":1: the column 'arrival' stands there twice"),
        ("csv:{}", "arrival,duration,cpu\n1,2\n", ":2: expected 3 cells, found 2"),
        ("csv:{}", "arrival,duration,cpu\n1,2,3,4\n", ":2: expected 3 cells, found 4"),
        ("parquet:{}", "arrival,duration\n1,2\n", "no Parquet file that can be read: Parquet magic bytes not found"),
        ("csv:{}", "arrival,duration,priority\n1,2,high\n", ":2: priority: expected a whole number, was 'high'"),
        ("csv:{},nodes=3x4", "arrival,duration\n", "csv: takes no options"),
        ("swf:{}", "1 2 3\n", ":1: expected 18 numbers, found 3"),
        ("swf:{}", SWF.replace("1451", "long"), ":2: column 4: expected a number within ±9223372036, was 'long'"),
        ("swf:{}", SWF.replace("1451", "1e10"), ":2: column 4: expected a number within ±9223372036, was '1e10'"),
        ("csv:{}", "arrival,duration\n1e10,2\n", ":2: arrival: expected at most 9223372036 seconds, was '1e10'"),
        ("csv:{}", "arrival,duration\n1,1e12\n", ":2: duration: expected at most 9223372036 seconds, was '1e12'"),
        ("csv:{}", "arrival,duration,pods\n1,2,200000\n", ":2: pods: expected at most 150000, was 200000"),
        ("csv:{}", "arrival,duration,priority\n1,2,3e9\n", ":2: priority: expected a whole number, was '3e9'"),
        (
            "csv:{}",
            "arrival,duration,priority\n1,2,3000000000\n",
            ":2: priority: expected -2147483648 to 1000000000, was 3000000000",
        ),
        (
            "swf:{},nodes=0x4",
            SWF,
            "ttl=SECONDS, queues=queue|group|user, feedback=yes|no, was 'nodes=0x4'",
        ),
        (
            "philly:{},racks=3",
            PHILLY,
            "expected nodes=COUNTxGPUS, jobs=N, arrivals=FACTOR, ttl=SECONDS, steps=RATE, was 'racks=3'",
        ),
        ("philly:{}", "a\tb\tc\n", "expected 7, 9 or 10 columns with tabs between them, found 3"),
        (
            "philly:{},steps=0",
            GAVEL,
            "expected nodes=COUNTxGPUS, jobs=N, arrivals=FACTOR, ttl=SECONDS, steps=RATE, was 'steps=0'",
        ),
        ("philly:{}", "vc,idx\n", "expected the columns arrival_s, gpus, duration_s_on_v100"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, argument: str, content: str, said: str) -> None:
    (tmp_path / "trace").write_text(content, "utf-8")
    with pytest.raises(InputError) as refused:
        list(read_trace(argument.format(tmp_path / "trace"))[0])
    assert said in str(refused.value)


def test_jobs_left_out_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(SWF, "utf-8")
    loaded = load([f"swf:{tmp_path / 't.swf'},nodes=3x16"], io.StringIO())
    assert [obj["kind"] for obj in loaded.objects] == ["Node"] * 3 + ["Job", "Queue", "Job", "Queue", "Job"]
    assert loaded.skipped == [f"swf:{tmp_path / 't.swf'},nodes=3x16: 1 jobs left out: no run time"]


@pytest.mark.parametrize(
    ("header", "option", "nodes"),
    [
        ("", "", ["16"] * 8),
        ("; MaxProcs: 24\n", "", ["12"] * 2),
        ("; MaxNodes: 3\n; MaxProcs: 24\n", "", ["8"] * 3),
        (";MaxProcs: 7 (of 9)\n;MaxNodes: 2\n", "", ["4"] * 2),
        ("; MaxNodes: 3\n; MaxProcs: -1\n", "", ["16"] * 8),
        ("; MaxNodes: 9\n; MaxProcs: 4\n", "", ["4"]),
        ("; MaxNodes: 3\n; MaxProcs: 24\n", ",nodes=1x2", ["2"]),
    ],
)
def test_swf_header_sizes_the_cluster_unless_told(tmp_path: Path, header: str, option: str, nodes: list[str]) -> None:
    (tmp_path / "t.swf").write_text(header + SWF, "utf-8")
    objects = read_trace(f"swf:{tmp_path / 't.swf'}{option}")[0]
    assert [obj["status"]["allocatable"]["cpu"] for obj in objects if obj["kind"] == "Node"] == nodes


@pytest.mark.skipif(not TRACES.is_dir(), reason="the recorded traces are not there: ../shared/traces")
def test_whole_traces_can_be_read() -> None:
    objects, left = read_trace(f"philly:{TRACES}/philly_gavel/gavel_msr_seed0.csv.gz")
    jobs = [obj for obj in objects if obj["kind"] == "Job"]
    assert (len(jobs), left.out) == (15_264 - 1_548, {"no duration": 1_548})
    swf, left = read_trace(f"swf:{TRACES}/swf/NASA-iPSC-1993-3.1-cln.swf.gz")
    assert sum(1 for obj in swf if obj["kind"] == "Job") + sum(left.out.values()) == 18_239

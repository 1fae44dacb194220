"""Records of others: rows in their published form become jobs, and what is left out is counted with the reason."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import zstandard

from pumice.config.errors import RequestError
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.load.traces.read import read_trace

TIRESIAS = """\
job_id,num_gpu,submit_time,iterations,model_name,duration,interval
0,1,0,606,vgg19,164,30
1,12,30,133,vgg11,147,23
"""
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
1425512,uVMrF,vchbv,16,64,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
1425513,uzqls,vcpDC,0,1,1,CANCELLED,2020-06-09 18:41:28,,,,0
"""
PAI = """\
4f057009a5d481acec67b088,ps,1.0,Terminated,1739162.0,1739200.0,600.0,29.296875,,MISC
4f057009a5d481acec67b088,worker,2.0,Terminated,1739165.0,1739210.0,400.0,10.0,50.0,T4
af724763f4f5d0beef445849,tensorflow,1.0,Running,1739300.0,,600.0,29.296875,100.0,V100
"""
SPOT = """\
job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
239255,13,A10,20,1,1,0,2764799,HP
437260,57,A100-SXM4-80GB,15,1,16,9589663,41060,Spot
"""
SUPERCLOUD = """\
id_job,id_array_job,id_array_task,id_user,kill_requid,nodes_alloc,nodelist,cpus_req,derived_ec,exit_code,gres_used,\
array_max_tasks,array_task_pending,constraints,flags,mem_req,partition,priority,state,timelimit,time_submit,\
time_eligible,time_start,time_end,time_suspended,track_steps,tres_alloc,tres_req,job_type
22001,0,4294967294,501,-1,2,"['r1', 'r2']",80,0,0,gpu:volta:4,0,0,xeon-g6,9,9223372036854784308,normal,4294,3,5760,\
1609459200,1609459200,1609459210,1609462810,0,0,"1=80,2=340000,4=2,5=80,1002=4","1=80,2=340000,4=2,1002=4",LLSUB
22002,0,4294967294,502,501,0,,40,0,0,,0,0,,8,1,normal,4294,4,5760,1609459300,1609459300,0,1609459400,0,0,,"1=40",OTHER
"""
"""With the columns that the data set's own notebook lists."""
PHILLY: list[dict[str, Any]] = [
    {
        "status": "Pass",
        "vc": "6214e9",
        "jobid": "application_1506638472019_10258",
        "attempts": [
            {"start_time": "None", "end_time": "None", "detail": []},
            {
                "start_time": "2017-10-07 01:15:19",
                "end_time": "2017-10-07 02:00:00",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu4"]}],
            },
            {"start_time": "2017-10-07 02:10:00", "end_time": "2017-10-07 03:15:19", "detail": []},
        ],
        "submitted_time": "2017-10-07 01:15:14",
        "user": "ce2f4c",
    },
    {
        "status": "Killed",
        "vc": "ee9e8c",
        "jobid": "application_1506638472019_10260",
        "attempts": [],
        "submitted_time": "2017-10-07 01:20:14",
        "user": "ce2f4d",
    },
]
SACCT = """\
JobID|Partition|Account|User|Submit|Start|End|State|AllocTRES|ReqTRES|NNodes
8213|gpu|phys|ann|2026-01-10T08:00:00|2026-01-10T08:05:00|2026-01-10T09:05:00|OK|cpu=32,gres/gpu=8,mem=64G,node=2|cpu=32|2
8213.batch||phys||2026-01-10T08:05:00|2026-01-10T08:05:00|2026-01-10T09:05:00|OK|cpu=16,mem=32G,node=1||1
8213.0||phys||2026-01-10T08:05:01|2026-01-10T08:05:01|2026-01-10T09:05:00|COMPLETED|cpu=32,node=2||2
8214||chem|bob|2026-01-10T08:01:00|2026-01-10T08:01:30|2026-01-10T08:02:00|TIMEOUT||billing=4,cpu=4,mem=8000M,node=1|1
8215|gpu|phys|ann|2026-01-10T08:02:00|Unknown|Unknown|PENDING||cpu=4,node=1|1
8216|gpu|phys|ann|2026-01-10T08:03:00|2026-01-10T08:04:00|2026-01-10T08:04:00|CANCELLED by 7||cpu=4,node=1|1
8217|gpu|phys|ann|2026-01-10T08:03:00|None|2026-01-10T08:04:00|CANCELLED by 7||cpu=4,mem=4G,node=1|1
8218_3|gpu|phys|ann|2026-01-10T08:04:00|2026-01-10T08:05:00|2026-01-10T08:05:00|COMPLETED|cpu=1,node=1|cpu=1|1
8219+1|gpu|phys|ann|2026-01-10T08:04:00|2026-01-11T08:04:00|2026-01-12T08:05:00|COMPLETED\
|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu:v100=1,mem=7.50G,node=1||1
8219+1.extern||phys||2026-01-11T08:04:00|2026-01-11T08:04:00|2026-01-12T08:05:00|COMPLETED|cpu=8,node=1||1
"""
BATSIM = {
    "nb_res": 32,
    "jobs": [
        {"id": 1, "profile": "delay_088", "res": 3, "subtime": 1, "walltime": 4200},
        {"id": 2, "profile": "parallel", "res": 1, "subtime": 2.5, "walltime": 4200},
        {"id": "w0!3", "profile": "delay_088", "res": 1, "subtime": 3.5, "walltime": 30},
        {"id": "w0!4", "profile": "twice", "res": 2, "subtime": 4, "walltime": -1},
        {"id": "w0!5", "profile": "of parallel", "res": 2, "subtime": 4},
        {"id": "w0!6", "profile": "itself", "res": 2, "subtime": 4},
    ],
    "profiles": {
        "delay_088": {"delay": 88.0, "type": "delay"},
        "parallel": {"type": "parallel_homogeneous", "cpu": 1e9},
        "short": {"type": "DelayProfile", "delay": 2},
        "thrice": {"type": "composed", "nb": 3, "seq": ["short"]},
        "twice": {"type": "SequentialCompositionProfile", "repeat": 2, "seq": ["short", "thrice"]},
        "of parallel": {"type": "SequentialCompositionProfile", "seq": ["short", "parallel"]},
        "itself": {"type": "SequentialCompositionProfile", "seq": ["short", "itself"]},
    },
}


class Came(NamedTuple):
    """A job as it was read: pods as (count, requests)."""

    name: str
    arrival: str
    duration: str
    queue: str
    pods: list[tuple[int, dict[str, str]]]
    priority: str = ""


def came(obj: Object) -> Came:
    spec, tasks = obj["spec"], obj["spec"]["tasks"]
    container = [task["template"]["spec"]["containers"][0]["resources"]["requests"] for task in tasks]
    return Came(
        obj["metadata"]["name"],
        obj["metadata"]["annotations"]["pumice.dev/arrival"],
        tasks[0]["template"]["metadata"]["annotations"]["pumice.dev/duration"],
        spec["queue"],
        [(task["replicas"], requests) for task, requests in zip(tasks, container, strict=True)],
        spec.get("priorityClassName", ""),
    )


def read(folder: Path, form: str, text: str, options: str = "") -> tuple[list[Came], dict[str, int]]:
    file = folder / "trace"
    file.write_text(text)
    objects, left = read_trace(f"{form}:{file}{options}")
    return [came(obj) for obj in objects if obj["kind"] == "Job"], left.out


def gpus(count: int, cpu: str | int, **more: str) -> dict[str, str]:
    return {"cpu": str(cpu), "nvidia.com/gpu": str(count), **more}


PUBLISHED: list[tuple[str, str, list[Came], dict[str, int]]] = [
    (
        "tiresias",
        TIRESIAS,
        [
            Came("0", "0s", "164s", "default", [(1, gpus(1, 4))]),
            Came("1", "30s", "147s", "default", [(1, gpus(8, 32)), (1, gpus(4, 16))]),
        ],
        {},
    ),
    (
        "helios",
        HELIOS,
        [
            Came("1425511", "0s", "36848s", "vcjkd", [(1, gpus(1, 1))]),
            Came("1425512", "26s", "249s", "vchbv", [(2, gpus(8, 32))]),
        ],
        {"no duration": 1},
    ),
    (
        "pai",
        PAI,
        [
            Came(
                "4f057009a5d481acec67b088",
                "0s",
                "48s",
                "default",
                [
                    (1, {"cpu": "6", "memory": "31457280000"}),
                    (2, {"cpu": "4", "memory": "10737418240", "alibabacloud.com/gpu-milli": "500"}),
                ],
            )
        ],
        {"no duration": 1},
    ),
    (
        "spot-gpu",
        SPOT,
        [
            Came("239255", "0s", "2764799s", "13", [(1, gpus(1, 20))], "priority-1000"),
            Came("437260", "9589663s", "41060s", "57", [(16, gpus(1, 15))], "priority-0"),
        ],
        {},
    ),
    ("supercloud", SUPERCLOUD, [Came("22001", "0s", "3600s", "normal", [(2, gpus(2, 40))])], {"never started": 1}),
    (
        "philly-log",
        json.dumps(PHILLY),
        [Came("application-1506638472019-10258", "0s", "7200s", "6214e9", [(1, gpus(3, 12))])],
        {"no duration": 1},
    ),
    (
        "sacct",
        SACCT,
        [
            Came("8213", "0s", "3600s", "gpu", [(2, gpus(4, 16, memory=str(32 * 2**30)))]),
            Came("8214", "60s", "30s", "chem", [(1, {"cpu": "4", "memory": str(8000 * 2**20)})]),
            Came("8218-3", "240s", "1s", "gpu", [(1, {"cpu": "1"})]),
            Came("8219-1", "240s", "86460s", "gpu", [(1, gpus(3, 8, memory=str(15 * 2**29)))]),
        ],
        {"a step of a job": 3, "never started": 1, "no duration": 2},
    ),
    (
        "batsim",
        json.dumps(BATSIM),
        [
            Came("1", "0s", "88s", "default", [(3, {"cpu": "1"})]),
            Came("w0-3", "2.5s", "30s", "default", [(1, {"cpu": "1"})]),
            Came("w0-4", "3s", "16s", "default", [(2, {"cpu": "1"})]),
        ],
        {"no duration": 3},
    ),
]


def without_order(job: Came) -> Came:
    return job._replace(pods=[(count, dict(sorted(amounts.items()))) for count, amounts in job.pods])


@pytest.mark.parametrize(("form", "text", "jobs", "left"), PUBLISHED, ids=[form for form, *_ in PUBLISHED])
def test_a_preset_reads_the_published_form(
    form: str, text: str, jobs: list[Came], left: dict[str, int], tmp_path: Path
) -> None:
    found, out = read(tmp_path, form, text)
    assert [*map(without_order, found)] == [*map(without_order, jobs)]
    assert out == left


REQUEUED = """\
JobID|Partition|Account|User|Submit|Start|End|State|AllocTRES|ReqTRES|NNodes
235929|gpu|phys|ann|2026-01-10T08:00:00|2026-01-10T08:00:05|2026-01-10T09:04:47|REQUEUED|cpu=4,node=1|cpu=4,node=1|1
235929.batch||phys||2026-01-10T08:00:05|2026-01-10T08:00:05|2026-01-10T09:04:54|CANCELLED|cpu=4,node=1||1
235929|gpu|phys|ann|2026-01-10T09:04:47|2026-01-10T09:06:50|2026-01-10T10:21:06|NODE_FAIL|cpu=4,node=1|cpu=4,node=1|1
235929.batch||phys||2026-01-10T09:06:50|2026-01-10T09:06:50|2026-01-10T10:21:06|CANCELLED|cpu=4,node=1||1
235929.0||phys||2026-01-10T09:06:51|2026-01-10T09:06:51|2026-01-10T10:21:06|CANCELLED|cpu=4,node=1||1
235929|gpu|phys|ann|2026-01-10T10:21:06|Unknown|2026-01-10T10:30:00|REQUEUED||cpu=4,node=1|1
235929|gpu|phys|ann|2026-01-10T10:30:00|2026-01-10T10:31:00|2026-01-10T10:31:00|REQUEUED||cpu=4,node=1|1
235929|gpu|phys|ann|2026-01-10T10:31:00|2026-01-10T10:31:10|2026-01-10T11:07:03|COMPLETED|cpu=4,node=1|cpu=4,node=1|1
235930|gpu|phys|bob|2026-01-10T08:00:00|2026-01-10T08:01:00|2026-01-10T08:02:00|COMPLETED|cpu=1,node=1|cpu=1,node=1|1
235930|gpu|phys|bob|2026-01-10T08:00:00|2026-01-10T08:01:00|2026-01-10T08:02:00|COMPLETED|cpu=1,node=1|cpu=1,node=1|1
"""
"""As `sacct -D -P` prints a job that was requeued four times, and one that lies in two printed months."""


def test_each_run_of_a_requeued_slurm_job_is_a_job(tmp_path: Path) -> None:
    found, out = read(tmp_path, "sacct", REQUEUED)
    assert [(job.name, job.arrival, job.duration) for job in found] == [
        ("235929", "0s", "3882s"),
        ("235930", "0s", "60s"),
        ("235929-run-2", "3887s", "4456s"),
        ("235929-run-3", "9060s", "2153s"),
    ]
    assert out == {"a step of a job": 3, "no duration": 1, "never started": 1, "the same record twice": 1}


def test_a_run_of_a_slurm_job_never_takes_the_name_of_another(tmp_path: Path) -> None:
    """Names of jobs, unlike their ids, may end as those of runs do."""
    rows = [f"{name}|2026-01-10T0{hour}:00:00|60|1" for hour, name in enumerate(("a", "a-run-2", "a", "a-run-2"))]
    text = "\n".join(["JobName|Submit|Elapsed|NNodes|JobID", *(f"{row}|{number}" for number, row in enumerate(rows))])
    found, _ = read(tmp_path, "sacct", text, ",name=JobName,duration=Elapsed,cpu=1,memory=0,gpu=0,pods=1")
    assert [job.name for job in found] == ["a", "a-run-2", "a-run-3", "a-run-2-run-2"]


def test_a_condition_of_ones_own_keeps_steps_out(tmp_path: Path) -> None:
    found, out = read(tmp_path, "sacct", SACCT, ',where=Account=="phys"')
    assert [job.name for job in found] == ["8213", "8218-3", "8219-1"]
    assert out == {"a step of a job": 3, "never started": 1, "no duration": 2, "not asked for": 1}


GAVEL = {
    7: "A3C\tcd %s/rl && python3 main.py --env Pong\t--max-steps\t0\t1934260\t343918.000000\t4\n",
    9: "A3C\tcd %s/rl && python3 main.py --env Pong\t--max-steps\t0\t1934260\t4\t1.0\t-1.0\t343918.000000\n",
    10: "A3C\tpython3 main.py --env Pong\t%s/rl\t--max-steps\t0\t1934260\t4\t1.0\t-1.0\t343918.000000\n",
}


@pytest.mark.parametrize("columns", GAVEL)
def test_all_three_forms_of_gavel_are_read(columns: int, tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_text(GAVEL[columns])
    objects, _ = read_trace(f"philly:{tmp_path}/a.trace,steps=10")
    (job,) = [came(obj) for obj in objects if obj["kind"] == "Job"]
    assert (job.arrival, job.duration, job.pods) == ("343918s", "193426s", [(1, gpus(4, 16))])


TABLE = "submit;begin;finish;cards;team\n2026-01-01T00:00:00+01:00;0;90;2;A b\n1767222000;0;60;1;a-b\n"


def test_a_mapping_of_ones_own_reads_times_and_delimiters(tmp_path: Path) -> None:
    """Both rows came at one moment; teams that would get one name get two."""
    options = ",arrival=submit,duration=finish-begin,gpu=cards*2,queue=team,nodes=2x8"
    found, _ = read(tmp_path, "table", TABLE, options)
    assert [(job.arrival, job.duration, job.pods[0][1]["nvidia.com/gpu"]) for job in found] == [
        ("0s", "90s", "4"),
        ("0s", "60s", "2"),
    ]
    assert [job.queue for job in found] == ["a-b", found[1].queue]
    assert found[1].queue.startswith("a-b-")
    nodes = [obj for obj in read_trace(f"table:{tmp_path}/trace{options}")[0] if obj["kind"] == "Node"]
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8", "8"]


def made(folder: Path, form: str, text: str, options: str) -> dict[str, str]:
    (folder / "trace").write_text(text)
    nodes = [obj for obj in read_trace(f"{form}:{folder}/trace{options}")[0] if obj["kind"] == "Node"]
    assert all(node["status"] == nodes[0]["status"] for node in nodes)
    found: dict[str, str] = nodes[0]["status"]["allocatable"]
    return found


def test_nodes_that_are_made_have_room_for_the_largest_pod(tmp_path: Path) -> None:
    """What is counted is what `nodes=` says, cards or cpus; nothing else keeps a pod waiting for ever."""
    with_cards = SACCT.replace("cpu=32,gres/gpu=8,mem=64G", "cpu=96,gres/gpu=8,mem=1200G")
    found = made(tmp_path, "sacct", with_cards, ",nodes=2x8")
    assert found == {"cpu": "48", "memory": str(600 * 2**30), "nvidia.com/gpu": "8", "pods": "110"}
    alone = "\n".join(line for line in SACCT.splitlines() if "gres" not in line)
    assert made(tmp_path, "sacct", alone, ",nodes=2x16") == {"cpu": "16", "memory": "64Gi", "pods": "110"}
    parts = made(tmp_path, "pai", PAI, ",nodes=2x4")
    assert (parts["cpu"], parts["alibabacloud.com/gpu-milli"]) == ("16", "4000")


def test_a_mapping_may_lie_in_a_file_and_options_go_over_it(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("arrival: submit\nduration: finish-begin\nqueue: team\n")
    found, _ = read(tmp_path, "table", TABLE, f",preset={tmp_path}/mine.yaml,queue=cards,jobs=1")
    assert [(job.duration, job.queue) for job in found] == [("90s", "2")]


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.zst", ".parquet"])
def test_tables_may_be_packed(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"trace{suffix}"
    match suffix:
        case ".csv.gz":
            file.write_bytes(gzip.compress(TIRESIAS.encode()))
        case ".csv.zst":
            file.write_bytes(zstandard.ZstdCompressor().compress(TIRESIAS.encode()))
        case _:
            columns = {"submit_time": [0, 30], "duration": [164, 147], "job_id": [0, 1], "num_gpu": [1, 12]}
            tables: Any = pa
            files: Any = pq
            files.write_table(tables.table(columns), file)
    objects, _ = read_trace(f"tiresias:{file}")
    assert [came(obj).duration for obj in objects if obj["kind"] == "Job"] == ["164s", "147s"]


def test_a_broken_zst_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv.zst").write_bytes(b"no such thing")
    with pytest.raises((InputError, RequestError), match="zstd"):
        list(read_trace(f"tiresias:{tmp_path}/a.csv.zst")[0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "say what the arrival of a job is"),
        (",arrival=submit", "say what the duration"),
        (",arrival=submit,duration=finished", "there is no column 'finished'; found submit, begin"),
        (",arrival=submit,duration=finish-", "expected a column or a number"),
        (",arrival=submit,duration=(finish", "expected )"),
        (",arrival=submit,duration=finish finish", "expected the end"),
        (",arrival=submit,duration=team-1", "expected numbers beside -"),
        (",arrival=submit,duration=finish,queu=team", "expected nodes=COUNTxSIZE"),
        (",arrival=submit,duration=finish,zone=Mars/Base", "unknown time zone"),
        (",arrival=submit,duration=finish,name=begin", "a second job is called '0'"),
    ],
)
def test_a_mapping_that_says_nothing_is_refused(options: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, "table", TABLE, options)
    assert said in str(refused.value)


def test_a_row_with_other_cells_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected 7 cells, found 2"):
        read(tmp_path, "tiresias", TIRESIAS + "2,3\n")
    for form, text in (("batsim", "[]"), ("philly-log", "{}"), ("batsim", "{")):
        with pytest.raises(InputError, match=r"expected a|not valid JSON"):
            read(tmp_path, form, text)

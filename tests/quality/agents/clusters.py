"""Four clusters about which the answers are known, because each was made for its questions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pumice
from pumice.yaml_text import dump_yaml
from tests.kit import source

EXAMPLES: Final = source.ROOT / "examples"


def day(folder: Path) -> Path:
    """Return the journal of the examples: 100 GPUs, two teams, a job larger than any node, and free GPUs in twos."""
    file = folder / "day.db"
    inputs = ["-f", "cluster.yaml", "-f", "queues/", "-f", "work.yaml", "--config", "scheduler.conf"]
    command = [
        sys.executable,
        "-m",
        "pumice",
        "run",
        *inputs,
        "--time",
        "virtual",
        "--until",
        "600s",
        "--db",
        str(file),
    ]
    subprocess.run(command, cwd=EXAMPLES, check=True, capture_output=True, timeout=100)
    return file


def preempted(folder: Path) -> Path:
    """Return the journal of two nodes: low runs on both from the start; urgent comes after a minute, and low goes."""
    file = folder / "preempted.db"
    config = (
        'actions: "enqueue, allocate, preempt"\n'
        "tiers: [{plugins: [{name: priority}, {name: gang}, {name: conformance}]},"
        " {plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]}]\n"
    )
    cluster = pumice.Cluster(
        pumice.nodes(2, cpu=4),
        pumice.priority_class("high", 1000),
        pumice.gang("low", pods=2, cpu=4, duration="1h", min_available=1),
        pumice.gang("short", pods=1, cpu=4, duration="10m", arrival="2h"),
        pumice.gang("urgent", pods=1, cpu=4, duration="10m", priority="high", arrival="1m"),
        config=config,
    )
    cluster.run("5m")
    cluster.save(file)
    return file


def objects() -> list[Any]:
    """Return manifests of three nodes: narrow's queue has a small quota, picky asks for a label that no node has."""
    picky = pumice.gang("picky", pods=1, namespace="lab")
    picky["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    tainted = pumice.nodes(1, cpu=64, name="tainted")
    tainted[0]["spec"]["taints"] = [{"key": "only", "value": "x", "effect": "NoSchedule"}]
    return [
        *pumice.nodes(2, cpu=8, name="plain"),
        *tainted,
        pumice.queue("narrow", capability={"cpu": 2}),
        pumice.queue("wide", weight=4),
        pumice.gang("narrow", pods=4, cpu=1, queue="narrow", namespace="lab"),
        pumice.gang("fits", pods=2, cpu=2, queue="wide", namespace="lab"),
        pumice.gang("giant", pods=1, cpu=100, queue="wide", namespace="lab"),
        picky,
    ]


def manifests(folder: Path) -> Path:
    """Return a file of these manifests."""
    file = folder / "objects.yaml"
    file.write_text("---\n".join(dump_yaml(each) for each in objects()), "utf-8")
    return file


def running(folder: Path) -> Path:
    """Return manifests for a server: runs holds 12 of 16 cpu for ever, waits asks for 12 more in the queue team."""
    given = [
        *pumice.nodes(2, cpu=8, memory="64Gi"),
        pumice.queue("team", weight=2),
        pumice.gang("runs", pods=4, cpu=3, duration="0"),
        pumice.gang("waits", pods=3, cpu=4, duration="0", queue="team"),
    ]
    file = folder / "running.yaml"
    file.write_text("---\n".join(dump_yaml(each) for each in given), "utf-8")
    return file

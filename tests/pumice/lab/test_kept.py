"""What a run keeps packed comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

import pumice
from pumice.core.messages.decisions import Bind, CycleResult, PodCondition
from pumice.errors import InputError
from pumice.lab.kept import AT_A_TIME, DecidedCycles, PackedObjects, Submitted
from pumice.storage import codec

TRACE = "name,arrival,duration,cpu\na,1,5,1\nb,2,5,1\n"


def decided(cycle: int, *, binds: int = 0, waits: str = "") -> CycleResult:
    placed = tuple(Bind("default", f"p{number}", f"u{number}", "n", "default/j") for number in range(binds))
    said = (PodCondition("default", "w", "u", "Unschedulable", waits),) if waits else ()
    return CycleResult(cycle=cycle, digest="", binds=placed, pod_conditions=said)


def test_cycles_are_made_when_asked_for() -> None:
    cycles = DecidedCycles()
    for result in (decided(1), decided(3, binds=2), decided(4, waits="no room")):
        cycles.note(result, result.cycle / 2)
    one, two, three = cycles
    assert one == pumice.DecidedCycle(1, 0.5, {})
    assert (two.binds, two.at) == ({"default/p0": "n", "default/p1": "n"}, 1.5)
    assert three.pending == {"default/w": "no room"}
    assert (cycles[-1], cycles[1:], len(cycles)) == (three, [two, three], 3)
    with pytest.raises(IndexError):
        cycles[3]


def test_packed_objects_are_a_list() -> None:
    objects = PackedObjects()
    objects += [{"kind": "A"}, {"kind": "B"}, {"kind": "C"}]
    objects[1] = {"kind": "D"}
    objects[0]["kind"] = "a copy"
    del objects[2]
    assert [*objects] == [{"kind": "A"}, {"kind": "D"}] == objects[:]


@pytest.mark.parametrize("count", [1, AT_A_TIME, AT_A_TIME + 1])
def test_what_was_submitted_comes_back_in_order(count: int) -> None:
    submitted = Submitted()
    given = [(float(number), {"kind": "Pod", "number": number}) for number in range(count)]
    submitted.add((at, codec.pack(obj)) for at, obj in given)
    assert [*submitted] == [*submitted] == given


def test_a_trace_is_read_packed_as_it_is_otherwise(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(TRACE)
    path = f"csv:{tmp_path / 'jobs.csv'}"
    packed, plain = pumice.Cluster.of_files(path), pumice.Cluster(pumice.read(path))
    for cluster in (packed, plain):
        cluster.submit(pumice.nodes(1, cpu=1))
    rows, others = (cluster.run("idle").jobs for cluster in (packed, plain))
    assert rows == others
    assert [row.ended for row in rows] == [pytest.approx(6, abs=1), pytest.approx(12, abs=2)]
    assert [*packed.cycles] == [*plain.cycles]


def test_a_job_of_two_traces_is_an_error(tmp_path: Path) -> None:
    for name, text in (("one.csv", TRACE), ("two.csv", TRACE.replace("a,1,5,1", "a,7,5,2"))):
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="already given"):
        pumice.Cluster.of_files(*(f"csv:{tmp_path / name}" for name in ("one.csv", "two.csv")))

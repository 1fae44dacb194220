"""Two runs beside each other: what differs by job, by queue and for the whole cluster."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pumice.questions.replay.amounts import ClusterFigures
from pumice.questions.replay.measure import JobFigures, Measurer, QueueFigures

Plain = dict[str, Any]


@dataclass
class Lived:
    """One run: figures by job, by queue and by resource, and how many cycles it took."""

    jobs: dict[str, JobFigures] = field(default_factory=dict[str, JobFigures])
    queues: dict[str, QueueFigures] = field(default_factory=dict[str, QueueFigures])
    cluster: dict[str, ClusterFigures] = field(default_factory=dict[str, ClusterFigures])
    cycles: int = 0


def lived(measured: Measurer, cycles: int) -> Lived:
    """What was measured."""
    return Lived(measured.jobs(), measured.queues(), measured.cluster(), cycles)


@dataclass
class Comparison:
    """The record, and the same under another configuration."""

    before: Lived
    after: Lived

    @property
    def changed(self) -> Plain:
        """Jobs, queues and resources whose figures differ: figure -> before and after."""
        before, after = self.before, self.after
        return {
            "jobs": _changes(before.jobs, after.jobs, JobFigures()),
            "queues": _changes(before.queues, after.queues, QueueFigures()),
            "cluster": _changes(before.cluster, after.cluster, ClusterFigures()),
        }

    def to_dict(self) -> Plain:
        """For `pumice replay --config`."""
        return {
            "changed": self.changed,
            "before": {name: asdict(queue) for name, queue in self.before.queues.items()},
            "after": {name: asdict(queue) for name, queue in self.after.queues.items()},
            "cluster": {
                "before": {name: asdict(figures) for name, figures in self.before.cluster.items()},
                "after": {name: asdict(figures) for name, figures in self.after.cluster.items()},
            },
        }


def _changes(before: dict[str, Any], after: dict[str, Any], nothing: Any) -> Plain:
    found = {name: changes(before.get(name, nothing), after.get(name, nothing)) for name in sorted({*before, *after})}
    return {name: changed for name, changed in found.items() if changed}


def changes(before: Any, after: Any) -> dict[str, dict[str, Any]]:
    """Figure -> before and after, of the figures that differ; `moved`: the pods that went to different nodes."""
    was, now = _flat(before), _flat(after)
    for one, other in ((was, now), (now, was)):
        if "placements" in one:
            placed = other["placements"]
            one["moved"] = {pod: node for pod, node in one["placements"].items() if placed.get(pod) != node}
    names = [name for name in {**was, **now} if name != "placements"]
    found = {name: {"before": was.get(name, 0.0), "after": now.get(name, 0.0)} for name in names}
    return {name: sides for name, sides in found.items() if sides["before"] != sides["after"]}


def _flat(figures: Any) -> Plain:
    """Its fields; those of a resource under the resource's name."""
    plain = asdict(figures)
    for resource, amounts in plain.pop("resources", {}).items():
        plain |= {f"{resource} {name}": value for name, value in amounts.items()}
    return plain

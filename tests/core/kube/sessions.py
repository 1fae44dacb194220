"""A session of real columns over Kubernetes objects, without plugins: enough for a filter or a scorer alone."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pumice.config.pumice_arguments import PumiceArguments
from pumice.core.kube.placed import placed_pods
from pumice.core.session.nodes import KubeNodes, SessionNodes
from pumice.core.session.reasons import ReasonTable
from pumice.core.state.view import View

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.rules import Check, Score
    from pumice.core.session.session import Session

ALL = slice(None)


def session_over(view: View) -> "Session":
    """A session over a snapshot of the view."""
    snapshot = view.snapshot()
    session = SimpleNamespace(
        config=SimpleNamespace(pumice=PumiceArguments()),
        snapshot=snapshot,
        dims=snapshot.dimensions,
        objects=snapshot.objects,
        derived=snapshot.derived,
        reasons=ReasonTable(),
        nodes=SessionNodes(snapshot),
        kube=KubeNodes(snapshot),
        searches=SimpleNamespace(scratch=np.empty(len(snapshot.nodes.names))),
    )
    return cast("Session", session)


def opened(*objects: dict[str, Any]) -> "Session":
    """A session over these objects."""
    view = View()
    for obj in objects:
        view.apply("ADDED", obj)
    return session_over(view)


def task_named(session: "Session", key: str) -> "Task":
    """The task of a pod, by "namespace/name"."""
    return next(task for task in session.snapshot.tasks.handles if task is not None and task.key == key)


def put(session: "Session", task: "Task", row: int) -> None:
    """Place a task as the predicates plugin's event handlers do."""
    session.nodes.add(row, task, 1)
    session.kube.add(task, row)
    placed_pods(session).add(task, row)


def take(session: "Session", task: "Task", row: int) -> None:
    """Evict a task: NodeInfo forgets it, the node does not."""
    session.kube.remove(task, row)
    placed_pods(session).remove(task, row)


def texts(session: "Session", check: "Check | None") -> list[str]:
    """The reason of each node, "" where it passes; all ways of asking must agree."""
    count = session.nodes.count
    if check is None:
        return [""] * count
    codes = check.many(ALL).copy()
    assert codes.dtype == np.int32
    assert codes.shape == (count,)
    assert [check.one(row) for row in range(count)] == codes.tolist()
    some = np.arange(count, dtype=np.intp)[::-2]
    assert check.many(some).tolist() == codes[some].tolist()
    return [", ".join(reason.text for reason in session.reasons.reasons(code)) for code in codes.tolist()]


def scores(session: "Session", score: "Score | None", candidates: list[int]) -> list[float]:
    """The finished score of each candidate row, 0.0 without a score; all ways of asking must agree to the last bit."""
    count, rows = session.nodes.count, np.array(candidates, dtype=np.intp)
    if score is None:
        return [0.0] * len(candidates)
    raw = score.many(ALL).copy()
    assert raw.shape == (count,)
    assert [score.one(row) for row in range(count)] == raw.tolist()
    assert score.many(rows).tolist() == raw[rows].tolist()
    if score.constant is not None:
        return [score.constant] * len(candidates)
    finished = raw[rows] if score.finish is None else score.finish(raw[rows])
    return [float(one) for one in finished]

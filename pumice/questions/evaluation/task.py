# SPDX-License-Identifier: Apache-2.0
"""One task of an evaluation: a policy on one draw of a workload, reduced to figures. It is all that a worker does."""

from __future__ import annotations

import time

from msgspec import Struct, field

from pumice.questions.evaluation.kept import content_key
from pumice.questions.evaluation.placement import place
from pumice.questions.evaluation.policy import installed
from pumice.questions.gate.expectations import expectation_of
from pumice.questions.gate.run import RunTask, run


class EvaluationTask(Struct, frozen=True):
    """A run and the measures that are asked of it. `modules`: plugins as sources by module name."""

    run: RunTask
    measures: tuple[str, ...]
    modules: dict[str, str] = field(default_factory=dict[str, str])
    placement: bool = False

    @property
    def key(self) -> str:
        """Return the key of its figures."""
        return content_key("evaluation", self)


class EvaluatedFigures(Struct, frozen=True):
    """Figures of one run by measure, and the processor time that it took. `cycles`: those that decided something;
    `failed`: answers that the policy's plugins failed to give; `refused`: objects that the API does not take.
    `problem`: why there are no figures, "" where there are.
    """

    figures: dict[str, float] = field(default_factory=dict[str, float])
    cpu_s: float = 0.0
    cycles: int = 0
    failed: int = 0
    refused: tuple[str, ...] = ()
    problem: str = ""


def evaluated(task: EvaluationTask) -> EvaluatedFigures:
    """Return the figures of a task. Raises ConfigError, InputError."""
    began = time.process_time()
    with installed(task.modules):
        record = place(task.run) if task.placement else run(task.run)
    measures = [expectation_of("", text, "==", 0) for text in task.measures]
    found = {measure.measure: measure.value(record, record.horizon_s) for measure in measures}
    spent = round(time.process_time() - began, 3)
    return EvaluatedFigures(found, spent, record.cycles, record.failed, record.refused)

"""When a Job has enough (source: Kubernetes' job controller and its `success_policy`)."""

from __future__ import annotations

from typing import Final

from pumice.cluster.controllers.batch import indexes
from pumice.cluster.controllers.batch.counting import JobProgress
from pumice.core.objects.metadata import Object, section

REACHED: Final = ("CompletionsReached", "Reached expected number of succeeded pods")


def enough(job: Object, count: JobProgress) -> tuple[str, str] | None:
    """Reason and message of its success; None while there is more to do."""
    rule = _met(job, count)
    if rule is not None:
        return "SuccessPolicy", f"Matched rules at index {rule}"
    completions = job["spec"].get("completions")
    if completions is None:
        return REACHED if count.succeeded and not count.active and not count.terminating else None
    return REACHED if count.succeeded >= completions else None


def _met(job: Object, count: JobProgress) -> int | None:
    """The first rule of its successPolicy that holds, if any."""
    rules: list[Object] = section(job["spec"], "successPolicy").get("rules") or []
    for number, rule in enumerate(rules):
        text, least = rule.get("succeededIndexes"), rule.get("succeededCount")
        wanted = indexes.read(text, job["spec"].get("completions") or 0) if text else None
        done = count.done if wanted is None else count.done & wanted
        if len(done) >= least if least is not None else wanted is not None and done == wanted:
            return number
    return None

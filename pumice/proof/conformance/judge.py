# SPDX-License-Identifier: Apache-2.0
"""One case run and compared: every difference, or why it could not be run."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Final

from pumice.config.errors import PumiceError
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry
from pumice.proof.conformance.case import ActionArguments, misshapen, name_of, setup_of
from pumice.proof.conformance.compare import (
    EXPECTED,
    GROUP_OF,
    Difference,
    Group,
    compare_expect,
    compare_outcome,
    compare_value,
)
from pumice.questions.oneshot.cycles import Cycle, run_cycles
from pumice.questions.oneshot.outcome import at_open

AT_OPEN: Final = ("queues", "tasks")
STORIES: Final = ("cycles", "anyOf", "distinctOutcomes", "atOpen")
"""Keys that `expect` of any other case may have."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a case's run.

    `checked` are the groups that the case says something about, `reason` is why it could not be run, `trace` where it
    raised.
    """

    suite: str
    case: str
    checked: frozenset[Group]
    differences: tuple[Difference, ...] = ()
    reason: str = ""
    trace: str = ""
    outcomes: tuple[Object, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.reason and not self.differences

    def passed_on(self, group: Group) -> bool:
        """Return whether every expectation of this group holds."""
        return not self.reason and all(one.group != group for one in self.differences)

    @property
    def diff(self) -> str:
        """Return the differences in one line."""
        return self.reason or "; ".join(str(one) for one in self.differences)


def judge(
    suite: str, case: Object, kept: ActionArguments | None = None, number: int = 1, *, lenient: bool = False
) -> Verdict:
    """Run one case. It never raises: a case that cannot be run fails, with the reason.

    `kept`: arguments that actions hold already, from an earlier configuration of the process (`inheritance`). `number`:
    of the case in its suite. `lenient`: names in its configuration that do not exist are left out.
    """
    wrong = misshapen(case)
    if wrong:
        return Verdict(suite, name_of(case, number), frozenset(), reason=f"refused: {wrong}")
    checked = checked_groups(case)
    unknown = unknown_keys(case)
    if unknown:
        return Verdict(suite, case["name"], checked, reason=f"refused: {'; '.join(unknown)}")
    try:
        differences, cycles = _run(case, kept or {}, lenient=lenient)
    except PumiceError as error:
        return Verdict(suite, case["name"], checked, reason=f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - whatever a case does to the core, the run goes on
        return Verdict(suite, case["name"], checked, reason=_raised(error), trace=traceback.format_exc())
    outcomes = tuple(dict(cycle.outcome) for cycle in cycles)
    return Verdict(suite, case["name"], checked, tuple(differences), outcomes=outcomes)


def checked_groups(case: Object) -> frozenset[Group]:
    """Return the groups that a case checks anything of."""
    expect: Object = case["expect"]
    groups: set[Group] = {GROUP_OF[key] for _, outcome in _outcomes_of(case) for key in outcome if key in GROUP_OF}
    if "documentedOrder" in case and expect:
        groups.add("decisions")
    if "atOpen" in expect:
        groups.add("numbers")
    return frozenset(groups)


def unknown_keys(case: Object) -> list[str]:
    """Return the expectations of a case that cannot be compared, each with its place and the known keys there.

    Without these a case would pass although a part of it was not compared.
    """
    expect: Object = case["expect"]
    looked_at: list[tuple[str, Object, Collection[str]]] = [("expect", expect, _expectable(case))]
    looked_at.append(("expect.atOpen", expect.get("atOpen") or {}, AT_OPEN))
    looked_at += [(where, outcome, GROUP_OF) for where, outcome in _outcomes_of(case)]
    return [
        f"{where}.{key}: expected one of {', '.join(known)}"
        for where, said, known in looked_at
        for key in said
        if key not in known
    ]


def _expectable(case: Object) -> Collection[str]:
    return EXPECTED if "documentedOrder" in case else STORIES


def _outcomes_of(case: Object) -> Iterator[tuple[str, Object]]:
    """Yield every OUTCOME that a case has, with its place."""
    expect: Object = case["expect"]
    if "documentedOrder" in case:
        yield "documentedOrder", case["documentedOrder"]
    stories: list[tuple[str, list[Object]]] = [("expect.cycles", expect.get("cycles") or [])]
    stories += [(f"expect.anyOf[{number}]", story) for number, story in enumerate(expect.get("anyOf") or [])]
    for where, story in stories:
        for number, outcome in enumerate(story):
            yield f"{where}[{number}]", outcome


def _run(case: Object, kept: ActionArguments, *, lenient: bool) -> tuple[list[Difference], list[Cycle]]:
    upstream = "documentedOrder" in case
    read = setup_of(case, close_hooks=not upstream, lenient=lenient)
    setup = replace(read, carry=Carry(actions=deepcopy(dict(kept))))
    cycles = list(run_cycles(setup, case.get("cycles", 1)))
    outcomes: list[Object] = [{**cycle.outcome} for cycle in cycles]
    expect: Object = case["expect"]
    if upstream:
        differences = compare_expect(case, outcomes[0], _jobs_of_pods(case["objects"]))
        differences += compare_outcome(case["documentedOrder"], outcomes[0], "documentedOrder.")
    elif "anyOf" in expect:
        differences = _compare_any(expect["anyOf"], outcomes)
    else:
        differences = compare_cycles(expect["cycles"], outcomes)
    if "atOpen" in expect:
        differences += _compare_at_open(expect["atOpen"], cycles[0])
    return differences, cycles


def compare_cycles(expected: Sequence[Object], found: Sequence[Object]) -> list[Difference]:
    """Return differences of a whole story, cycle by cycle (numbered from 1 when there is more than one)."""
    differences: list[Difference] = []
    for number, (wanted, outcome) in enumerate(zip(expected, found, strict=True), start=1):
        where = f"cycle {number}: " if len(expected) > 1 else ""
        differences += compare_outcome(wanted, outcome, where)
    return differences


def _compare_any(alternatives: Iterable[Sequence[Object]], found: Sequence[Object]) -> list[Difference]:
    """Return no difference when one alternative fits; otherwise those of the nearest one."""
    return min((compare_cycles(one, found) for one in alternatives), key=len)


def _compare_at_open(expected: Object, first: Cycle) -> list[Difference]:
    seen = at_open(first.result.report)
    differences: list[Difference] = []
    if "queues" in expected:
        differences += compare_value("numbers", expected["queues"], seen["queues"], "atOpen.queues")
    tasks: Object = expected.get("tasks") or {}
    for name, wanted in tasks.items():
        differences += compare_value("numbers", wanted, seen["tasks"].get(name), f"atOpen.tasks.{name}")
    return differences


def _jobs_of_pods(objects: Iterable[Object]) -> dict[str, str]:
    jobs: dict[str, str] = {}
    for obj in objects:
        if obj["kind"] == "Pod":
            metadata: Object = obj["metadata"]
            annotations: Object = metadata.get("annotations") or {}
            group = annotations.get("scheduling.k8s.io/group-name", "")
            namespace = metadata.get("namespace", "")
            jobs[f"{namespace}/{metadata['name']}"] = f"{namespace}/{group}"
    return jobs


def _raised(error: Exception) -> str:
    """Return the exception and the innermost place it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {'/'.join(frames[-1].filename.split('/')[-2:])}:{frames[-1].lineno}" if frames else ""
    return f"raised {type(error).__name__}{place}: {error}"

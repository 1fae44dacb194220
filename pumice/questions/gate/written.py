# SPDX-License-Identifier: Apache-2.0
"""A verdict is written for machines and for a pull request: as JUnit's XML, and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET  # nosec B405 (it writes XML and reads none)

from pumice.questions.gate.explained import Explained, GateReport
from pumice.questions.gate.gate import GateVerdict, is_failure
from pumice.questions.gate.judging import Judged, Judgement
from pumice.questions.gate.policy import DEFAULT_NAMES, GatePolicy
from pumice.units import counted

_UNFIT: Final = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
SKIPPED: Final = (
    Judgement.EMPTY,
    Judgement.UNDECIDED,
    Judgement.BASE_FAILS,
    Judgement.BOTH,
)
MARKS: Final = {Judgement.OK: "✅", Judgement.FIXED: "✅"}
FAILED: Final = "❌"
OTHERWISE: Final = "⚠️"


def number(value: float | None, unit: str) -> str:
    """Return a measure for people: "12.5 s"; "-" for an unknown one."""
    return "-" if value is None else f"{value:g} {unit}".rstrip()


def junit(result: GateVerdict, policy: GatePolicy) -> str:
    """Return JUnit's XML: a suite for each workload, a test for each expectation and default; empty ones and those that
    base breaks too are skipped.
    """
    suites = ET.Element("testsuites", name="pumice gate")
    by_workload = dict[str, list[Judged]]()
    for each in (*result.expectations, *result.defaults):
        by_workload.setdefault(each.workload, []).append(each)
    for workload, judged in by_workload.items():
        failures = sum(_fails(each, policy) for each in judged)
        skipped = sum(each.verdict in SKIPPED and not _fails(each, policy) for each in judged)
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=_xml(workload),
            tests=str(len(judged)),
            failures=str(failures),
            skipped=str(skipped),
        )
        for each in judged:
            _test(suite, each, policy)
    if result.findings:
        count = str(len(result.findings))
        suite = ET.SubElement(suites, "testsuite", name="findings", tests=count, failures=count)
        for finding in result.findings:
            test = ET.SubElement(suite, "testcase", classname="findings", name=_xml(finding))
            ET.SubElement(test, "failure", message=_xml(finding))
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _fails(each: Judged, policy: GatePolicy) -> bool:
    """Return whether a judgement fails the gate; defaults with `both_fail` and `empty` do not."""
    return each.verdict is Judgement.FAILS or (each.name not in DEFAULT_NAMES and is_failure(each, policy))


def _xml(text: str) -> str:
    """Return the text without characters that XML forbids."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def _test(suite: ET.Element, each: Judged, policy: GatePolicy) -> None:
    test = ET.SubElement(suite, "testcase", classname=_xml(each.workload), name=_xml(each.name))
    said = f"{each.verdict}: {each.text}: base {number(each.base, each.unit)}, head {number(each.head, each.unit)}"
    if _fails(each, policy):
        ET.SubElement(test, "failure", message=_xml(said)).text = _xml(each.why) or None
    elif each.verdict in SKIPPED:
        ET.SubElement(test, "skipped", message=_xml(said))


def markdown(result: GateReport, policy: GatePolicy) -> str:
    """Return a comment for a pull request."""
    return "\n".join(_lines(result, policy)) + "\n"


def _lines(result: GateReport, policy: GatePolicy) -> Iterator[str]:
    yield f"## {'✅ The policy passes' if result.passes else '❌ The policy fails'}"
    yield ""
    yield f"`{result.base}` → `{result.head}`"
    if result.findings:
        yield from ("", "**New in head, by reading alone:**", "")
        yield from (f"- {_cell(each)}" for each in result.findings)
    shown = [*result.expectations, *(each for each in result.defaults if each.verdict is not Judgement.OK)]
    if shown:
        yield from ("", "| | expectation | workload | base | head | verdict |", "|---|---|---|---:|---:|---|")
    for each in shown:
        cells = (_cell(each.name), _cell(each.workload), number(each.base, each.unit), number(each.head, each.unit))
        why = f": {_cell(each.why)}" if each.why else ""
        mark = FAILED if _fails(each, policy) else MARKS.get(each.verdict, OTHERWISE)
        yield f"| {mark} | {' | '.join(cells)} | {each.verdict}{why} |"
    for failure in result.failures:
        yield from _failure(failure)
    yield from _moved(result)


def _failure(failure: Explained) -> Iterator[str]:
    size = f"{counted(failure.jobs, 'job')}, {counted(failure.nodes, 'node')}"
    yield from ("", f"<details><summary>{_cell(failure.name)}, in small: {size}</summary>", "")
    if (found := failure.difference) is not None:
        yield f"First decision that differs, at {found.at:g} s, about `{found.job}`:"
        yield ""
        for name, side in (("base", found.base), ("head", found.head)):
            binds = [f"{pod} → {node}" for pod, node in side.binds.items()]
            gone = [f"evicts {pod}" for pod in side.evictions]
            yield f"- {name}: {_cell('; '.join([*binds, *gone]) or side.reason or 'decides nothing')}"
        yield ""
    yield from ("```yaml", failure.case.rstrip(), "```", "", "</details>")


def _moved(result: GateVerdict) -> Iterator[str]:
    rows = [
        (each.workload, group)
        for each in result.moved
        for group in (*each.queues, *each.sizes)
        if abs(group.base_s - group.head_s) >= 0.05
    ]
    pods = sum(each.pods for each in result.moved)
    if not rows and not pods:
        yield from ("", "Nothing moves: every job waits as long as before, on the same nodes.")
        return
    yield from ("", f"**What moves** ({counted(pods, 'pod')} on other nodes):", "")
    if rows:
        yield from ("| workload | jobs of | mean wait, base | head |", "|---|---|---:|---:|")
    for workload, group in rows:
        yield f"| {_cell(workload)} | {_cell(group.group)} ({group.jobs}) | {group.base_s:g} s | {group.head_s:g} s |"


def _cell(text: str) -> str:
    """Return the text escaped for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")

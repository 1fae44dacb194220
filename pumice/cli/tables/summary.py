# SPDX-License-Identifier: Apache-2.0
"""The summary of a run: pods by state, jobs with their phases, results of a storm or a mirror."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import asdict

from pumice.cli.tables.table import WholeTable
from pumice.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType

    from pumice.actors.metrics.summary import RunSummary
    from pumice.core.messages.events import ShadowTold
    from pumice.core.objects.metadata import Object
    from pumice.questions.replay.agreement import Agreement
    from pumice.runtime.summary import BrokenInvariant, MirrorResult, RunResult

# --- Agreement of two schedulers

"""Number of differences that are shown."""


def show_agreement(console: Console, agreement: Agreement) -> None:
    """Print the agreement in a sentence, and the differences."""
    share = "" if agreement.share is None else f" ({agreement.share:.1%})"
    console.print(
        f"{agreement.cycles} cycles were the cluster's own scheduler's: of its {agreement.decisions} decisions"
        f" {agreement.same} are the same here{share}, {agreement.ties} of them one of equally good nodes;"
        f" {agreement.other_node} with another node, {agreement.only_there} not made here, and"
        f" {len(agreement.only_here)} made here alone.",
    )
    for each in (*agreement.differences, *agreement.only_here)[:SHOWN]:
        line = f"    cycle {each.cycle}: {each.task}: there {said(each.recorded)}, here {said(each.decided)}"
        console.print(line)


def said(decision: Object | None) -> str:
    """Return a decision in words; None without one."""
    if decision is None:
        return "left alone"
    why = f" ({decision['why']})" if decision.get("why") else ""
    return f"bound to {decision['node']}{why}" if decision["_"] == "Bind" else f"evicted from {decision['node']}"


# --- Faults


def show_faults(console: Console, injected: dict[str, int], title: str = "") -> None:
    """Print the number of faults injected, by kind."""
    table = WholeTable("fault", "injected", title=title)
    for kind, count in injected.items():
        table.add_row(kind, str(count))
    console.print(table)


def show_summary(summary: RunResult, console: Console) -> None:
    """Print the table of a run, the faults, and after a storm the broken invariants."""
    console.print(summary_table(summary))
    if summary.faults_injected is UNSET:
        return
    if summary.violations is UNSET:  # faults of clients, whose state no monitor checks
        show_faults(console, summary.faults_injected)
    else:
        show_storm(summary.faults_injected, summary.violations, console)


def show_storm(faults: dict[str, int], violations: Sequence[BrokenInvariant], console: Console) -> None:
    """Print faults by kind, then the broken invariants."""
    show_faults(console, faults)
    if not violations:
        console.print("everything held")
    for one in violations:
        console.print(f"{one.invariant}: {one.message}")


def summary_table(summary: RunSummary) -> RenderableType:
    """Return pods by state, jobs with their phases, and how fast it went."""
    table = WholeTable("job", "phase", "bound", "pending", title=_headline(summary))
    for name, job in sorted(summary.jobs.items()):
        table.add_row(name, job.phase, str(job.bound), str(job.pending))
    return table if table.row_count else _headline(summary)


def _headline(summary: RunSummary) -> str:
    pods = ", ".join(f"{count} {state}" for state, count in asdict(summary.pods).items())
    return f"{counted(summary.cycles, 'cycle')}, pods: {pods}; {summary.seconds:.1f} s, {summary.pods_per_s:.0f} pods/s"


# --- Mirrors

SHOWN: Final = 20
"""Number of differences that are shown, the newest."""


def show_mirrored(summary: MirrorResult, console: Console) -> None:
    """Print the table of a run, and the comparison."""
    console.print(summary_table(summary))
    if summary.shadow is not UNSET:
        show_shadow(summary.shadow, console)


def show_shadow(found: ShadowTold, console: Console) -> None:
    """Print the shadow's agreement in sentences, and the differences."""
    share = "" if found["share"] is None else f" ({found['share']:.1%})"
    console.print(
        f"shadow: of {found['decisions']} decisions of the cluster's {found['same']} are the same{share},"
        f" {found['ties']} of them one of equally good nodes; {found['other_node']} with another node,"
        f" {found['only_there']} not made here, {found['only_here']} made here alone",
    )
    if found.get("groups") is not None:
        console.print(
            f"at the last look {found.get('other_phases')} of {found.get('groups')} PodGroups had another phase here,"
            f" {found.get('other_conditions')} other conditions, and {found.get('other_reasons')} of"
            f" {found.get('waiting')} waiting pods another reason",
        )
    for each in found["differences"][-SHOWN:]:
        there, here = _said(each["there"], each["why_there"]), _said(each["here"], each["why_here"])
        line = f"    cycle {each['cycle']}: {each['what']} of {each['name']}: there {there}, here {here}"
        console.print(line)


def _said(what: str, why: str) -> str:
    return (what or "nothing") + (f" ({why})" if why else "")

"""How a run went: pods by state, jobs with their phases, and what a storm did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.cli.tables.faults import show_faults
from pumice.cli.tables.whole import WholeTable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from pumice.core.objects.metadata import Object


def show_summary(summary: Object, console: Console) -> None:
    """The table of a run; after a storm, what struck and what did not hold."""
    console.print(summary_table(summary))
    if "violations" in summary:
        show_storm(summary, console)


def show_storm(found: Object, console: Console) -> None:
    """Faults by kind, then what did not hold."""
    show_faults(console, found["faults_injected"])
    if not found["violations"]:
        console.print("everything held")
    for one in found["violations"]:
        console.print(f"{one['invariant']}: {one['message']}", markup=False, soft_wrap=True)


def summary_table(summary: Object) -> RenderableType:
    """Pods by state, jobs with their phases, and how fast it went."""
    table = WholeTable("job", "phase", "bound", "pending", title=_headline(summary))
    for name, job in sorted(summary["jobs"].items()):
        table.add_row(name, str(job["phase"]), str(job["bound"]), str(job["pending"]))
    return table if table.row_count else _headline(summary)


def _headline(summary: Object) -> str:
    pods = ", ".join(f"{count} {state}" for state, count in summary["pods"].items())
    seconds, rate = summary["seconds"], summary["pods_per_s"]
    return f"{summary['cycles']} cycles, pods: {pods}; {seconds:.1f} s, {rate:.0f} pods/s"

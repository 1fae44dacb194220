"""The summary of a run: pods by state, jobs with their phases, what a storm or a mirror did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.cli.terminal import WholeTable
from pumice.units import counted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from pumice.core.objects.metadata import Object
    from pumice.questions.replay.agreement import Agreement

# --- Agreement of two schedulers

"""So many differences are shown."""


def show_agreement(console: Console, agreement: Agreement) -> None:
    """In a sentence, and where they differ."""
    share = "" if agreement.share is None else f" ({agreement.share:.1%})"
    console.print(
        f"{agreement.cycles} cycles were the cluster's own scheduler's: of its {agreement.decisions} decisions"
        f" {agreement.same} are the same here{share}, {agreement.ties} of them one of equally good nodes;"
        f" {agreement.other_node} with another node, {agreement.only_there} not made here, and"
        f" {len(agreement.only_here)} made here alone.",
        soft_wrap=True,
    )
    for each in (*agreement.differences, *agreement.only_here)[:SHOWN]:
        line = f"    cycle {each.cycle}: {each.task}: there {said(each.recorded)}, here {said(each.decided)}"
        console.print(line, markup=False, soft_wrap=True)


def said(decision: dict[str, Any] | None) -> str:
    """A decision in words; None: there was none."""
    if decision is None:
        return "left alone"
    why = f" ({decision['why']})" if decision.get("why") else ""
    return f"bound to {decision['node']}{why}" if decision["_"] == "Bind" else f"evicted from {decision['node']}"


# --- Faults


def show_faults(console: Console, injected: dict[str, int], title: str = "") -> None:
    """How often each kind of fault struck."""
    table = WholeTable("fault", "injected", title=title)
    for kind, count in injected.items():
        table.add_row(kind, str(count))
    console.print(table)


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
    return f"{counted(summary['cycles'], 'cycle')}, pods: {pods}; {seconds:.1f} s, {rate:.0f} pods/s"


# --- Mirrors

SHOWN: Final = 20
"""So many differences are shown, the newest."""


def show_mirrored(summary: dict[str, Any], console: Console) -> None:
    """The table of a run, and what was compared."""
    show_summary(summary, console)
    if "shadow" in summary:
        show_shadow(summary["shadow"], console)


def show_shadow(found: dict[str, Any], console: Console) -> None:
    """In sentences, and where they differ."""
    share = "" if found["share"] is None else f" ({found['share']:.1%})"
    console.print(
        f"shadow: of {found['decisions']} decisions of the cluster's {found['same']} are the same{share},"
        f" {found['ties']} of them one of equally good nodes; {found['other_node']} with another node,"
        f" {found['only_there']} not made here, {found['only_here']} made here alone",
        soft_wrap=True,
    )
    if "groups" in found:
        console.print(
            f"at the last look {found['other_phases']} of {found['groups']} PodGroups had another phase here,"
            f" {found['other_conditions']} other conditions, and {found['other_reasons']} of {found['waiting']}"
            " waiting pods another reason",
            soft_wrap=True,
        )
    for each in found["differences"][-SHOWN:]:
        there, here = (_said(each, side) for side in ("there", "here"))
        line = f"    cycle {each['cycle']}: {each['what']} of {each['name']}: there {there}, here {here}"
        console.print(line, markup=False, soft_wrap=True)


def _said(each: dict[str, Any], side: str) -> str:
    why = each[f"why_{side}"]
    return f"{each[side] or 'nothing'}" + (f" ({why})" if why else "")

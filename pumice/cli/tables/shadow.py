"""How a mirror went, and how far its shadow and the cluster's own scheduler decided alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.cli.tables.summary import show_summary

if TYPE_CHECKING:
    from rich.console import Console

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

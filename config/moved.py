# SPDX-License-Identifier: Apache-2.0
"""Names of scheduler configurations that earlier versions of Volcano had, and their replacements in v1.15.1.

Found in the history of Volcano's `pkg/scheduler` (conf, plugins, actions). v1.15.1 passes over all of them in silence,
except for actions, for which it ignores the whole file.
"""

from __future__ import annotations

from typing import Final

_CARDS: Final = "plugin deviceshare has it: deviceshare.{}"
_TAINTS: Final = "no switch is left: the node's taint of that name is looked at by predicate.TaintTolerationEnable"
_PROPORTIONAL: Final = "plugin resource-strategy-fit has it: its argument proportional"
_USAGE: Final = "plugin usage reads thresholds: {{cpu: …, mem: …}} now; {} is cpu or mem there"
_SWITCHES: Final = ("GPUSharingEnable", "GPUNumberEnable", "VGPUEnable", "NodeLockEnable")

MOVED_ARGUMENTS: Final[dict[str, str]] = {
    **{f"{before}.{each}": _CARDS.format(each) for before in ("predicate", "devices") for each in _SWITCHES},
    **{f"predicate.{each}PressureEnable": _TAINTS for each in ("Memory", "Disk", "PID")},
    "predicate.ProportionalEnable": _PROPORTIONAL,
    "predicate.resources": _PROPORTIONAL,
    "predicate.resources.*": _PROPORTIONAL,
    "selectorspread.weight": "use podtopologyspread.weight, and topology spread constraints in the pods",
    "tdm.evict.maxNum": "each job says it now, in its annotation volcano.sh/max-unavailable",
    "tdm.evict.max-step": "each job says it now, in its annotation volcano.sh/max-unavailable",
    "CPUUsageAvg.*": _USAGE.format("CPUUsageAvg"),
    "CpuUsageAvg.*": _USAGE.format("CpuUsageAvg"),
    "MEMUsageAvg.*": _USAGE.format("MEMUsageAvg"),
    "MemUsageAvg.*": _USAGE.format("MemUsageAvg"),
}
"""By argument, with or without its plugin; a trailing ``*`` stands for any ending."""

_POINTS: Final = (
    "JobOrder", "TaskOrder", "QueueOrder", "JobReady", "Preemptable", "Reclaimable", "Predicate", "NodeOrder",
)  # fmt: skip
MOVED_FLAGS: Final[dict[str, str]] = {
    **{f"disable{point}": f"use enable{point}: false in place of disable{point}: true" for point in _POINTS},
    "disablePrioritize": "use enableNodeOrder: false",
    "enableNamespaceOrder": "Volcano orders no namespaces any more: leave it out",
    "enablePreemptCommit": "Volcano reads it no more: leave it out",
    "enabledPodBunchOrder": "use enabledSubJobOrder",
    "enabledPodBunchReady": "use enabledSubJobReady",
    "enabledPodBunchPipelined": "use enabledSubJobPipelined",
}
MOVED_PLUGINS: Final[dict[str, str]] = {
    "devices": "it is called deviceshare now",
    "prioritize": "nodeorder scores nodes now",
    "reservation": "Volcano has it no more; plugin sla keeps room for jobs that waited long",
}
MOVED_ACTIONS: Final[dict[str, str]] = dict.fromkeys(("elect", "reserve"), MOVED_PLUGINS["reservation"])


def moved(what: str, name: str) -> str:
    """Return the replacement of a name that earlier versions had; "" for another name. `what` as in errors: "argument",
    "action", "plugin" or "key or flag".
    """
    table = {"action": MOVED_ACTIONS, "plugin": MOVED_PLUGINS, "key or flag": MOVED_FLAGS}.get(what, MOVED_ARGUMENTS)
    if name in table:
        return table[name]
    # Only after the whole names: `predicate.resources` and `predicate.resources.*` both stand in the table.
    endings = (key for key in table if key.endswith("*") and name.startswith(key[:-1]))
    return next((table[key] for key in endings), "")

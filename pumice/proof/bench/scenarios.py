# SPDX-License-Identifier: Apache-2.0
"""Every scenario in one visible table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pumice.proof.bench import (
    allocate,
    asking,
    cards,
    claims,
    commands,
    eta,
    gate,
    journal,
    kai,
    kueue,
    openb,
    opening,
    pipeline,
    preempt,
    replay,
    serial,
    simulate,
    small,
    spread,
    steady,
    storm,
    topology,
    whatif,
)
from pumice.proof.bench.figures import Advance, Parameters, Samples


@dataclass(frozen=True, slots=True)
class Scenario:
    """Description of a scenario, its usual size, and the function that measures it (one `advance(1)` a run)."""

    what: str
    defaults: Parameters
    measure: Callable[[Parameters, Samples, Advance], None]


SCENARIOS: Final[dict[str, Scenario]] = {
    "allocate": Scenario("one cycle from nothing, everything pending", allocate.DEFAULTS, allocate.measure),
    "cards": Scenario("pods that share cards, one cycle from nothing", cards.DEFAULTS, cards.measure),
    "claims": Scenario("pods with claims for devices, one cycle from nothing", claims.DEFAULTS, claims.measure),
    "kai": Scenario("jobs of GPUs as in KAI's scale tests", kai.DEFAULTS, kai.measure),
    "kueue": Scenario("workloads admitted to 30 queues as in Kueue's test", kueue.DEFAULTS, kueue.measure),
    "steady": Scenario("cycles on a full house", steady.DEFAULTS, steady.measure),
    "topology": Scenario("gangs into racks and spines, one cycle from nothing", topology.DEFAULTS, topology.measure),
    "spread": Scenario("spread and anti-affinity, one cycle from nothing", spread.DEFAULTS, spread.measure),
    "pipeline": Scenario("end to end through every actor", pipeline.DEFAULTS, pipeline.measure),
    "open": Scenario("opening a session on running pods", opening.DEFAULTS, opening.measure),
    "journal": Scenario("durable records a second", journal.DEFAULTS, journal.measure),
    "preempt": Scenario("preemption on a full house", preempt.DEFAULTS, preempt.measure),
    "preemptAffinity": Scenario("the same, tried node by node", preempt.AFFINITY_DEFAULTS, preempt.measure_affinity),
    "preemptFew": Scenario("the same, where few may be evicted", preempt.FEW_DEFAULTS, preempt.measure_few),
    "asking": Scenario("who waits and why, on a full house", asking.DEFAULTS, asking.measure),
    "replay": Scenario("a journal decided again, and a restart from it", replay.DEFAULTS, replay.measure),
    "openb": Scenario("the openb trace in one cycle", openb.DEFAULTS, openb.measure),
    "whatif": Scenario("two futures of a full cluster, an hour ahead", whatif.DEFAULTS, whatif.measure),
    "eta": Scenario("estimated starts in a full cluster", eta.DEFAULTS, eta.measure),
    "gate": Scenario("a day of a cluster under two policies", gate.DEFAULTS, gate.measure),
    "simulate": Scenario("a day's jobs through the library", simulate.DEFAULTS, simulate.measure),
    "small": Scenario("cycles with nothing or one pod to place", small.DEFAULTS, small.measure),
    "serial": Scenario("creates over HTTP, by one client and sixteen", serial.DEFAULTS, serial.measure),
    "commands": Scenario("each command on the journal of a half waiting cluster", commands.DEFAULTS, commands.measure),
    "storm": Scenario("simulated bind storms a second", storm.DEFAULTS, storm.measure),
}

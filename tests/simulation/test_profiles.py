"""Whether what a profile promises happens: a rate without occasions finds nothing, and nobody notices."""

from __future__ import annotations

import pytest

from pumice.proof.storm.script.profiles import PACKAGED, profile
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.simulation import simulate
from pumice.proof.storm.stress import StressPlan, script_of

SMALL = Size(5, 40)
SEEDS = 30
FIRST = {"storm": (72, 50, 3, 1), "evictions": (4,), "live": (4, 0), "half+evictions": (4, 0), "binds": (4, 7)}
"""Seeds with many kinds of faults, to be done soon; when they have them no more, the others do."""
QUICK = ("nodes", "claims")
OTHERS = {"live": "live+evictions"}
"""Under `pumice run` the user's configuration evicts, or it does not; a simulated one takes that of `evictions`."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in (*PACKAGED, "half+evictions")],
)
def test_every_rate_strikes(name: str) -> None:
    """In few storms, in which all else holds."""
    missing = set(profile(name).rates)
    plan = StressPlan(OTHERS.get(name, name), size=SMALL)
    for seed in dict.fromkeys((*FIRST.get(name, ()), *range(SEEDS))):
        if not missing:
            return
        outcome = simulate(script_of(seed, plan))
        assert outcome.violations == []
        missing -= {event.what for event in outcome.struck}
    assert not missing

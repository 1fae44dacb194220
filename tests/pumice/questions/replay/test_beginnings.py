"""How long pods run that do not say so, as a journal has it."""

import pytest

from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.questions.replay.handover import Beginnings
from pumice.storage import codec
from tests.kit.pods import pod


def cycle(*, observed: bool) -> CycleRecord:
    return CycleRecord(1, 0.0, 0, 1, 1, "", "", 0, observed=observed)


def runs(beginnings: Beginnings, name: str, *, from_s: float, until_s: float) -> None:
    for phase, at in (("Running", from_s), ("Succeeded", until_s)):
        blob = codec.pack(pod(name, uid=name, node="n0", phase=phase))
        beginnings.note(Mutation(1, "MODIFIED", "Pod", "default", name, blob), at)


@pytest.mark.parametrize(("observed", "supposed_s"), [(False, 5.0), (True, 0.0)])
def test_pods_of_another_cluster_run_for_ever_until_one_was_seen_to_end(observed: bool, supposed_s: float) -> None:
    beginnings = Beginnings()
    beginnings.decided(cycle(observed=observed))
    assert beginnings.default_duration_s == supposed_s
    runs(beginnings, "a", from_s=10.0, until_s=70.0)
    beginnings.decided(cycle(observed=observed))
    assert beginnings.default_duration_s == 60.0


def test_what_the_journal_says_counts_before_all() -> None:
    beginnings = Beginnings()
    beginnings.told(ConfigLoaded("", "", "", default_duration_s=7.0))
    beginnings.decided(cycle(observed=True))
    runs(beginnings, "a", from_s=10.0, until_s=70.0)
    assert beginnings.default_duration_s == 7.0

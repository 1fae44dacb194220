"""Faults that clients met, as lines of a story."""

from pumice.core.messages.events import FaultsBegan, FaultStruck
from pumice.questions.history.entries import StoryEntry, entry_of
from pumice.questions.history.story import Overview
from pumice.storage import codec
from pumice.storage.journal import FAULT, Stored


def entry(event: FaultsBegan | FaultStruck) -> StoryEntry:
    return entry_of(Stored(3, FAULT, codec.encode(event), 0, 1.0, b""))


def test_a_strike_is_about_its_object() -> None:
    struck = FaultStruck("lost", "lose-answer", "Pod", "ns", "p", "vc-scheduler", "create", "binding", nth=2)
    told = entry(struck)
    assert told.text == "fault lose-answer (lost) struck vc-scheduler: create Pod/binding ns/p #2"
    assert told.about == {"ns/p"}
    assert told.data["fault"]["verb"] == "create"


def test_the_overview_has_profiles_and_counts_strikes() -> None:
    overview = Overview()
    overview.add(entry(FaultsBegan(7, b'[{"rule":"lost"}]')))
    overview.add(entry(FaultStruck("lost", "lose-answer", "Pod", "ns", "p")))
    assert (overview.records, [each.sequence for each in overview.events]) == ({FAULT: 2}, [3])
    assert "lost" in overview.events[0].text


def test_a_profile_names_its_rules() -> None:
    assert entry(FaultsBegan(7, b'[{"rule":"a"},{"rule":"b"}]')).text == "faults in force from here on, by seed 7: a, b"
    assert entry(FaultsBegan(7)).text == "faults in force from here on, by seed 7: none"

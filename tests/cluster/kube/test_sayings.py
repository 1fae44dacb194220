"""What is said again is counted."""

from pumice.cluster.kube.events import KEPT, Sayings
from pumice.core.messages.commands import Create, Patch
from pumice.storage.codec import unpack

ABOUT = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "uid": "u"}}


def test_the_second_time_counts_in_the_first_event() -> None:
    sayings = Sayings("me")
    first = sayings.say(ABOUT, "R", "m", 0.0, source="s")
    other = sayings.say(ABOUT, "R", "other", 0.0, source="s")
    again = sayings.say(ABOUT, "R", "m", 60.0, source="s")
    assert isinstance(first, Create)
    assert isinstance(other, Create)
    assert isinstance(again, Patch)
    assert again.name == unpack(first.blob)["metadata"]["name"]
    assert unpack(again.blob) == {"count": 2, "lastTimestamp": "1970-01-01T00:01:00Z"}


def test_only_so_much_is_remembered() -> None:
    sayings = Sayings("me")
    for number in range(KEPT + 1):
        sayings.say(ABOUT, "R", str(number), 0.0, source="s")
    assert isinstance(sayings.say(ABOUT, "R", "0", 0.0, source="s"), Create)
    assert isinstance(sayings.say(ABOUT, "R", str(KEPT), 0.0, source="s"), Patch)

"""What a shadow found, as a line of a story."""

from pumice.core.messages.events import ShadowCompared, ShadowDifference
from pumice.questions.history.entries import entry_of
from pumice.storage import codec
from pumice.storage.journal import SHADOW, Stored


def test_a_comparison_is_about_those_who_differ() -> None:
    difference = ShadowDifference("bind", "ns/p", "n1", "n2", "", "n2 scores 3, n1 2")
    compared = ShadowCompared(
        7, 1.0, "digest", "other.conf", other=True, decisions=2, same=1, differences=(difference,)
    )
    entry = entry_of(Stored(3, SHADOW, codec.encode(compared), 0, 1.0, b""))
    assert entry.text == (
        "beside cycle 7 by other.conf 1 of 2 decisions are the same here; bind of ns/p: there n1, here n2"
    )
    assert entry.about == {"ns/p"}
    assert entry.data["differences"][0]["why_here"] == "n2 scores 3, n1 2"

"""What the clients of a soak count between two samples, and over the whole run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tests.benches.soak.judging import percentiles

VERBS: Final = ("post", "delete", "patch", "get", "list")
MOST_SAID: Final = 20


@dataclass(slots=True)
class Counts:
    """`made`, `gone`: pods whose creation and whose end a watch has told. `late_s`: how far the heartbeats were behind
    at worst.
    """

    took_s: dict[str, list[float]] = field(default_factory=lambda: {verb: [] for verb in VERBS})
    lags_s: list[float] = field(default_factory=list[float])
    made: int = 0
    gone: int = 0
    heartbeats: int = 0
    late_s: float = 0.0
    watches: int = 0
    failures: int = 0
    said: list[str] = field(default_factory=list[str])

    def lag(self, lag_s: float | None) -> None:
        """An event came so long after its writer was answered; None: nobody knows."""
        if lag_s is not None:
            self.lags_s.append(lag_s)

    def failed(self, words: str) -> None:
        """Something went otherwise than it should."""
        self.failures += 1
        if len(self.said) < MOST_SAID:
            self.said.append(words)

    def taken(self, seconds: float) -> dict[str, float]:
        """The columns of one sample over that many seconds; counting begins anew."""
        found: dict[str, float] = {"made": self.made, "gone": self.gone, "late_s": self.late_s}
        number = 0
        for name, values in (*self.took_s.items(), ("lag", self.lags_s)):
            if values:
                median, high = percentiles(values)
                found |= {f"{name}_p50_ms": median * 1e3, f"{name}_p99_ms": high * 1e3}
            number += len(values) if name != "lag" else 0
            values.clear()
        found |= {"requests_per_s": number / seconds, "heartbeats_per_s": self.heartbeats / seconds}
        found["watches"] = self.watches
        self.heartbeats, self.late_s = 0, 0.0
        return found

# SPDX-License-Identifier: Apache-2.0
"""Start of a future: a cluster at a moment, as plain data that can be changed and run again and again."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final

from pumice.config.schema import SchedulerConfig
from pumice.core.messages.commands import StoreRequest
from pumice.core.messages.decisions import Bind, Evict
from pumice.core.messages.events import ConfigLoaded
from pumice.core.objects.metadata import Object

NOTHING_TOLD: Final = ConfigLoaded("", "", "")


@dataclass(frozen=True, slots=True)
class Fork:
    """A cluster at `now` (seconds since the epoch).

    `objects`: as an API has them, not to be changed; those without a uid are created anew. `told`: the text of
    `config`. `cycle` and `carry` are those of the newest cycle, `in_flight` what it decided and no object shows yet.
    `default_duration_s`: how long a pod runs that does not say (0: beyond every horizon). `later`: objects that come
    so many seconds after `now`; `before`: what stood at places of `objects` that a change has written; `asks`: what is
    asked of the api before anything else happens.
    """

    objects: tuple[Object, ...]
    now: float
    config: SchedulerConfig
    told: ConfigLoaded = NOTHING_TOLD
    cycle: int = 0
    carry: Mapping[str, Any] = field(default_factory=Object)
    in_flight: tuple[Bind | Evict, ...] = ()
    default_duration_s: float = 0.0
    later: tuple[tuple[float, Object], ...] = ()
    asks: tuple[StoreRequest, ...] = ()
    before: Mapping[int, Object] = field(default_factory=dict[int, Object])

    def without(self, places: Container[int]) -> Fork:
        """Return the fork without the objects at these places of `objects`."""
        kept = [place for place in range(len(self.objects)) if place not in places]
        before = {now: self.before[place] for now, place in enumerate(kept) if place in self.before}
        return replace(self, objects=tuple(self.objects[place] for place in kept), before=before)

    def uid_seed(self, seed: int) -> int:
        """Return the seed of uids and generated names. Objects may have uids of the same seed already, so it follows
        from all of these, and none is drawn again.
        """
        uids = sorted(uid for obj in self.objects if (uid := obj["metadata"].get("uid")))
        if not uids:
            return seed
        return seed + int.from_bytes(blake2b("".join(uids).encode(), digest_size=6).digest())

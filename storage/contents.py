"""What a record holds, decoded once for all who fold over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.storage import codec
from pumice.storage import journal as kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.storage.journal import Stored

Content = Mutation | CycleRecord | Bind | Evict | ConfigLoaded

_DECODERS: Final[dict[str, Callable[[bytes], Any]]] = {
    kinds.API: codec.decoder(Mutation),
    kinds.CYCLE: codec.decoder(CycleRecord),
    kinds.DECISION: codec.decoder(Decision),
    kinds.CONFIG: codec.decoder(ConfigLoaded),
}


def content(stored: Stored) -> Content | None:
    """The message in a record of what a state is made of; None for other kinds. Raises CodecError."""
    decode = _DECODERS.get(stored.kind)
    found: Content | None = None if decode is None else decode(stored.payload)
    return found

"""Questions about the future that a program asks: when jobs start, and what would differ after changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from pumice.config.durations import parse_duration
from pumice.config.errors import ConfigError
from pumice.core.messages.events import ConfigLoaded
from pumice.errors import InputError
from pumice.load.manifests import Loaded, load_text
from pumice.plugins.loader import identities
from pumice.questions.eta.estimate import FutureSampling, estimates_of
from pumice.questions.eta.runs import runs_in
from pumice.questions.whatif import changes
from pumice.questions.whatif.ask import what_if
from pumice.questions.whatif.changes import ForkChange
from pumice.questions.whatif.sources import journaled, parsed

Plain = dict[str, Any]
MOST_SAMPLES: Final = 200
MOST_HORIZON_S: Final = 30 * 86400.0
SAID: Final[Mapping[str, Callable[[str], ForkChange]]] = {
    "addNodes": changes.add_nodes,
    "set": changes.set_field,
    "scale": changes.scale,
    "cordon": changes.cordon,
    "drain": changes.drain,
    "removeNode": changes.remove_node,
    "delete": changes.delete,
}
"""Changes that are said in a text, as the options of `pumice whatif` are."""


class WhatIf(msgspec.Struct, forbid_unknown_fields=True):
    """The body of the question. Each of `changes` has one key: one of `SAID`, `submit` with a list of objects, or
    `config` with the text of a configuration. `cycle`: fork there, not at the end of the journal.
    """

    changes: list[dict[str, Any]]
    horizon: str = "1h"
    seed: int = 0
    cycle: int | None = None


def difference_of(db: Path, body: bytes) -> Plain:
    """What would differ after the changes. Raises InputError, ConfigError."""
    try:
        asked = msgspec.json.decode(body, type=WhatIf)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"the body: {error}") from error
    if not asked.changes:
        raise InputError("changes: expected one at least, found none")
    made = [_change(number, each) for number, each in enumerate(asked.changes)]
    fork = anyio.run(journaled, db, asked.cycle)
    return what_if(fork, made, horizon_of(asked.horizon), seed=asked.seed).to_dict()


def _change(number: int, said: Plain) -> ForkChange:
    where = f"changes[{number}]"
    if len(said) != 1:
        raise InputError(f"{where}: expected one key, found {len(said)}")
    ((key, value),) = said.items()
    if key == "submit" and isinstance(value, list):
        return _submit(where, value)
    if key == "config" and isinstance(value, str):
        told = ConfigLoaded("", value, where, plugins=identities())
        try:
            config = parsed(told, lenient=False)
        except ConfigError as error:
            raise InputError(str(error)) from error
        return ForkChange(where, lambda fork: replace(fork, config=config, told=told))
    if key in SAID and isinstance(value, str):
        return SAID[key](value)
    expected = f"{', '.join(SAID)} or config with a text, or submit with a list of objects"
    raise InputError(f"{where}: expected {expected}, found {key[:40]!r}")


def _submit(where: str, objects: Any) -> ForkChange:
    """Read as a file would be, with all that is checked there."""
    loaded = Loaded()
    load_text(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}).decode(), where, loaded)
    if loaded.problems:
        raise loaded.problems[0]
    if not loaded.objects:
        raise InputError(f"{where}: there are no objects in it")
    return changes.submit(loaded.objects, where)


def estimates(db: Path, asked: frozenset[str] | None, query: Mapping[str, str]) -> Plain:
    """When jobs start, of those that wait. Raises InputError, ConfigError."""
    samples = _whole(query.get("samples", "20"), "samples", 1, MOST_SAMPLES)
    sampling = FutureSampling(
        samples, horizon_of(query.get("horizon", "24h")), _whole(query.get("seed", "0"), "seed", 0)
    )
    fork = anyio.run(journaled, db, _whole(query["cycle"], "cycle", 1) if "cycle" in query else None)
    book = anyio.run(runs_in, db, fork.now)
    found = estimates_of(fork, book.ended, sampling, asked)
    return {"cycle": fork.cycle, "now": fork.now, "estimates": {job: each.to_dict() for job, each in found.items()}}


def horizon_of(text: str) -> float:
    """Of a Go duration, thirty days at most."""
    try:
        found = parse_duration(text)
    except ValueError:
        found = -1.0
    if not 0 < found <= MOST_HORIZON_S:
        raise InputError(f"horizon={text[:40]}: expected a Go duration such as 24h, 720h at most")
    return found


def _whole(text: str, what: str, least: int, most: int = 2**62) -> int:
    found = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not least <= found <= most:
        raise InputError(f"{what}={text[:40]}: expected a whole number from {least} to {most}")
    return found

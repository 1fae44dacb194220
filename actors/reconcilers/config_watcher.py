# SPDX-License-Identifier: Apache-2.0
"""The config watcher: hands the scheduler the configuration that stands in a ConfigMap of the cluster.

Owns: which text it has handed over last.
Accepts: `Poke`.
Sends: asks the api; tells the session runner the text.
When full and how it stops: see `pumice.actors.runtime.reconciler`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pumice.actors.runtime.reconciler import Reconciler
from pumice.cluster.kube.events import Sayings
from pumice.cluster.machine import Machine
from pumice.config.errors import ConfigError
from pumice.config.settings import CHARTS
from pumice.config.unwrap import USUAL_KEY, conf_keys
from pumice.core.messages.commands import ApiRequest, OfferConfig
from pumice.core.messages.replies import Accepted, ApiReply
from pumice.core.objects.metadata import Object, section
from pumice.storage.codec import unpack

if TYPE_CHECKING:
    from pumice.actors.runtime.actor import Context
    from pumice.actors.scheduling.config_source import ConfigSource
    from pumice.actors.system.ports import ApiPort, PokePort, RunnerPort
    from pumice.config.settings import ConfigMapName

# --- The ConfigMap, followed by a pure machine

Offer = Callable[[str, str], str]
"""Hands over a configuration's text and where it came from; what is wrong with it ("" when nothing is)."""

USER: Final = "config-watcher"
LOADED: Final = "ConfigurationLoaded"
KEPT: Final = "InvalidConfiguration"

_WORKS: Final = "the scheduler works by this configuration"
_KEEPS: Final = "the scheduler keeps the configuration it had"
_NO_TEXT: Final = f"data has no text under {USUAL_KEY}, and none under just one other key that ends in .conf"

log = logging.getLogger(__name__)


def text_of(config_map: Object) -> str | None:
    """Return the configuration in the ConfigMap; None without one, or with several."""
    data = section(config_map, "data")
    keys = conf_keys(data)
    text = data[keys[0]] if len(keys) == 1 else None
    return text if isinstance(text, str) else None


def take_over(source: ConfigSource, followed: ConfigMapName, get: Callable[[str, str, str], ApiReply]) -> None:
    """Take over, at a start, the configuration that the cluster already holds, if it is valid."""
    reply = get("ConfigMap", followed.namespace, followed.name)
    if not isinstance(reply, Accepted):  # a ConfigMap that may come is followed then; no user named the charts' one
        level = logging.INFO if followed == CHARTS else logging.WARNING
        log.log(level, "%s does not exist yet: the configuration of the start is in force until then", followed.said)
        return
    text = text_of(unpack(reply.blob))
    if text is None:
        log.error("the configuration in the cluster was not taken: %s: %s", followed.said, _NO_TEXT)
        return
    try:
        source.offer(text, followed.said)
        source.look()
    except ConfigError as error:
        log.error("the configuration in the cluster was not taken: %s", error)


class ConfigMachine(Machine):
    """Follows the ConfigMap of the configuration. A deleted ConfigMap leaves the configuration as it is."""

    kinds = ("ConfigMap",)

    def __init__(self, followed: ConfigMapName, offer: Offer) -> None:
        self._followed = followed
        self._offer = offer
        self._sayings = Sayings(USER)
        self._said = ""
        self._waiting: Object | None = None

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        meta = obj["metadata"]
        if (meta.get("namespace"), meta.get("name")) != (self._followed.namespace, self._followed.name):
            return
        if deleted:
            # Forgotten: the same text in a new ConfigMap is offered and reported again.
            self._waiting, self._said = None, ""
            log.error("%s was removed: %s", self._followed.said, _KEEPS)
        else:
            self._waiting = obj

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        found, self._waiting = self._waiting, None
        if found is None:
            return ()
        text = text_of(found)
        said = hashlib.sha256(f"{text}".encode()).hexdigest()
        # A change of labels or annotations does not change the configuration, so it must not reload it.
        if said == self._said:
            return ()
        self._said = said
        problem = _NO_TEXT if text is None else self._offer(text, self._followed.said)
        if text is None:
            log.error("%s: %s: %s", self._followed.said, _KEEPS, problem)
        reason, message = (KEPT, f"{_KEEPS}: {problem}") if problem else (LOADED, _WORKS)
        # An Event about the ConfigMap: its author sees it with `kubectl describe`, without the scheduler's log.
        return [self._sayings.say(found, reason, message, now, source="volcano", warning=bool(problem))]


# --- The actor


class ConfigWatcher(Reconciler):
    """Watches the configuration. `check` returns the problem of a text from somewhere, "" without one. The runner gets
    a bad text all the same: it reports it in the journal.
    """

    def __init__(
        self,
        name: str,
        mailbox: PokePort,
        context: Context,
        *,
        api: ApiPort,
        runner: RunnerPort,
        followed: ConfigMapName,
        check: Offer,
    ) -> None:
        self._runner = runner
        self._check = check
        self._offers: list[OfferConfig] = []
        super().__init__(name, mailbox, context, api=api, machines=(ConfigMachine(followed, self._offer),))

    def _offer(self, text: str, source: str) -> str:
        self._offers.append(OfferConfig(text, source))
        return self._check(text, source)

    async def _ask(self, requests: Sequence[ApiRequest]) -> None:
        """Inform the runner first, so that the status of the ConfigMap is already true."""
        offers, self._offers = self._offers, []
        await self._runner.tell(*offers)
        await super()._ask(requests)

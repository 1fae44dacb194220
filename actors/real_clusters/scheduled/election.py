# SPDX-License-Identifier: Apache-2.0
"""Leader election among several schedulers: the holder of the Lease works (source: client-go's `tools/leaderelection`).

A Lease of another holder is taken once it was not renewed for its duration, by the clock of the observer: clocks of
different machines are never compared. A holder that could not renew it for the renew deadline stops, before that.
"""

from __future__ import annotations

import random
from typing import Final

import anyio

from pumice.actors.errors import CredentialsError, RemoteError
from pumice.actors.real_clusters.scheduled.client import ClusterClient
from pumice.actors.real_clusters.scheduled.settings import ElectionSettings
from pumice.actors.runtime.clock import Clock
from pumice.cluster.kube.statuses import micro_timestamp
from pumice.core.objects.metadata import Object, section

# client-go's JitterFactor.
JITTER: Final = 1.2
NOT_FOUND: Final = 404
RELEASE_S: Final = 1.0
"""Timeout of a release of the Lease, and of a renewal under way before it."""


class LeaseElection:
    """Elects one process, by its `identity`: the holder of the Lease works, all others wait until it is not renewed."""

    def __init__(self, client: ClusterClient, settings: ElectionSettings, clock: Clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{settings.namespace}/leases"
        self._seen: Object = {}
        self._seen_at = 0.0
        self._renewed_at: float | None = None
        self._turn = anyio.Lock()  # to renew it, or to give it back
        self.problem = ""

    @property
    def holder(self) -> str:
        """Return the last known holder."""
        return str(section(self._seen, "spec").get("holderIdentity") or "")

    @property
    def said(self) -> str:
        """Return the Lease as messages name it."""
        return f"{self._settings.namespace}/{self._settings.name}"

    @property
    def leads(self) -> bool:
        """Return whether no other scheduler can hold the Lease now, as far as is known here."""
        return self._renewed_at is not None and self._left_s() > 0

    async def acquire(self) -> None:
        """Return when it is ours."""
        while not await self._attempt():  # noqa: ASYNC110
            await anyio.sleep(self._settings.retry_period_s * (1.0 + JITTER * random.random()))

    async def hold(self) -> None:
        """Hold the Lease, and return when it is lost."""
        while True:
            await anyio.sleep(min(self._settings.retry_period_s, max(self._left_s(), 0.0)))
            # A renewal that hangs must not outlast the deadline: another scheduler may hold the Lease after it.
            with anyio.move_on_after(max(self._left_s(), 0.0)):
                async with self._turn:
                    await self._attempt()
            if not self.leads:
                return

    async def release(self) -> None:
        """Release the Lease: after a running renewal, and without further ones."""
        with anyio.move_on_after(RELEASE_S) as waiting:
            await self._turn.acquire()
        if waiting.cancelled_caught:
            raise RemoteError("its renewal is under way and does not end")
        if self.leads:
            # From here on nothing is written, even if the server does not hear of the release.
            self._renewed_at = None
            # As client-go's `release`: no holder, and a duration of one second.
            spec = {**section(self._seen, "spec"), "holderIdentity": "", "leaseDurationSeconds": 1}
            await self._client.replace(
                f"{self._leases}/{self._settings.name}", {**self._seen, "spec": spec}, anyio.current_time() + RELEASE_S
            )

    def _left_s(self) -> float:
        began = self._renewed_at
        return 0.0 if began is None else began + self._settings.renew_deadline_s - anyio.current_time()

    async def _attempt(self) -> bool:
        """Take or renew the Lease, if allowed. Return whether this process holds it."""
        began = anyio.current_time()
        try:
            won = await self._take_or_renew(began)
        except (RemoteError, CredentialsError) as error:
            # `_renewed_at` stays: it is unknown whether this renewal was written, so the last certain one counts.
            self.problem = str(error)
            return False
        self.problem = ""
        # The time before the request: an answer that took long would make the renewal look too young.
        self._renewed_at = began if won else None
        return won

    async def _take_or_renew(self, began: float) -> bool:
        until = began + self._settings.renew_deadline_s
        try:
            self._observe(await self._client.get(f"{self._leases}/{self._settings.name}"))
        except RemoteError as error:
            if error.code != NOT_FOUND:
                raise
            self._observe(await self._client.create(self._leases, self._lease({}), until))
            return self.holder == self._settings.identity
        if self.holder not in ("", self._settings.identity) and not self._is_over():
            return False
        lease = {**self._seen, **self._lease(self._seen)}
        self._observe(await self._client.replace(f"{self._leases}/{self._settings.name}", lease, until))
        return True

    def _observe(self, lease: Object) -> None:
        if section(lease, "spec") != section(self._seen, "spec") or not self._seen:
            self._seen_at = anyio.current_time()
        self._seen = lease

    def _is_over(self) -> bool:
        told = section(self._seen, "spec").get("leaseDurationSeconds") or self._settings.lease_duration_s
        return anyio.current_time() >= self._seen_at + float(told)

    def _lease(self, before: Object) -> Object:
        """Return the Lease with the resourceVersion that was read: of two takers, one is refused."""
        now, spec = micro_timestamp(self._clock.now()), section(before, "spec")
        # Transitions count changes of the holder; the first holder is none (client-go's `tryAcquireOrRenew`).
        ours = spec.get("holderIdentity") == self._settings.identity
        transitions = int(spec.get("leaseTransitions") or 0) + (0 if ours or not before else 1)
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": section(before, "metadata")
            or {"namespace": self._settings.namespace, "name": self._settings.name},
            "spec": {
                "holderIdentity": self._settings.identity,
                "leaseDurationSeconds": max(round(self._settings.lease_duration_s), 1),
                "acquireTime": spec.get("acquireTime") if ours else now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }

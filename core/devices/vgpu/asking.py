# SPDX-License-Identifier: Apache-2.0
"""The request of a pod for virtual GPUs. Source: Volcano `devices.ExtractResourceRequest`, `vgpu/utils.go`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.devices.family import containers, limits_of, requests_of, whole
from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from pumice.core.devices.vgpu.settings import VgpuSettings
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate

USE: Final = "nvidia.com/use-gputype"
AVOID: Final = "nvidia.com/nouse-gputype"
MODE: Final = "volcano.sh/vgpu-mode"
POLICY: Final = "volcano.sh/vgpu-podgroup-policy"
APART: Final = "spread"
GROUPS: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
READ: Final = (USE, AVOID, MODE, POLICY, *GROUPS)
"""The annotations that what a pod may have depends on."""
NVIDIA: Final = "NVIDIA"
# Volcano's mark for a share that was not asked for: no share is above 100 per cent.
UNSAID: Final = 101
WHOLE: Final = 100


class CardRequest(NamedTuple):
    """The request of one container: cards, MiB of each or per cent of its memory (UNSAID: the MiB count), cores in per
    cent.
    """

    cards: int
    memory: int
    percent: int
    cores: int

    def memory_of(self, card: int) -> int:
        """Return the MiB that the request takes of a card with so many."""
        return self.memory if self.percent == UNSAID else int(float(card) * float(self.percent) / 100.0)


def asks_any(template: PodTemplate, settings: VgpuSettings) -> bool:
    # A share of the card makes the MiB of the request meaningless, even where both are named.
    """Return whether a container has a limit of cards or of their memory."""
    wanted = {settings.memory, settings.number}
    return any(not wanted.isdisjoint(limits_of(each)) for each in containers(template))


def asked_of(template: PodTemplate, settings: VgpuSettings) -> tuple[CardRequest, ...]:
    """Return the containers' requests, without empty ones."""
    found: list[CardRequest] = []
    for each in containers(template):
        limits, requests = limits_of(each), requests_of(each)
        if settings.number in limits:
            cards = whole(limits, settings.number) or 0
        elif settings.memory in limits:
            # A container that asks for memory alone gets it on one card.
            cards = 1
        else:
            continue
        memory = _either(limits, requests, settings.memory) or 0
        percent = _either(limits, requests, settings.percentage)
        percent = UNSAID if percent is None else percent
        # Neither MiB nor a share: the container gets the whole memory of each card.
        if percent == UNSAID and memory == 0:
            percent = WHOLE
        found.append(CardRequest(cards, memory, percent, _either(limits, requests, settings.cores) or 0))
    return tuple(found)


def _either(limits: Object, requests: Object, name: str) -> int | None:
    if not name:
        return None
    for quantities in (limits, requests):
        if name in quantities:
            return whole(quantities, name)
    return None


def likes(annotations: Mapping[str, str], card_type: str) -> bool:
    """Return whether the pod may use cards of a type."""
    # Volcano asks whether the type contains "NVIDIA" (checkType), so a card of another maker serves no pod.
    if NVIDIA not in card_type:
        return False
    # The list of types to use comes first: where a pod has it, its list of types to avoid is not read (checkGPUtype).
    for name, answer in ((USE, True), (AVOID, False)):
        if name in annotations:
            found = any(part.upper() in card_type.upper() for part in annotations[name].split(","))
            return found is answer
    return True


def group_of(namespace: str, annotations: Mapping[str, str]) -> str:
    """Return the pod's group as cards record it, "" for none."""
    # An empty name counts as none, so the second annotation is asked (getPodGroupKey).
    name = annotations.get(GROUPS[0]) or annotations.get(GROUPS[1])
    return f"{namespace}/{name}" if name else ""


def kept_apart(namespace: str, annotations: Mapping[str, str]) -> str:
    """Return the group whose pods may not share a card with each other, "" when they may."""
    return group_of(namespace, annotations) if annotations.get(POLICY) == APART else ""


class AskedByTemplate:
    """Requests by template, for families of devices with requests of this form: each is computed once."""

    _settings: VgpuSettings
    _asked: dict[int, tuple[CardRequest, ...] | None]

    def _asks(self, template: PodTemplate) -> tuple[CardRequest, ...] | None:
        if template.number not in self._asked:
            asks = asks_any(template, self._settings)
            self._asked[template.number] = asked_of(template, self._settings) if asks else None
        return self._asked[template.number]

    def asked_of(self, template: PodTemplate) -> tuple[CardRequest, ...]:
        """Return the requests of a pod's containers, without empty ones."""
        return self._asks(template) or ()

    def concerns(self, task: Task) -> bool:
        """Return whether the pod asks for such devices (HasDeviceRequest)."""
        return self._asks(task.template) is not None

    def cards_asked(self, task: Task) -> int:
        """Return the largest number of cards that one node must have: those of one container, since others may share
        its cards.
        """
        return max((each.cards for each in self.asked_of(task.template)), default=1)

"""Which chips the containers of a pod get on one node. Source: Volcano `ascend/hami/device_info.go` (selectDevices).

Among equals Volcano takes any; here it is the one that was registered first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.devices.vgpu.codec import Assigned
from pumice.core.devices.words import short_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.devices.ascend.chips import Chip
    from pumice.core.devices.ascend.settings import ChipModel
    from pumice.core.devices.vgpu.asking import CardRequest

BINPACK, SPREAD = "binpack", "spread"
FULL: Final = 100
WIRED_MODELS: Final = "Ascend910"
NETWORK_WEIGHT: Final = 10.0
PARTIAL: Final = "vNPU does not support partial memory allocation when requesting multiple devices"
NONE: Final = "no ascend device available"
SCARCE: Final = "no enough ascend device available"


class ChipUsage(NamedTuple):
    """What is in use of a chip: sharers, MiB, cores."""

    sharers: int
    memory: int
    cores: int


def liking(policy: str, chip: Chip, usage: ChipUsage, *, likes_unused: bool) -> float:
    """Return how well the policy likes a chip (CalScore). Spread likes chips with one sharer in v1.15.1, and chips
    without any where `likes_unused` (a fix).
    """
    if policy == BINPACK:
        return FULL * (usage.memory / chip.memory) if chip.memory else 0.0
    if policy != SPREAD or (likes_unused and not chip.memory):
        return 0.0
    return float(FULL) if usage.sharers == (0 if likes_unused else 1) else 0.0


def takes(chip: Chip, usage: ChipUsage, memory: int) -> bool:
    """Whether a chip has room (fit): cores cannot be asked for, but none are left where all are in use."""
    roomy = chip.sharers > usage.sharers and chip.memory - usage.memory >= memory and chip.cores >= usage.cores
    return roomy and (chip.cores == 0 or usage.cores != chip.cores)


def chip_against(chip: Chip, usage: ChipUsage, memory: int) -> list[str]:
    """What speaks against a chip, for people."""
    found = [f"{usage.sharers} share it, as many as may"] if chip.sharers <= usage.sharers else []
    found += short_of("MiB", chip.memory - usage.memory, chip.memory, memory)
    return found if found or takes(chip, usage, memory) else ["none of its cores are left"]


def memory_asked(asked: CardRequest, model: ChipModel, whole: int) -> int:
    """MiB that a container takes of each chip; `whole`: the MiB of the chip that is looked at first."""
    memory = asked.memory or (whole * asked.percent // FULL if asked.percent else 0)
    return model.trimmed(memory).memory if memory > 0 else memory


def allowed(asked: CardRequest, model: ChipModel, memory: int) -> bool:
    """Whether so much may be had of as many chips: several are had whole only (verifyReq)."""
    return asked.cards <= 1 or model.trimmed(memory).memory == model.allocatable


def choose(
    wanted: Sequence[CardRequest],
    model: ChipModel,
    chips: Sequence[Chip],
    usage: Sequence[ChipUsage],
    policy: str,
    *,
    likes_unused: bool = False,
) -> list[list[tuple[int, Assigned]]] | str:
    """(chip, what is had of it) by container; a text: why it does not fit. A chip serves one container of a pod."""
    if not chips:
        return NONE
    liked = [liking(policy, chip, used, likes_unused=likes_unused) for chip, used in zip(chips, usage, strict=True)]
    order = sorted(range(len(chips)), key=lambda chip: -liked[chip])
    together = model.word.startswith(WIRED_MODELS) and all(chip.wired for chip in chips)
    taken: set[int] = set()
    given: list[list[tuple[int, Assigned]]] = []
    for asked in wanted:
        memory = memory_asked(asked, model, chips[order[0]].memory)
        if not allowed(asked, model, memory):
            return PARTIAL
        fitting = [each for each in order if each not in taken and takes(chips[each], usage[each], memory)]
        if len(fitting) < asked.cards:
            return SCARCE
        found = _wired(asked.cards, chips, fitting) if together else fitting[: max(asked.cards, 1)]
        taken.update(found)
        given.append([(chip, Assigned(chips[chip].uuid, model.word, memory, 0)) for chip in found])
    return given


def _wired(count: int, chips: Sequence[Chip], fitting: Sequence[int]) -> list[int]:
    """So many chips, from the largest group of chips that are wired together."""
    groups: dict[int, list[int]] = {}
    for each in fitting:
        network = chips[each].network
        if network is not None:
            groups.setdefault(network, []).append(each)
    ordered = [chip for group in sorted(groups.values(), key=len, reverse=True) for chip in group]
    return ordered[:count] if count > 0 else ordered


def score(
    given: Sequence[Sequence[tuple[int, Assigned]]],
    model: ChipModel,
    chips: Sequence[Chip],
    usage: Sequence[ChipUsage],
    policy: str,
    *,
    likes_unused: bool = False,
) -> float:
    """How well a node would be used (ScoreNode): by the first chip of each container, as it is before."""
    firsts = [devices[0][0] for devices in given if devices]
    liked = (liking(policy, chips[chip], usage[chip], likes_unused=likes_unused) for chip in firsts)
    total = sum(liked, 0.0)
    if not (model.word.startswith(WIRED_MODELS) and all(chips[chip].wired for chip in firsts)):
        return total
    networks = [chips[chip].network for chip in firsts if chips[chip].network is not None]
    if not networks:
        return 0.0
    return total + max(map(networks.count, networks)) / len(networks) * NETWORK_WEIGHT

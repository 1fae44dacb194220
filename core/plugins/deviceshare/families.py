"""The kinds of devices that the arguments switch on, over the nodes of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.devices import ascend, gpushare, vgpu
from pumice.core.devices.settings import device_config
from pumice.core.plugins.deviceshare.npus import mindcluster
from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.devices.ascend import ChipModel, Chips
    from pumice.core.devices.family import Family
    from pumice.core.devices.gpushare.cards import Cards
    from pumice.core.devices.vgpu import Rules, VgpuCards, VgpuSettings
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs


SLICES_ONCE: Final = "mig-slices-once"
OVERFULL_IS_FULL: Final = "overfull-cards-are-full"
LIKES_UNUSED: Final = "hami-spread-likes-unused"
KEEPS_LOCK: Final = "hami-lock-key"


class Switches(NamedTuple):
    """Which kinds of devices count, how cards are chosen, and where the ConfigMap of devices is."""

    gpu_memory: bool
    gpu_number: bool
    vgpu: bool
    mindcluster: bool
    hami: bool
    policy: str
    config_map: str
    rules: Rules


@derived(NODES)
def shared_cards(nodes: NodeSpecs) -> Cards:
    """The cards that are shared by memory or number."""
    return gpushare.cards_of(nodes.specs)


@derived(NODES)
def virtual_cards(nodes: NodeSpecs, settings: VgpuSettings) -> VgpuCards:
    """The cards of virtual GPUs."""
    return vgpu.cards_of(nodes.specs, settings)


@derived(NODES)
def chips(nodes: NodeSpecs, model: ChipModel) -> Chips:
    """The chips of a model of NPUs."""
    return ascend.chips_of(nodes.specs, model)


def families_of(session: Session, switches: Switches) -> list[Family]:
    """In the order in which Volcano registers them."""
    found: list[Family] = []
    names, fixes = session.nodes.names, session.config.pumice.fix
    config = device_config(session.objects.get("ConfigMap", {}).get(switches.config_map))
    if switches.gpu_memory or switches.gpu_number:
        cards = shared_cards(session.nodes)
        found.append(
            gpushare.GpuShare(
                names,
                cards,
                by_memory=switches.gpu_memory,
                by_number=switches.gpu_number,
                overfull_is_full=OVERFULL_IS_FULL in fixes,
            )
        )
    if switches.vgpu:
        settings = vgpu.settings_of(None if config is None else config.get("nvidia") or {})
        found.append(
            vgpu.Vgpu(
                names,
                virtual_cards(session.nodes, settings),
                settings,
                switches.policy,
                switches.rules,
                once=SLICES_ONCE in fixes,
            )
        )
    if switches.mindcluster:
        found.append(mindcluster(session))
    return [*found, *_hami(session, switches, ascend.chip_models(config) if switches.hami else ())]


def _hami(session: Session, switches: Switches, models: Sequence[ChipModel]) -> list[Family]:
    names, fixes = session.nodes.names, session.config.pumice.fix
    return [
        ascend.HamiNpu(
            names,
            chips(session.nodes, model),
            model,
            models,
            switches.policy,
            likes_unused=LIKES_UNUSED in fixes,
            keeps_lock=KEEPS_LOCK in fixes,
        )
        for model in models
    ]

"""The kinds of devices that the arguments switch on, over the nodes of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from core.devices import gpushare, vgpu
from core.devices.settings import device_config
from core.state.derived import derived
from core.state.sources import NODES

if TYPE_CHECKING:
    from core.devices.family import Family
    from core.devices.gpushare.cards import Cards
    from core.devices.vgpu import Rules, VgpuCards, VgpuSettings
    from core.session.session import Session
    from core.state.sources import NodeSpecs


class Switches(NamedTuple):
    """Which kinds of devices count, how cards are chosen, and where the ConfigMap of devices is."""

    gpu_memory: bool
    gpu_number: bool
    vgpu: bool
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


def families_of(session: Session, switches: Switches) -> list[Family]:
    """In the order in which Volcano registers them."""
    found: list[Family] = []
    names = session.nodes.names
    if switches.gpu_memory or switches.gpu_number:
        cards = shared_cards(session.nodes)
        found.append(gpushare.GpuShare(names, cards, by_memory=switches.gpu_memory, by_number=switches.gpu_number))
    if switches.vgpu:
        settings = vgpu.settings_of(_nvidia(session, switches))
        found.append(
            vgpu.Vgpu(names, virtual_cards(session.nodes, settings), settings, switches.policy, switches.rules)
        )
    return found


def _nvidia(session: Session, switches: Switches) -> dict[str, Any] | None:
    config = device_config(session.objects.get("ConfigMap", {}).get(switches.config_map))
    return None if config is None else config.get("nvidia") or {}

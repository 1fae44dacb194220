"""Cards of virtual GPUs as Prometheus families, made when somebody asks. Source: Volcano `vgpu/metrics.go`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pumice.core.messages.card_table import CardTable

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_CARDS: Final = {
    "shared_number": "The number of vgpu tasks sharing this card",
    "allocated_memory": "The number of vgpu memory allocated in this card",
    "allocated_cores": "The percentage of gpu compute cores allocated in this card",
    "memory_limit": "The number of total device memory in this card",
}
"""In the order of the table's numbers."""
OF_PODS: Final = {
    "memory_allocation": "The vgpu device memory allocated for a certain pod",
    "core_allocation": "The vgpu device core allocated for a certain pod",
}
CARD: Final = ("devID", "NodeName")


class CardFamilies(Collector):
    """Shows the newest table: cards and pods that are gone are shown no more."""

    def __init__(self) -> None:
        self._newest = CardTable()

    def show(self, table: CardTable) -> None:
        """From now on this."""
        self._newest = table

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Four families of cards, two of pods."""
        table = self._newest
        for (name, text), line in zip(OF_CARDS.items(), table.columns(), strict=True):
            family = GaugeMetricFamily(f"volcano_vgpu_device_{name}", text, labels=CARD)
            for card, node, value in zip(table.cards, table.nodes, line.tolist(), strict=True):
                family.add_metric((card, node), value)
            yield family
        for (name, text), field in zip(OF_PODS.items(), ("memory", "cores"), strict=True):
            labels = (*CARD, "podName")
            family = GaugeMetricFamily(f"volcano_vgpu_device_{name}_for_a_certain_pod", text, labels=labels)
            for each in table.pods:
                family.add_metric((table.cards[each.card], table.nodes[each.card], each.pod), getattr(each, field))
            yield family

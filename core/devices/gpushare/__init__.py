"""GPU sharing by memory (`volcano.sh/gpu-memory`) and by number (`volcano.sh/gpu-number`).

Source: Volcano `api/devices/nvidia/gpushare`.
"""

from pumice.core.devices.gpushare.cards import GpuShare, cards_of

__all__ = ["GpuShare", "cards_of"]

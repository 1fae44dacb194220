# SPDX-License-Identifier: Apache-2.0
"""Virtual GPUs (`volcano.sh/vgpu-*`): cards that pods share by memory and cores, through HAMi-core or as MIG slices.

Source: Volcano `api/devices/nvidia/vgpu`, `api/devices/config`.
"""

from pumice.core.devices.vgpu.cards import VgpuCards, cards_of
from pumice.core.devices.vgpu.exclusive import Rules, read_rules
from pumice.core.devices.vgpu.settings import VgpuSettings, settings_of
from pumice.core.devices.vgpu.sharing import Vgpu

__all__ = ["Rules", "Vgpu", "VgpuCards", "VgpuSettings", "cards_of", "read_rules", "settings_of"]

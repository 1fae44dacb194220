# SPDX-License-Identifier: Apache-2.0
"""Virtual NPUs (Huawei Ascend): chips that pods share, as HAMi or MindCluster cut them.

Source: Volcano `api/devices/ascend`, `api/devices/config`.
"""

from pumice.core.devices.ascend.chips import Chips, chips_of
from pumice.core.devices.ascend.hami import HamiNpu
from pumice.core.devices.ascend.mindcluster import MindClusterNpu, shares
from pumice.core.devices.ascend.npu_node import CORE, NpuFrame, NpuNode, Resident, npu_node
from pumice.core.devices.ascend.reports import Reports
from pumice.core.devices.ascend.settings import ChipModel, chip_models

__all__ = [
    "CORE",
    "ChipModel",
    "Chips",
    "HamiNpu",
    "MindClusterNpu",
    "NpuFrame",
    "NpuNode",
    "Reports",
    "Resident",
    "chip_models",
    "chips_of",
    "npu_node",
    "shares",
]

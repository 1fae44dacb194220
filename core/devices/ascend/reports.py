# SPDX-License-Identifier: Apache-2.0
"""MindCluster's reports about nodes in ConfigMaps: their chips and the state of the chips.

Source: Volcano `third_party/mindcluster/common/k8s`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from pumice.core.objects.metadata import Object, is_mapping, labels_of, section, text_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DEVICES_OF: Final = "mindx-dl-deviceinfo-"
STATE_OF: Final = "mindx-dl-nodeinfo-"
SUPER_POD: Final = "SuperPodID"
_CLUSTER_DEVICES: Final = "cluster-info-device-"
_CLUSTER_STATES: Final = "cluster-info-node-cm"
_FOR_CLUSTER: Final = "mx-consumer-volcano"
_FOR_NODES: Final = "mx-consumer-cim"
_SPACE: Final = "mindx-dl"
_PARTS: Final = ("DeviceInfo", "NodeInfo")
CHIPS: Final = re.compile(r"(Ascend\w+(-\w+)*,?)*")
"""Names of chips, one after the other."""


class Reported(NamedTuple):
    """The report about a node: names of chips by resource, as one text each, its time (seconds since the epoch), its
    state, and the number of its super pod.
    """

    devices: dict[str, str]
    time: int
    status: str
    super_pod: int = 0


class Reports:
    """Reports by node. `cluster`: the reports that ClusterD gathers count, instead of those of each node's own
    daemon.
    """

    def __init__(self, config_maps: Mapping[str, Object], *, cluster: bool) -> None:
        self._devices: dict[str, tuple[dict[str, str], int, int]] = {}
        self._states: dict[str, str] = {}
        # Volcano starts one of two informers, so reports of the other kind are never read (InitCmInformer).
        look: Callable[[str, str, Object], None] = self._of_cluster if cluster else self._of_node
        label = _FOR_CLUSTER if cluster else _FOR_NODES
        for key, config_map in config_maps.items():
            if labels_of(config_map).get(label) == "true":
                space, _, name = key.partition("/")
                look(space, name, config_map)

    def of(self, node: str) -> Reported:
        """Return the report about a node; an empty one without a report."""
        devices, time, super_pod = self._devices.get(node, ({}, 0, 0))
        return Reported(devices, time, self._states.get(node, ""), super_pod)

    def _of_cluster(self, space: str, name: str, config_map: Object) -> None:
        if space != _SPACE:
            return
        # ClusterD splits its report; Volcano compares only the start of the name (dealClusterDeviceInfo).
        if name.startswith(_CLUSTER_DEVICES):
            for key, said in _sections(_read(config_map, name)):
                self._devices[key.removeprefix(DEVICES_OF)] = _devices(said)
        elif name == _CLUSTER_STATES:
            for key, said in _sections(_read(config_map, name)):
                self._states[key.removeprefix(STATE_OF)] = str(said.get("NodeStatus") or "")

    def _of_node(self, space: str, name: str, config_map: Object) -> None:
        if space == "kube-system" and name.startswith(DEVICES_OF):
            said = _read(config_map, "DeviceInfoCfg")
            if said is not None:
                # The super pod stands beside `DeviceInfo` here, and inside ClusterD's entries (`common/k8s/type.go`).
                listed = {**section(said, "DeviceInfo"), SUPER_POD: said.get(SUPER_POD)}
                self._devices[name.removeprefix(DEVICES_OF)] = _devices(listed)
        elif space == _SPACE and name.startswith(STATE_OF):
            said = _read(config_map, "NodeInfo")
            if said is not None:
                self._states[name.removeprefix(STATE_OF)] = str(section(said, "NodeInfo").get("NodeStatus") or "")


def renamed(config_map: Object, name: Callable[[str], str]) -> Object | None:
    """Return a report with other names of nodes, without what no rule reads; None for a ConfigMap that is not a
    report.
    """
    meta = section(config_map, "metadata")
    own, data = str(meta["name"]), section(config_map, "data")
    for prefix, key in ((DEVICES_OF, "DeviceInfoCfg"), (STATE_OF, "NodeInfo")):
        if own.startswith(prefix):
            said = _read(config_map, key) or {}
            inside: Object = {part: _kept(each) for part, each in _sections(said) if part in _PARTS}
            inside |= {SUPER_POD: said[SUPER_POD]} if SUPER_POD in said else {}
            shown = {**meta, "name": prefix + name(own.removeprefix(prefix))}
            return {**config_map, "metadata": shown, "data": {key: _text(inside)} if key in data else {}}
    if own.startswith(_CLUSTER_DEVICES) or own == _CLUSTER_STATES:
        prefix = STATE_OF if own == _CLUSTER_STATES else DEVICES_OF
        listed = _sections(_read(config_map, own))
        inside = {prefix + name(node.removeprefix(prefix)): _kept(each) for node, each in listed}
        return {**config_map, "data": {own: _text(inside)} if own in data else {}}
    return None


def _kept(said: Object) -> Object:
    """Return the parts of a node's report that are read: of its devices the lists of chips."""
    chips = {key: text for key, text in text_map(said.get("DeviceList")).items() if CHIPS.fullmatch(text)}
    kept: Object = {key: said[key] for key in ("UpdateTime", SUPER_POD, "NodeStatus") if key in said}
    return {**kept, "DeviceList": chips} if "DeviceList" in said else kept


def kept_chips(text: Any) -> str:
    """Return the names of a node's chips, without the addresses beside them; "" for a text that is not such a list."""
    try:
        said: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, TypeError):
        return ""
    return _text({name: {} for name in said if CHIPS.fullmatch(name)}) if is_mapping(said) else ""


def _text(said: Object) -> str:
    return msgspec.json.encode(said).decode()


def _read(config_map: Object, key: str) -> Object | None:
    text = section(config_map, "data").get(key)
    try:
        said: Any = msgspec.json.decode(text) if isinstance(text, str) else None
    except msgspec.DecodeError:
        return None
    return said if is_mapping(said) else None


def _sections(said: Object | None) -> Iterator[tuple[str, Object]]:
    for key, value in (said or {}).items():
        if is_mapping(value):
            yield key, value


def _devices(said: Object) -> tuple[dict[str, str], int, int]:
    time, super_pod = (each if isinstance(each, int) else 0 for each in map(said.get, ("UpdateTime", SUPER_POD)))
    return text_map(said.get("DeviceList")), time, super_pod

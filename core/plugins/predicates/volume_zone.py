# SPDX-License-Identifier: Apache-2.0
"""VolumeZone: bound volumes with labels of a zone or region. Source: kube-scheduler `volumezone`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.kube.node_selector import ABSENT, label_column
from pumice.core.kube.storage import (
    Storage,
    UnreadableVolumesError,
    claim_names,
    class_name,
    has_ephemeral,
    uses_claims,
    volume_name,
)
from pumice.core.objects.metadata import labels_of
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.rules import Check, ColumnRule
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

NAME = "VolumeZone"
ELSEWHERE = Reason(NAME, Code.UNRESOLVABLE, "node(s) had no available volume zone")
# Old name -> the name that replaced it.
RENAMED = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
KEYS = (*RENAMED, *RENAMED.values())
EPHEMERAL: Final = "zones-of-ephemeral-volumes"
"""A former rule, under which old journals are replayed (`pumice.config.rules`)."""


def bound_volumes(storage: Storage, task: Task, *, ephemeral: bool = False) -> list[Object]:
    """Return the volumes that a pod's claims name. `ephemeral`: those of ephemeral volumes too.

    Raises StorageError for a claim that has none and does not wait for a consumer.
    """
    found: list[Object] = []
    for claim_name in claim_names(task):
        # kube-scheduler leaves the claims of ephemeral volumes to VolumeBinding (getPersistentVolumeClaimNameFromPod).
        if claim_name.ephemeral and not ephemeral:
            continue
        if not claim_name.name:
            raise UnreadableVolumesError("PersistentVolumeClaim had no name")
        claim = storage.claim(task.namespace, claim_name.name)
        if volume_name(claim):
            found.append(storage.volume(volume_name(claim)))
            continue
        if not class_name(claim):
            raise UnreadableVolumesError("PersistentVolumeClaim had no pv name and storageClass name")
        storage.storage_class(class_name(claim))
        if not storage.waits_for_consumer(claim):
            raise UnreadableVolumesError("PersistentVolume had no name")
    return found


def zones(volume: Object) -> list[tuple[str, frozenset[str]]]:
    """Return (label, values) of a volume's zone and region labels.

    Several values are joined by "__", an empty one voids the label.
    """
    labels = labels_of(volume)
    parts = ((key, [part.strip() for part in labels[key].split("__")]) for key in KEYS if key in labels)
    return [(key, frozenset(values)) for key, values in parts if all(values)]


def _rows_with_value(nodes: NodeRows, key: str, values: frozenset[str]) -> tuple[BoolArray, BoolArray]:
    """Return masks [N]: nodes that have the label, nodes that have it with one of the values."""
    column = label_column(nodes, key)
    accepted = np.zeros(len(column.values) + 1, dtype=np.bool_)
    accepted[:-1] = [value in values for value in column.values]
    return column.codes != ABSENT, accepted[column.codes]


def rows_elsewhere(nodes: NodeRows, wanted: list[tuple[str, frozenset[str]]]) -> BoolArray:
    """Return the mask [N] of the nodes whose zone or region labels differ from the volume's."""
    lies_somewhere = np.zeros(nodes.count, dtype=np.bool_)
    for key in KEYS:
        lies_somewhere |= label_column(nodes, key).codes != ABSENT
    fits = np.ones(nodes.count, dtype=np.bool_)
    for key, values in wanted:
        labelled, same = _rows_with_value(nodes, key, values)
        if key in RENAMED:
            same = np.where(labelled, same, _rows_with_value(nodes, RENAMED[key], values)[1])
        fits &= same
    return lies_somewhere & ~fits


class VolumeZone:
    """The filter."""

    name = NAME
    reads = Reads(labels=True, concerns=uses_claims, anew=has_ephemeral)  # claims are found by namespace and name

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answers; None for a pod without claims, or whose volumes have no zone. Raises FitFailure."""
        if not uses_claims(task.template):
            return None
        ephemeral = EPHEMERAL in session.config.pumice.fix
        try:
            volumes = bound_volumes(Storage(session.objects), task, ephemeral=ephemeral)
            wanted = [zone for volume in volumes for zone in zones(volume)]
        except UnreadableVolumesError as error:
            raise FitFailure(Reason(NAME, Code.ERROR, f"plugin {NAME} pre-predicates failed {error}")) from error
        if not wanted:
            return None
        mask = rows_elsewhere(session.nodes, wanted)
        return ColumnRule(mask * np.int32(session.reasons.intern(ELSEWHERE))) if mask.any() else None

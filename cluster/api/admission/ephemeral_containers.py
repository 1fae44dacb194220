# SPDX-License-Identifier: Apache-2.0
"""Containers that are added to a running pod, as `kubectl debug` does (`ValidatePodEphemeralContainersUpdate`)."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.pod_spec import container_name_problems
from pumice.cluster.api.refusals import Cause, forbidden_field, required
from pumice.core.objects.metadata import Object, containers_of, rows, section

PATH: Final = "spec.ephemeralContainers"
_REFUSED: Final = ("lifecycle", "livenessProbe", "ports", "readinessProbe", "resizePolicy", "resources", "startupProbe")
_DEFAULTS: Final = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}


def write(old: Object, given: Object, _at: str) -> tuple[Object, list[Cause]]:
    """Return the pod with the containers that `given` adds, and the problems of these."""
    before = {str(each.get("name")): each for each in rows(section(old, "spec"), "ephemeralContainers")}
    wanted: list[Object] = [
        {**_DEFAULTS, "resources": {}, **each} for each in rows(section(given, "spec"), "ephemeralContainers")
    ]
    new: Object = {**old, "metadata": dict(old["metadata"]), "spec": {**section(old, "spec")}}
    if wanted:
        new["spec"]["ephemeralContainers"] = wanted
    there = {str(each.get("name")): each for each in wanted}
    found = [
        forbidden_field(PATH, f'existing ephemeral containers "{name}" may not be {_fate(name, there)}')
        for name, each in before.items()
        if there.get(name) != each
    ]
    others = {str(each.get("name")) for each in containers_of(section(old, "spec"))}
    taken = set(others)
    for index, each in enumerate(wanted):
        found += _problems(each, f"{PATH}[{index}]", others, taken)
    return new, found


def _fate(name: str, there: dict[str, Object]) -> str:
    return "changed" if name in there else "removed"


def _problems(each: Object, path: str, others: set[str], taken: set[str]) -> list[Cause]:
    found = container_name_problems(each, path, taken)
    if not each.get("image"):
        found.append(required(f"{path}.image"))
    target = each.get("targetContainerName")
    if target and target not in others:
        found.append(Cause(f"{path}.targetContainerName", "FieldValueNotFound", f'Not found: "{target}"'))
    why = "cannot be set for an Ephemeral Container"
    return found + [forbidden_field(f"{path}.{field}", why) for field in _REFUSED if each.get(field)]

# SPDX-License-Identifier: Apache-2.0
"""Kinds as clients ask for them: aggregated (APIGroupDiscoveryList) and in the plain style.

Core groups come before those of custom resources, because clients take the first of two resources of one name.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from typing import Final

from pumice.actors.gateway import advice
from pumice.actors.gateway.advice import AdviceKind
from pumice.cluster import RELEASE
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.core.objects.metadata import Object

# --- The version of the server


def version() -> Object:
    """Return /version. `compiler` and `platform` are true; clients compare versions with the other fields."""
    major, minor, _ = RELEASE.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": minor,
        "gitVersion": RELEASE,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": sys.implementation.name,
        "platform": f"{sys.platform}/{platform.machine()}",
    }


VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
READ: Final = ["get", "list"]
PARTLY: Final = ["get", "patch", "update"]

Sub = tuple[str, str, str, str, list[str]]
"""Subresource: its name, then group, version and kind of what it speaks, and verbs."""

_SCALE: Final[Sub] = ("scale", "autoscaling", "v1", "Scale", PARTLY)
_OF_PODS: Final[tuple[Sub, ...]] = (
    ("binding", "", "v1", "Binding", ["create"]),
    ("ephemeralcontainers", "", "v1", "Pod", PARTLY),
    ("eviction", "policy", "v1", "Eviction", ["create"]),
    ("log", "", "v1", "Pod", ["get"]),
    ("resize", "", "v1", "Pod", PARTLY),
)
_OF_ACCOUNTS: Final[Sub] = ("token", "authentication.k8s.io", "v1", "TokenRequest", ["create"])
_OF_REQUESTS: Final[Sub] = ("approval", "certificates.k8s.io", "v1", "CertificateSigningRequest", PARTLY)
_OF_NAMESPACES: Final[Sub] = ("finalize", "", "v1", "Namespace", ["update"])
REVIEWS: Final[dict[str, tuple[tuple[str, str, bool], ...]]] = {
    "authentication.k8s.io": (
        ("selfsubjectreviews", "SelfSubjectReview", False),
        ("tokenreviews", "TokenReview", False),
    ),
    "authorization.k8s.io": (
        ("localsubjectaccessreviews", "LocalSubjectAccessReview", True),
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
        ("selfsubjectrulesreviews", "SelfSubjectRulesReview", False),
        ("subjectaccessreviews", "SubjectAccessReview", False),
    ),
}
"""Groups without stored objects: resource and kind of each review, and whether it is about one namespace."""

METRICS: Final = "metrics.k8s.io"
METRICS_VERSION: Final = "v1beta1"
METRICS_KINDS: Final = (("nodes", "NodeMetrics", False), ("pods", "PodMetrics", True))


def groups(kinds: KindTable) -> dict[str, dict[str, list[Kind]]]:
    """Return group -> version -> kinds; the core group is ""."""
    found: dict[str, dict[str, list[Kind]]] = {}
    for row in kinds.rows():
        # Listed apart (METRICS_KINDS): PodMetrics are made for each answer and have no row here.
        if row.group == METRICS:
            continue
        for version in row.served_versions:
            found.setdefault(row.group, {}).setdefault(version, []).append(row)
        for other in row.elsewhere:
            group, _, version = other.partition("/")
            found.setdefault(group, {}).setdefault(version, []).append(row)
    return found


def aggregated(kinds: KindTable, version: str, *, core: bool) -> Object:
    """Return the answer of /api (`core`) or /apis as an APIGroupDiscoveryList."""
    items = [
        _group(
            name, [_version(number, [_resource(name, number, row) for row in rows]) for number, rows in held.items()]
        )
        for name, held in groups(kinds).items()
        if (name == "") is core
    ]
    if not core:
        items += [_group(name, [_version("v1", listed)]) for name, listed in _reviews()]
        metrics = [_metric(*each) for each in METRICS_KINDS]
        items.append(_group(METRICS, [_version(METRICS_VERSION, metrics)]))
        items.append(_group(advice.GROUP, [_version(advice.VERSION, list(map(_advice, advice.KINDS.values())))]))
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _reviews() -> list[tuple[str, list[Object]]]:
    return [(group, [_review(group, *each) for each in listed]) for group, listed in REVIEWS.items()]


def _group(name: str, versions: list[Object]) -> Object:
    metadata: Object = {"creationTimestamp": None, **({"name": name} if name else {})}
    return {"metadata": metadata, "versions": versions}


def _version(version: str, resources: list[Object]) -> Object:
    return {"version": version, "resources": resources, "freshness": "Current"}


def _verbs(row: Kind) -> list[str]:
    """Return the verbs of a kind; namespaces are deleted one by one."""
    return [verb for verb in VERBS if verb != "deletecollection" or row.key != "Namespace"]


def _resource(group: str, version: str, row: Kind) -> Object:
    found: Object = {
        "resource": row.plural,
        "responseKind": _gvk(group, version, row.kind),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": _verbs(row),
    }
    if row.short_names:
        found["shortNames"] = list(row.short_names)
    if row.categories:
        found["categories"] = list(row.categories)
    if subs := subresources(row, version):
        found["subresources"] = [
            {"subresource": name, "responseKind": _gvk(*kind), "verbs": verbs} for name, *kind, verbs in subs
        ]
    return found


def _gvk(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}


def _review(group: str, plural: str, kind: str, namespaced: bool) -> Object:
    return {
        "resource": plural,
        "responseKind": _gvk(group, "v1", kind),
        "scope": "Namespaced" if namespaced else "Cluster",
        "singularResource": kind.lower(),
        "verbs": ["create"],
    }


def _metric(plural: str, kind: str, namespaced: bool) -> Object:
    return {
        "resource": plural,
        "responseKind": _gvk(METRICS, METRICS_VERSION, kind),
        "scope": "Namespaced" if namespaced else "Cluster",
        "singularResource": "",
        "verbs": READ,
    }


def _advice(row: AdviceKind) -> Object:
    return {
        "resource": row.plural,
        "responseKind": _gvk(advice.GROUP, advice.VERSION, row.kind),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.kind.lower(),
        "verbs": [row.verb],
    }


def subresources(row: Kind, version: str) -> list[Sub]:
    """Return the subresources of a kind."""
    found: list[Sub] = []
    if row.status:
        found.append(("status", row.group, version, row.kind, PARTLY))
    if row.scale:
        found.append(_SCALE)
    if row.key == "Pod":
        found += _OF_PODS
    if row.key == "ServiceAccount":
        found.append(_OF_ACCOUNTS)
    if row.key == "CertificateSigningRequest":
        found.append(_OF_REQUESTS)
    if row.key == "Namespace":
        found.append(_OF_NAMESPACES)
    return found


# --- The plain style


def api_versions(address: str) -> Object:
    """Return /api."""
    servers = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": servers}


def group_list(kinds: KindTable) -> Object:
    """Return /apis."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(_plain_groups(kinds).values())}


def api_group(kinds: KindTable, name: str) -> Object | None:
    """Return /apis/GROUP; None for an unknown group."""
    found = _plain_groups(kinds).get(name)
    return None if found is None else {"kind": "APIGroup", "apiVersion": "v1", **found}


def _plain_groups(kinds: KindTable) -> dict[str, Object]:
    held = {name: list(versions) for name, versions in groups(kinds).items() if name}
    held |= {name: ["v1"] for name in REVIEWS}
    held[METRICS] = [METRICS_VERSION]
    held[advice.GROUP] = [advice.VERSION]
    return {name: _plain_group(name, versions) for name, versions in held.items()}


def _plain_group(name: str, versions: Iterable[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    # Kinds list their versions with the preferred one first.
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(kinds: KindTable, group: str, version: str) -> Object | None:
    """Return /api/v1 or /apis/GROUP/VERSION; None for an unknown version."""
    listed = _listed(kinds, group, version)
    if not listed:
        return None
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": listed}


def _listed(kinds: KindTable, group: str, version: str) -> list[Object]:
    if group in REVIEWS and version == "v1":
        return [_plain(plural, "", namespaced, kind, ["create"]) for plural, kind, namespaced in REVIEWS[group]]
    if group == METRICS and version == METRICS_VERSION:
        return [_plain(plural, "", namespaced, kind, READ) for plural, kind, namespaced in METRICS_KINDS]
    if group == advice.GROUP and version == advice.VERSION:
        rows = advice.KINDS.values()
        return [_plain(row.plural, row.kind.lower(), row.namespaced, row.kind, [row.verb]) for row in rows]
    found: list[Object] = []
    for row in groups(kinds).get(group, {}).get(version, ()):
        names: Object = {"shortNames": list(row.short_names)} if row.short_names else {}
        names |= {"categories": list(row.categories)} if row.categories else {}
        found.append({**_plain(row.plural, row.singular, row.namespaced, row.kind, _verbs(row)), **names})
        for name, sub_group, sub_version, kind, verbs in subresources(row, version):
            sub = _plain(f"{row.plural}/{name}", "", row.namespaced, kind, verbs)
            # An APIResource states its group and version only where they are not those of the list.
            other = {"group": sub_group, "version": sub_version} if sub_group != row.group else {}
            found.append({**sub, **other})
    return found


def _plain(name: str, singular: str, namespaced: bool, kind: str, verbs: list[str]) -> Object:
    return {"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": verbs}

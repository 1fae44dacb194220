"""Services: what clients read back of ports and type (source: Kubernetes' `SetDefaults_Service`)."""

from __future__ import annotations

from actors.api.admission.rules import Lookup
from actors.api.fields import Mapping, rows, section
from actors.api.refusals import Cause
from core.objects.metadata import Object


def default(service: Object, lookup: Lookup) -> None:
    """Type, affinity, protocols, and target ports."""
    del lookup
    spec = dict(section(service, "spec"))  # of a changed one it may be the stored one's
    spec["type"] = spec.get("type") or "ClusterIP"
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    external = spec["type"] == "ExternalName"
    if spec.get("ports"):
        spec["ports"] = [_port(port, external=external) for port in rows(spec, "ports")]
    if not external:
        spec["internalTrafficPolicy"] = spec.get("internalTrafficPolicy") or "Cluster"
    service["spec"] = spec


def _port(port: Mapping, *, external: bool) -> Mapping:
    port = {**port, "protocol": port.get("protocol") or "TCP"}
    if not external and port.get("targetPort") in (None, "", 0):
        port["targetPort"] = port.get("port")
    return port


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """The same for what has changed."""
    del old
    default(new, lookup)
    return []

"""Which names in a Kubernetes resource list count as scalar resources.

Source: kube-scheduler's ``IsScalarResourceName`` and the helpers below it (Kubernetes 1.35).
"""

from __future__ import annotations

import re
from typing import Final

from pumice.core.resources.amounts import PODS
from pumice.core.short_texts import remembers

CSI_VOLUMES: Final = "attachable-volumes-csi-"
"""Before a driver's name: its volumes, which Volcano counts whole, one for each claim, and not in thousandths."""
_NATIVE_PREFIX = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)


def is_counted_whole(name: str) -> bool:
    """Whether Volcano counts it in pieces: pods and volumes; other scalars, and cpu, are in thousandths."""
    return name == PODS or name.startswith(CSI_VOLUMES)


def is_count_quota(name: str) -> bool:
    """Whether the name counts objects (``count/pods``), as Volcano's ``IsCountQuota``."""
    return name.startswith("count/")


@remembers(4096)
def is_scalar_resource_name(name: str) -> bool:
    """Extended resources, huge pages, names under kubernetes.io/ and attachable volumes."""
    return (
        _NATIVE_PREFIX in name
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or is_extended_resource_name(name)
    )


def is_extended_resource_name(name: str) -> bool:
    """A name with a domain that is not Kubernetes' own, and a qualified name with ``requests.`` in front."""
    if "/" not in name or _NATIVE_PREFIX in name or name.startswith(_QUOTA_PREFIX):
        return False
    prefix, _, rest = f"{_QUOTA_PREFIX}{name}".partition("/")
    return (
        len(prefix) <= 253
        and len(rest) <= 63
        and _PREFIX.fullmatch(prefix) is not None
        and _NAME.fullmatch(rest) is not None
    )

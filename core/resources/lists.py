# SPDX-License-Identifier: Apache-2.0
"""Kubernetes resource lists (name -> quantity), their names, and amounts.

Source: Volcano's ``NewResource`` and ``ConvertRes2ResList``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pumice.core.quantity import parse_quantity, quantity_of
from pumice.core.resources.amounts import CPU, MEMORY, PODS
from pumice.core.texts import remembers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# --- Names of resources
# Source: kube-scheduler's ``IsScalarResourceName`` and the helpers below it (Kubernetes 1.35).

CSI_VOLUMES: Final = "attachable-volumes-csi-"
"""Before a driver's name: its volumes, which Volcano counts whole, one for each claim, and not in thousandths."""
_NATIVE_PREFIX = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)


def is_counted_whole(name: str) -> bool:
    """Return whether Volcano counts the resource in pieces: pods and volumes; other scalars, and cpu, are in
    thousandths.
    """
    return name == PODS or name.startswith(CSI_VOLUMES)


def is_count_quota(name: str) -> bool:
    """Return whether the name counts objects (``count/pods``), as Volcano's ``IsCountQuota``."""
    return name.startswith("count/")


@remembers(4096)
def is_scalar_resource_name(name: str) -> bool:
    """Return whether the name is an extended resource, huge pages, under kubernetes.io/ or attachable volumes."""
    return (
        # Anywhere in the name: IsPrefixedNativeResource uses strings.Contains.
        _NATIVE_PREFIX in name
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or is_extended_resource_name(name)
    )


def is_extended_resource_name(name: str) -> bool:
    """Return whether the name has a domain that is not Kubernetes' own, and is a qualified name with ``requests.`` in
    front.
    """
    if "/" not in name or _NATIVE_PREFIX in name or name.startswith(_QUOTA_PREFIX):
        return False
    # A quota writes the name with `requests.` in front, and must be able to (IsExtendedResourceName).
    prefix, _, rest = f"{_QUOTA_PREFIX}{name}".partition("/")
    return (
        len(prefix) <= 253
        and len(rest) <= 63
        and _PREFIX.fullmatch(prefix) is not None
        and _NAME.fullmatch(rest) is not None
    )


_CACHED_TEXTS = 1 << 16
_EPHEMERAL_STORAGE = "ephemeral-storage"


def amounts_from_list(
    quantities: Mapping[str, Any] | None, ignored: Collection[str] = ()
) -> tuple[float, float, dict[str, float] | None]:
    """Return (milli-cpu, bytes of memory, scalars or None); ``ignored`` device names are dropped. Raises
    QuantityError.
    """
    milli_cpu = memory = 0.0
    scalars: dict[str, float] | None = None
    for name, value in (quantities or {}).items():
        if name == CPU:
            milli_cpu = milli_of(value)
        elif name == MEMORY:
            memory = whole_of(value)
        elif counts_as_scalar(name) and name not in ignored:
            if scalars is None:
                scalars = {}
            scalars[name] = whole_of(value) if name == PODS else milli_of(value)
    return milli_cpu, memory, scalars


def milli_of(value: object) -> float:
    """Return a quantity (text, number or null) in milli-units, rounded up to a whole one."""
    # Nearly all quantities are texts, and the same few: these are computed once.
    return _milli_of_text(value) if type(value) is str else float(quantity_of(value).milli_value())


def whole_of(value: object) -> float:
    """Return a quantity (text, number or null) in units, rounded up to a whole one."""
    return _whole_of_text(value) if type(value) is str else float(quantity_of(value).value())


@lru_cache(maxsize=_CACHED_TEXTS)
def _milli_of_text(text: str) -> float:
    return float(parse_quantity(text.strip()).milli_value())


@lru_cache(maxsize=_CACHED_TEXTS)
def _whole_of_text(text: str) -> float:
    return float(parse_quantity(text.strip()).value())


@lru_cache(maxsize=4096)
def counts_as_scalar(name: str) -> bool:
    """Return whether ``NewResource`` keeps the name among the scalars (devices to ignore apart)."""
    if name in (PODS, _EPHEMERAL_STORAGE):
        return True
    return not is_count_quota(name) and is_scalar_resource_name(name)

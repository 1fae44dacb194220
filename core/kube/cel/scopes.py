# SPDX-License-Identifier: Apache-2.0
"""The names that expressions may use, by where they stand: in policies, webhooks and selectors of devices.

Source: apiserver's `pkg/admission/plugin/cel/compile.go` and dynamic-resource-allocation's `cel/compile.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.kube.cel.checking import Scope
from pumice.core.kube.cel.types import BOOL, DYN, INT, STRING, CelType, list_of, map_of, type_named

if TYPE_CHECKING:
    from collections.abc import Mapping


def object_of(fields: Mapping[str, CelType]) -> CelType:
    """Return the type of objects with these fields and no others."""
    return CelType("object", fields=fields)


def _texts(names: str) -> dict[str, CelType]:
    return dict.fromkeys(names.split(), STRING)


_TIME: Final = CelType("timestamp", reading="date-time")
_KIND: Final = object_of(_texts("group version kind"))
_RESOURCE: Final = object_of(_texts("group version resource"))
_USER: Final = object_of(
    {**_texts("username uid"), "groups": list_of(STRING), "extra": map_of(STRING, list_of(STRING))}
)
_REQUEST: Final = object_of(
    {
        **_texts("subResource requestSubResource name namespace operation"),
        "kind": _KIND,
        "requestKind": _KIND,
        "resource": _RESOURCE,
        "requestResource": _RESOURCE,
        "userInfo": _USER,
        "dryRun": BOOL,
        # Kubernetes knows nothing of the options' fields either: they depend on the operation.
        "options": DYN,
    }
)
_CONDITION: Final = object_of({**_texts("status type message reason"), "lastTransitionTime": _TIME})
_NAMESPACE: Final = object_of(
    {
        "metadata": object_of(
            {
                # `UID` is large here, unlike in objects (`admission/plugin/cel/compile.go`, BuildNamespaceType).
                **_texts("name generateName namespace UID resourceVersion"),
                "labels": map_of(STRING, STRING),
                "annotations": map_of(STRING, STRING),
                "creationTimestamp": _TIME,
                "deletionTimestamp": _TIME,
                "deletionGracePeriodSeconds": INT,
                "generation": INT,
                "finalizers": list_of(STRING),
            }
        ),
        "spec": object_of({"finalizers": list_of(STRING)}),
        "status": object_of({"phase": STRING, "conditions": list_of(_CONDITION)}),
    }
)
_AUTHORIZER: Final = {
    "authorizer": CelType("kubernetes.authorization.Authorizer"),
    # A name with a dot: cel-go looks up the longest name first, and never asks `authorizer` for a field.
    "authorizer.requestResource": CelType("kubernetes.authorization.ResourceCheck"),
}


def of_request(
    *,
    params: bool = False,
    authorizer: bool = True,
    variables: Mapping[str, CelType] | None = None,
    messages: bool = False,
) -> Scope:
    """Return what an expression about a request may speak of. `variables`: those of its policy, by name."""
    # Objects are dyn: a policy may be about many kinds, so no field is known before a request comes.
    names: dict[str, CelType] = {"object": DYN, "oldObject": DYN, "request": _REQUEST, "namespaceObject": _NAMESPACE}
    if params:
        names["params"] = DYN
    if authorizer:
        names |= _AUTHORIZER
    if variables is not None:
        names["variables"] = object_of(variables)
    return Scope(names, messages=messages)


DEVICE: Final = Scope(
    {
        "device": object_of(
            {
                "driver": STRING,
                "allowMultipleAllocations": BOOL,
                "attributes": type_named("map<string, map<string, dyn>>"),
                "capacity": type_named("map<string, map<string, kubernetes.Quantity>>"),
            }
        )
    },
    bind=True,
)
"""The names that a selector of a device may use."""

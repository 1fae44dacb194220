# SPDX-License-Identifier: Apache-2.0
"""Volcano's resource model.

| file | question |
|---|---|
| amounts.py | what one resource holds |
| ordering.py | is all of it less, or equal |
| partly.py | is some of it less, or more |
| resource.py | arithmetic: the class `Resource`, for all rooms |
| lists.py | how Kubernetes lists become resources and texts again |
"""

from pumice.core.resources.amounts import CPU, LARGEST, MEMORY, MIN_RESOURCE, PODS
from pumice.core.resources.lists import is_scalar_resource_name
from pumice.core.resources.ordering import INFINITY, ZERO, Unset
from pumice.core.resources.resource import Resource, exceeded_part, higher, intersection, share

__all__ = [
    "CPU",
    "INFINITY",
    "LARGEST",
    "MEMORY",
    "MIN_RESOURCE",
    "PODS",
    "ZERO",
    "Resource",
    "Unset",
    "exceeded_part",
    "higher",
    "intersection",
    "is_scalar_resource_name",
    "share",
]

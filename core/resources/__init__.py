"""Volcano's resource model, one question a file.

| file | question |
|---|---|
| amounts.py | what one resource holds |
| ordering.py | is all of it less, or equal |
| partly.py | is some of it less, or more |
| resource.py | arithmetic: the class `Resource` that everybody uses |
| lists.py, names.py | how Kubernetes lists become resources and texts again |
"""

from core.resources.amounts import CPU, LARGEST, MEMORY, MIN_RESOURCE, PODS
from core.resources.names import is_scalar_resource_name
from core.resources.ordering import INFINITY, ZERO, Unset
from core.resources.resource import Resource, exceeded_part, higher, intersection, share

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

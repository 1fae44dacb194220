"""Quantities in the form that Kubernetes keeps them in: what is written as `1024Mi` is stored, and read back, as `1Gi`.

Only those fields are looked at that lead to a quantity, by the schema table: a kind without any costs nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pumice.cluster.api.schema.model import element
from pumice.cluster.api.schema.plain import is_list, is_map
from pumice.cluster.api.schema.table import flat_fields, is_message, of_kind
from pumice.core.errors import QuantityError
from pumice.core.quantity import quantity_of

_QUANTITY: Final = "Quantity"
_SELF_HOLDING: Final = ("apiextensions.v1.JSONSchemaProps",)


def settle_quantities(obj: dict[str, Any], group: str, version: str, kind: str) -> None:
    """Write every quantity of an object of a described kind in its canonical form; what is none is left as it is."""
    found = of_kind(group, version, kind)
    if found is not None:
        _settle(obj, found.name)


@cache
def _leading(name: str) -> tuple[tuple[str, str], ...]:
    """The fields of a message under which there are quantities, each with its type."""
    return tuple((field, each.type) for field, each in flat_fields(name).items() if _leads(each.type))


@cache
def _leads(type_: str) -> bool:
    inner = element(type_)
    if inner != type_:
        return _leads(inner)
    if not is_message(type_) or type_ in _SELF_HOLDING:
        return type_ == _QUANTITY
    return bool(_leading(type_))


def _settle(holder: dict[str, Any], name: str) -> None:
    for field, type_ in _leading(name):
        value = holder.get(field)
        if value:
            holder[field] = _settled(value, type_)


def _settled(value: Any, type_: str) -> Any:
    if type_ == _QUANTITY:
        return _canonical(value)
    inner = element(type_)
    if inner == type_:
        if is_map(value):
            _settle(value, type_)
    elif is_map(value):
        for name, each in value.items():
            value[name] = _settled(each, inner)
    elif is_list(value):
        value[:] = [_settled(each, inner) for each in value]
    return value


def _canonical(value: Any) -> Any:
    try:
        return quantity_of(value).canonical()
    except QuantityError:
        return value

"""When two values are the same: a boolean is no number, and a quantity may be spelt in several ways."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.schema.shapes import Shape
from pumice.core.errors import QuantityError
from pumice.core.quantity import quantity_of

_SPELLINGS: Final = (str, int, float)


def same(old: Any, new: Any, shape: Shape) -> bool:
    """Whether two leaves are equal. The server spells quantities in one way, manifests as they like."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if old == new or shape.scalar != "quantity":
        return bool(old == new)
    if not isinstance(old, _SPELLINGS) or not isinstance(new, _SPELLINGS):
        return False
    try:
        return quantity_of(old).compare(quantity_of(new)) == 0
    except QuantityError:
        return False

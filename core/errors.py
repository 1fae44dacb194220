"""core's branch of the error tree (root: config/errors.py)."""

from __future__ import annotations

from config.errors import InternalError, RequestError


class QuantityError(RequestError):
    """A text that Go's ``resource.ParseQuantity`` refuses; ``text`` is what was given."""

    code = 400
    reason = "BadRequest"

    def __init__(self, text: object, problem: str) -> None:
        self.text = text
        self.problem = problem
        super().__init__(f"quantity {text!r}: {problem}")


class ResourceAssertionError(InternalError):
    """Volcano's ``Resource.Sub`` assertion: the right side does not fit into the left one."""

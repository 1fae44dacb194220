# SPDX-License-Identifier: Apache-2.0
"""core's branch of the error tree (root: config/errors.py)."""

from __future__ import annotations

from pumice.config.errors import InternalError, RequestError


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


class InvalidTransition(InternalError):  # noqa: N818 - named like the table's other words
    """A life cycle was asked for a step that its table does not have; nothing changed."""

    def __init__(self, who: str, state: str, trigger: str, story: tuple[str, ...] = ()) -> None:
        self.who = who
        self.state = state
        self.trigger = trigger
        super().__init__(f"{who} is {state} and cannot {trigger}", story)


class DerivedError(InternalError):
    """A derived column is requested where it could not stay true."""


class KeptColumnsError(InternalError):
    """Columns that were kept from the session before differ from the view's."""

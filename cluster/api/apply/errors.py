"""Why something cannot be applied."""

from pumice.config.errors import RequestError


class ApplyError(RequestError):
    """The applied object is not of its kind's shape; the sentence is for the client."""

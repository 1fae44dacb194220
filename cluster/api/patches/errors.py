"""Why a patch cannot be applied."""

from pumice.config.errors import RequestError


class PatchError(RequestError):
    """A patch that contradicts itself or the kind; the sentence is for the client."""

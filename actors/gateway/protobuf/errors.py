"""What can be wrong with a protobuf body."""

from pumice.config.errors import RequestError


class MalformedBodyError(RequestError):
    """The bytes are no message of that kind."""


class UnknownProtobufKindError(RequestError):
    """Nobody described the kind's messages; the text names it."""

    code = 415
    reason = "UnsupportedMediaType"

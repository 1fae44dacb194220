"""Request bodies in Kubernetes' protobuf encoding, read by field numbers from the schema table.

Go clients send core kinds so and give no way to stop them. Answers are JSON, always.
"""

from pumice.actors.gateway.protobuf.envelope import MalformedBodyError, UnknownProtobufKindError, decode

__all__ = ["MalformedBodyError", "UnknownProtobufKindError", "decode"]

"""Actors: each owns its state and one bounded mailbox; `pumice.actors.system.system` wires them together."""

__pumice__ = "0.1.0"

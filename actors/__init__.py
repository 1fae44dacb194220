"""Actors: each owns its state and one bounded mailbox; `actors.system.system` wires them together."""

__pumice__ = "0.1.0"

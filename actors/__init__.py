# SPDX-License-Identifier: Apache-2.0
"""Actors: each owns its state and one bounded mailbox; `pumice.actors.system.system` wires them together."""

if __name__ == "actors":
    raise ModuleNotFoundError("'actors' is imported as pumice.actors", name=__name__)

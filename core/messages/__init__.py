# SPDX-License-Identifier: Apache-2.0
"""Messages between actors, and the ones that are written to the journal.

One module a mood: `commands`, and `orders` to the workers that carry decisions out, are imperative, `events` are past
tense, `replies` are nouns, `decisions` are what a cycle decided. Every type is a frozen msgspec Struct with its class
name as tag, so that a union of them is closed: adding a message breaks the type check wherever it is not handled.
Objects of Kubernetes travel as MessagePack blobs (`bytes`).

Journaled types are read back for years: fields are only ever added, at the end, with a default.
"""

# SPDX-License-Identifier: Apache-2.0
"""Parts of an actor: mailboxes, the loop, supervision, watching, clocks, the activity board."""

"""Parts of an actor: mailboxes, the loop, supervision, watching, clocks, the activity board."""

"""What an actor is made of: mailboxes, the loop, supervision, watching, clocks, the activity board."""

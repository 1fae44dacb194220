"""Sessions followed from elsewhere: the deltas between two openings, and what makes a session of them again."""

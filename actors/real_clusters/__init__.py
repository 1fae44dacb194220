"""Real clusters: followed, and scheduled from here."""

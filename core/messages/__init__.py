"""Messages between actors: commands, events, decisions and replies."""

"""Parts of objects that are written under a path of their own, past which nothing else of the object changes."""

"""A real cluster in the api of this process: what is there, and what its own scheduler decides."""

"""The api server as an actor, and its faults."""

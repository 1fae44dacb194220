"""A cluster that is followed: one that is played in a process of its own, and the mirror of it that is measured."""

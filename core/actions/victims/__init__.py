"""Whom an action may ask to go for a task, and on which nodes it is worth asking."""

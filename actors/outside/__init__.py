"""Processes outside that a cycle asks: see `client.py`."""

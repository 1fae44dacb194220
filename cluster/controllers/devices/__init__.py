"""Devices come back when nobody uses them any more."""

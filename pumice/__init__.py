"""Pumice: the Volcano batch scheduler as one long-lived process made of actors."""

__version__ = "0.1.0"

"""Pumice: the Volcano batch scheduler as one long-lived process made of actors."""

from typing import Final

from pumice.guard import ForeignLayerError, check_layers

__all__ = ["ForeignLayerError", "__version__"]

__version__: Final = "0.1.0"

check_layers(__version__)

"""Packages that only some commands need, and what to say when one is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pumice.config.errors import RequestError


def demand(module: str, extra: str, what: str) -> Any:
    """Import a module of an optional package. Raises RequestError, which says how to install it.

    `what` begins the sentence: "Parquet files".
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise RequestError(f"{what} need {package}, which is not installed: pip install 'pumice[{extra}]'") from None


def absent(module: str, extra: str, what: str) -> str:
    """What `demand` would say against a module; "" where it is there."""
    try:
        demand(module, extra, what)
    except RequestError as error:
        return str(error)
    return ""

"""The core: everything that decides, as plain synchronous code."""

__pumice__ = "0.1.0"

"""Configuration: Volcano's scheduler.conf, Pumice's own settings, and the root of the error tree."""

__pumice__ = "0.1.0"

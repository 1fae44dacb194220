# SPDX-License-Identifier: Apache-2.0
"""Configuration: Volcano's scheduler.conf, Pumice's own settings, and the root of the error tree."""

if __name__ == "config":
    raise ModuleNotFoundError("'config' is imported as pumice.config", name=__name__)

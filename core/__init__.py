# SPDX-License-Identifier: Apache-2.0
"""The core: everything that decides, as plain synchronous code."""

if __name__ == "core":
    raise ModuleNotFoundError("'core' is imported as pumice.core", name=__name__)

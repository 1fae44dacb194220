# SPDX-License-Identifier: Apache-2.0
"""Storage: the journal, its codec and the recovery of state from it."""

if __name__ == "storage":
    raise ModuleNotFoundError("'storage' is imported as pumice.storage", name=__name__)

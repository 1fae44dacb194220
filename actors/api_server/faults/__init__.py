# SPDX-License-Identifier: Apache-2.0
"""An api behind a bad network: the faults that strike its requests, and their effects."""

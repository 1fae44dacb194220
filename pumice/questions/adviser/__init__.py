# SPDX-License-Identifier: Apache-2.0
"""Queue order, reasons for waiting and estimated starts of jobs: over one decided cycle, as plain data."""

# SPDX-License-Identifier: Apache-2.0
"""Named, repeatable measurements: one scenario a file, all of them listed in `scenarios.py`."""

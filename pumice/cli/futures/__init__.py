# SPDX-License-Identifier: Apache-2.0
"""Options that commands about futures share, and the display of differences."""

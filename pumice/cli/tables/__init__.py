# SPDX-License-Identifier: Apache-2.0
"""Tables that commands show to people, where the output is more than a few lines."""

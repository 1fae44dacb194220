# SPDX-License-Identifier: Apache-2.0
"""Reading of a request, and of the required form of its answer."""

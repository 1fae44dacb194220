# SPDX-License-Identifier: Apache-2.0
"""Runner of conformance cases (the behaviour of the real Volcano, as data), with scores."""

# SPDX-License-Identifier: Apache-2.0
"""Events of a storm, as data: made from a seed, read, checked and cut down."""

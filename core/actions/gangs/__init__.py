# SPDX-License-Identifier: Apache-2.0
"""Actions that make room for whole gangs by evicting others."""

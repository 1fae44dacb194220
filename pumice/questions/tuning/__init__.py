# SPDX-License-Identifier: Apache-2.0
"""Tuning: a search among configurations. Optuna searches, evaluations judge."""

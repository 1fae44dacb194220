# SPDX-License-Identifier: Apache-2.0
"""The in-process API server: store, watch and admission."""

# SPDX-License-Identifier: Apache-2.0
"""Verbs of the api server, one a module: create, change, apply, delete, evict, bind, report."""

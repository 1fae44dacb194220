"""Taints of nodes that are not well."""

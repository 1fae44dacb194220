"""Statuses of ResourceQuotas."""

"""Storage: the journal, its codec and the recovery of state from it."""

__pumice__ = "0.1.0"

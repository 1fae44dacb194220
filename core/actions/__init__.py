"""The actions of a cycle, written out in one table."""

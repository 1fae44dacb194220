"""The journal's only writers: records and checkpoints."""

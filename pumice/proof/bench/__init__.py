"""Named, repeatable measurements: one scenario a file, all of them listed in `scenarios.py`."""

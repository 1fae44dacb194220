"""A run as one HTML file that opens anywhere: what ran, jobs that waited and why, resource use, evictions."""

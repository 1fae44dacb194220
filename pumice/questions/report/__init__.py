"""A run as one HTML file that opens anywhere: what ran, who waited and why, what was used, who evicted whom."""

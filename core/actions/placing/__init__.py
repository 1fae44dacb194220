"""Tasks of a job onto nodes: group by group, domain by domain."""

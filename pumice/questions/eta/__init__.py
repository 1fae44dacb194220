"""When a job that waits will start, as a range: futures sampled from what is known of how long pods run."""

"""What must change for a job to start: the least of something, tried; see `starting`."""

"""A journal as a person reads it: entries in words, stories of jobs and pods, single cycles."""

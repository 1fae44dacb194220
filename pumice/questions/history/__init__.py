"""A journal for people: entries as sentences, stories of jobs and pods, single cycles."""

"""Plugins of Volcano's Job controller: their additions to a Job's pods, and the objects that they create."""

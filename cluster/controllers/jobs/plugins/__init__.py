"""Plugins of Volcano's Job controller: what they add to a Job's pods, and what they create beside them."""

"""The extension points, a module a family: what a plugin's rule looks like, and how the rules of all are merged."""

"""The extension points, a module a family: the form of a plugin's rule, and how the rules of all are merged."""

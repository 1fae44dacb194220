"""Events of a storm, as data: made from a seed, read, checked and cut down."""

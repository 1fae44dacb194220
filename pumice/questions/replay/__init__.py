"""The recorded inputs under another configuration: lived through again on virtual time, and what came out otherwise."""

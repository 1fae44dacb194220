"""The recorded inputs under another configuration: simulated again on virtual time, and compared."""

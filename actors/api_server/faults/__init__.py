"""An api behind a bad network: the faults that strike its requests, and their effects."""

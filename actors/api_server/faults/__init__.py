"""An api behind a bad network: which fault strikes which request, and what comes of it."""

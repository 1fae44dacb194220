"""Who answers a request: one module for each sort of it."""

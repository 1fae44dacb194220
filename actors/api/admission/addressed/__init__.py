"""Services, and the addresses that they are given."""

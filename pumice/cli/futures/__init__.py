"""What commands about futures share: their options, and how differences are shown."""

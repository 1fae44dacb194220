"""One scheduling cycle: extension points, tiers, statement, heap."""

"""The page of a run or of a journal in a browser."""

"""The page: what a browser is shown of a run or of a journal."""

"""Charts: their files, their inputs, and what they render to."""

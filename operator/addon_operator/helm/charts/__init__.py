"""Charts: pulled from repositories, their files and inputs, and what they render to."""

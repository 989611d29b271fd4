"""``plan``: what the operator would do if it started now."""

"""Drift, pure: where live objects differ from the manifest that they come from, and who did that."""

"""Schemas of values: read, checked, defaults filled in."""

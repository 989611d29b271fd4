"""Modules under test: their values, what their charts render to, and runs of their hooks."""

"""Modules: read from disk, run and deleted."""

"""Checks of modules on disk: their values, schemas and hooks."""

"""Checks of modules on disk: their values, schemas, hooks and charts."""

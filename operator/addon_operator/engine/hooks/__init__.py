"""Hooks: found on disk, run as processes, their outputs applied."""

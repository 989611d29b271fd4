"""Releases: observed, decided upon, and installed, upgraded or uninstalled."""

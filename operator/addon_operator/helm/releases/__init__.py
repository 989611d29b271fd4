"""Releases: observed, rendered, decided upon, and installed, upgraded or uninstalled.

What a module is, and when it is run, is not known here.
"""

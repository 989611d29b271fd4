"""Runs of modules: their hooks, definitions and releases, and their removal.

What a module is stands in ``modules``; its files are read in ``loading``.
"""

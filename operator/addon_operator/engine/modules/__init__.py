"""Modules: run and deleted, with their hooks, definitions and releases.

What a module is stands in ``modules``; its files are read in ``loading``.
"""

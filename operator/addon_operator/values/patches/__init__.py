"""Patches of values that hooks return: read, checked, kept and replayed.

When a patch is applied is decided by whoever ran the hook.
"""

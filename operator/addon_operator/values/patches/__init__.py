"""Patches of values that hooks return: read, checked, kept and replayed."""

"""Schemas of values: read, checked, defaults filled in.

Which schema is for which values is known in ``section``.
"""

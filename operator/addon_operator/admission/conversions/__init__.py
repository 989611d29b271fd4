"""Conversions of custom resources, which hooks do, one run for each step.

The engine says which hooks there are.
"""

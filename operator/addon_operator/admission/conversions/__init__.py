"""Conversions of custom resources, which hooks do, one run for each step.

Which hooks there are is told by whoever loads them.
"""

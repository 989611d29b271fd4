"""Outputs of hooks: metrics, and operations on objects.

Nothing is applied here.
"""

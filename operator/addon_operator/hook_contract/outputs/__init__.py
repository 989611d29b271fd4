"""Outputs of hooks: metrics, and operations on objects."""

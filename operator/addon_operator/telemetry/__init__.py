"""Metrics and logs.

What is counted is decided by listeners in ``app``.
"""

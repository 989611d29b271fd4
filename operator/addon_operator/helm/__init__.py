"""Helm: runs the ``helm`` binary, and knows charts, repositories and releases.

When a module is released, and with which values, is decided in ``engine``.
"""

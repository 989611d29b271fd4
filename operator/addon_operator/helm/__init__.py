"""Helm: runs the ``helm`` binary, one function per verb.

When a module is released, and with which values, is decided in ``engine``.
"""

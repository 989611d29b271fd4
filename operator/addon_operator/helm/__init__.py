"""Helm: runs the ``helm`` binary, one function per verb."""

"""Drift: watches the resources of releases and restores those that disappear.

What a module should have is read from the record of its release, never decided here.
"""

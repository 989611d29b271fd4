"""Drift: watches the resources of releases: how they are, what others change, what disappears.

What a module should have is read from the record of its release, never decided here.
"""

"""Reload: modules that change on disk are taken in while the operator runs.

What the files say is read in ``loading``; what follows from it is the engine's to do.
"""

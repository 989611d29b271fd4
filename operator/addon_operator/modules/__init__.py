"""Modules, pure: what a module is, what its manifests hold, what a converge and a release need.

Their files are read in ``loading``; they are run in ``engine``.
"""

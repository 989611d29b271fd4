"""Certificates of the admission server: made, rotated, shared by all replicas.

Who is told of a new authority is the registration's to do.
"""

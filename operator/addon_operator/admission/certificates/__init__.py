"""Certificates of the admission server: made, rotated, shared by all replicas.

The registration publishes new authorities.
"""

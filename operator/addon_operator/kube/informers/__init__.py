"""Informers: follow objects with as few watches as possible.

What follows from a change is the listener's to do.
"""

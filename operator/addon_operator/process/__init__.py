"""Processes: programs that the operator starts, and what it must know of itself for that.

What they are started for is not known here.
"""

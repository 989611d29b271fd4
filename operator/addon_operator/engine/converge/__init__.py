"""Converge: brings the cluster to what the sources say.

How one module is run stands in ``modules``.
"""

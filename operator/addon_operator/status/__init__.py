"""What the operator shows of itself: probes, the status page, Module objects.

It shows no values; whoever may see them asks ``debug``.
"""

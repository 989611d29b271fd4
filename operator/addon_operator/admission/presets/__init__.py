"""PodPresets of the cluster in memory, and the status written to them.

How presets change a pod stands in ``podpreset``.
"""

"""Sources: deliver the values ConfigMap and PodPresets, watched with Kopf.

What follows from an edit is the engine's to decide.
"""

"""Sources: deliver the values ConfigMap, the values Secret and PodPresets, watched with Kopf.

What follows from an edit is the engine's to decide.
"""

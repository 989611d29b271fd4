"""Sources: deliver the values ConfigMap and the values Secret, watched with Kopf.

What follows from an edit is the engine's to decide.
"""

"""Sources: deliver the values ConfigMap and PodPresets, watched with Kopf."""
